package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/quota"
)

func TestMain(m *testing.M) {
	RunIfAsked()
	os.Exit(m.Run())
}

// endpoint is a server that answers each request with the next of its scripts.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	requests []map[string]any
}

type script func(w http.ResponseWriter)

func serve(t *testing.T, scripts ...script) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		var request map[string]any
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/chat/completions" {
			http.Error(w, "unexpected request "+r.URL.Path, http.StatusTeapot)
			return
		}
		e.requests = append(e.requests, request)
		if len(e.requests) > len(scripts) {
			http.Error(w, "no script is left", http.StatusTeapot)
			return
		}
		scripts[len(e.requests)-1](w)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) seen() []map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests
}

// says answers with a text, or with one call of a tool.
func says(message, toolName, args, finish string) script {
	return func(w http.ResponseWriter) {
		m := map[string]any{"role": "assistant", "content": message}
		if toolName != "" {
			m["tool_calls"] = []any{map[string]any{"id": "call-1", "type": "function", "function": map[string]any{"name": toolName, "arguments": args}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "c", "object": "chat.completion", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": finish}},
			"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
		})
	}
}

func calls(name, args string) script { return says("", name, args, "tool_calls") }
func answers(message string) script  { return says(message, "", "", "stop") }

func refuses(status int, body string, headers ...string) script {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const resultJSON = `{"items":[{"finding":"F-1","status":"resolved"}],"summary":"done"}`

// request is a launch in a fresh worktree with one file.
func request(t *testing.T, e *endpoint, mode string) provider.Request {
	t.Helper()
	tree := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "pkg"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "pkg", "a.go"), []byte("package pkg\n\nvar bad = 1\n"), 0o600))
	return provider.Request{
		Pool: contract.Pool{ID: "p", Provider: contract.ProviderOpenAI, Model: "m", Env: []string{"OPENAI_API_KEY"},
			Options: map[string]string{"base_url": e.URL + "/v1", "mode": mode}},
		Prompt: "repair it", Worktree: tree, Write: []string{"pkg/**"},
	}
}

// launch runs the program in this process and reads it by the adapter.
func launch(t *testing.T, req provider.Request) provider.Report {
	t.Helper()
	built, err := Provider{}.Build(req)
	require.NoError(t, err)
	var out bytes.Buffer
	runErr := run(t.Context(), bytes.NewReader(built.Stdin), &out, func(string) string { return "sk-test" })
	reader := Provider{}.Read(req)
	for line := range strings.Lines(out.String()) {
		if reader.Line(process.Stdout, []byte(strings.TrimSuffix(line, "\n")), false) == process.Stop {
			break
		}
	}
	report := reader.Report()
	require.Equal(t, runErr == nil, report.Done, "%v\n%s", runErr, out.String())
	return report
}

func content(t *testing.T, req provider.Request, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(req.Worktree, name))
	require.NoError(t, err)
	return string(data)
}

func TestToolLoopReadsWritesAndHandsInItsResult(t *testing.T) {
	t.Parallel()
	e := serve(t,
		calls("list_files", `{}`),
		calls("search", `{"pattern":"bad"}`),
		calls("read_file", `{"path":"pkg/a.go"}`),
		calls("replace", `{"path":"pkg/a.go","old":"bad = 1","new":"good = 2"}`),
		calls("write_file", `{"path":"pkg/sub/b.go","content":"package sub\n"}`),
		calls("write_file", `{"path":"../escape.go","content":"x"}`),
		calls("finish", resultJSON),
	)
	req := request(t, e, "tools")
	report := launch(t, req)
	require.Equal(t, "package pkg\n\nvar good = 2\n", content(t, req, "pkg/a.go"))
	require.Equal(t, "package sub\n", content(t, req, "pkg/sub/b.go"))
	require.JSONEq(t, resultJSON, report.Final)
	require.Equal(t, contract.Usage{InputTokens: 700, OutputTokens: 70, Known: true}, report.Usage)
	got := toolAnswers(e.seen()[6])
	require.Equal(t, []string{"pkg/a.go", "pkg/a.go:3: var bad = 1", "package pkg\n\nvar bad = 1\n", "replaced", "written",
		`error: path "../escape.go" is not a path inside the worktree`}, got)
}

func toolAnswers(request map[string]any) []string {
	var out []string
	for _, m := range request["messages"].([]any) {
		if m := m.(map[string]any); m["role"] == "tool" {
			out = append(out, m["content"].(string))
		}
	}
	return out
}

func TestModelThatStopsIsRemindedOnce(t *testing.T) {
	t.Parallel()
	e := serve(t, answers("I am done."), answers("Really."))
	report := launch(t, request(t, e, "tools"))
	require.Equal(t, "Really.", report.Final)
	require.Len(t, e.seen(), 2)
}

func TestEndpointWithoutToolsIsAskedForOneAnswer(t *testing.T) {
	t.Parallel()
	answer := `{"files":[{"path":"pkg/a.go","content":null,"replace":[{"old":"bad","new":"good"}],"delete":false}],"items":[{"finding":"F-1","status":"resolved","reason":null,"question":null}],"summary":"s"}`
	e := serve(t,
		refuses(400, `{"error":{"message":"this model does not support tools"}}`),
		refuses(400, `{"error":{"message":"response_format json_schema is not supported"}}`),
		refuses(422, `{"detail":"response_format: json_object unknown"}`),
		answers("Here:\n```json\n"+answer+"\n```\n"),
	)
	req := request(t, e, "tools")
	report := launch(t, req)
	require.Equal(t, "package pkg\n\nvar good = 1\n", content(t, req, "pkg/a.go"))
	require.JSONEq(t, `{"items":[{"finding":"F-1","status":"resolved"}],"summary":"s"}`, report.Final)
	seen := e.seen()
	require.Contains(t, seen[0], "tools")
	require.Equal(t, "json_schema", seen[1]["response_format"].(map[string]any)["type"])
	require.Equal(t, "json_object", seen[2]["response_format"].(map[string]any)["type"])
	require.NotContains(t, seen[3], "response_format")
	require.Contains(t, seen[3]["messages"].([]any)[1].(map[string]any)["content"], "var bad = 1")
}

func TestSingleAnswerIsCarriedOutWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	bad := `{"files":[{"path":"pkg/a.go","content":"changed","delete":false},{"path":"other/b.go","content":"x","delete":false}],"items":[],"summary":""}`
	e := serve(t, answers(bad), answers(bad))
	req := request(t, e, "single")
	report := launch(t, req)
	require.Equal(t, "package pkg\n\nvar bad = 1\n", content(t, req, "pkg/a.go"))
	require.Equal(t, contract.CauseWork, report.Fault.Cause)
	require.Contains(t, report.Fault.Text, "outside of what the task may change")
	require.Len(t, e.seen(), 2)
}

func TestLimitIsReportedWithItsHeaders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		script  script
		outcome quota.Outcome
		reset   time.Duration
	}{
		{"retry-after", refuses(429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`,
			"Retry-After", "90", "Date", now.Format(http.TimeFormat)), quota.RateLimited, 90 * time.Second},
		{"money", refuses(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}`), quota.CreditExhausted, 0},
		{"key", refuses(401, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`), quota.AuthFailed, 0},
		{"model", refuses(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`), quota.ModelUnavailable, 0},
		{"size", refuses(400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`), quota.PacketTooLarge, 0},
		{"busy", refuses(503, `{"error":{"message":"The engine is currently overloaded"}}`), quota.Overloaded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, c.script)
			report := launch(t, request(t, e, "tools"))
			require.Len(t, e.seen(), 1, "retries are ours")
			one := 1
			got := report.Verdict(Provider{}.About(), quota.Launch{ObservedAt: now, ExitCode: &one})
			require.Equal(t, c.outcome, got.Outcome, got.Rule)
			if c.reset == 0 {
				require.Nil(t, got.ResetAt)
				return
			}
			require.WithinDuration(t, now.Add(c.reset), *got.ResetAt, time.Second)
		})
	}
}

func TestUnreachableEndpointIsAnErrorWithItsWords(t *testing.T) {
	t.Parallel()
	e := serve(t)
	req := request(t, e, "tools")
	e.Close()
	report := launch(t, req)
	one := 1
	got := report.Verdict(Provider{}.About(), quota.Launch{ObservedAt: time.Now(), ExitCode: &one})
	require.Equal(t, quota.Error, got.Outcome)
	require.Contains(t, got.Evidence, "connection refused")
}

func TestCutAnswerIsNoResult(t *testing.T) {
	t.Parallel()
	e := serve(t, says("half", "", "", "length"))
	report := launch(t, request(t, e, "tools"))
	require.Contains(t, report.Fault.Text, "output_tokens")
}

func TestStepsAndTokensAreCapped(t *testing.T) {
	t.Parallel()
	e := serve(t, calls("list_files", `{}`), calls("list_files", `{}`), calls("list_files", `{}`))
	req := request(t, e, "tools")
	req.Pool.Options["steps"] = "2"
	require.Contains(t, launch(t, req).Fault.Text, "more than 2 model steps")

	e = serve(t, calls("list_files", `{}`), calls("list_files", `{}`), calls("finish", resultJSON))
	req = request(t, e, "tools")
	req.Tokens = 150
	built, err := Provider{}.Build(req)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), bytes.NewReader(built.Stdin), &out, func(string) string { return "k" }))
	reader := Provider{}.Read(req)
	stopped := false
	for line := range strings.Lines(out.String()) {
		stopped = stopped || reader.Line(process.Stdout, []byte(line), false) == process.Stop
	}
	require.True(t, stopped)
	require.Contains(t, reader.Report().Fault.Text, "more than 150 tokens")
}

// The program is the running binary executed again, in the sandbox and under the
// supervisor like any other.
func TestProgramRunsAsAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	e := serve(t, calls("write_file", `{"path":"pkg/a.go","content":"package pkg\n"}`), calls("finish", resultJSON))
	req := request(t, e, "tools")
	built, err := Provider{}.Build(req)
	require.NoError(t, err)
	reader := Provider{}.Read(req)
	spec := process.Spec{
		Argv: built.Argv, Stdin: built.Stdin, Dir: req.Worktree, Env: append(os.Environ(), "OPENAI_API_KEY=sk-test"),
		Absolute: 2 * time.Minute,
		OnLine: func(stream process.Stream, line []byte, truncated bool) process.Verdict {
			return reader.Line(stream, line, truncated)
		},
	}
	if _, err := process.SandboxAvailable(); err == nil {
		spec.Sandbox = &process.Sandbox{Writable: []string{req.Worktree}}
	}
	result, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, result.Succeeded(), result.StderrTail)
	report := reader.Report()
	require.True(t, report.Done)
	require.JSONEq(t, resultJSON, report.Final)
	require.Equal(t, "package pkg\n", content(t, req, "pkg/a.go"))
}
