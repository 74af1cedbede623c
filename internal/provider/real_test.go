package provider_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/quota"
	"mendflow/internal/testkit/modelserver"
)

// agentsFolder names the folder in which `make test-agents` installed the real
// programs; the tests of this file run only then.
const agentsFolder = "MENDFLOW_AGENTS"

// realProgram is a program to be tried, with what its pool looks like.
type realProgram struct {
	name string
	key  string
	path string // appended to the server's address
}

func realPrograms() []realProgram {
	return []realProgram{
		{name: "claude", key: "ANTHROPIC_API_KEY"},
		{name: "codex", key: "OPENAI_API_KEY", path: "/v1"},
		{name: "opencode", key: "OPENAI_API_KEY", path: "/v1"},
		{name: "gemini", key: "GEMINI_API_KEY"},
		{name: "qwen", key: "OPENAI_API_KEY", path: "/v1"},
	}
}

// bench is one program in a worktree with a model of its own.
type bench struct {
	realProgram
	adapter provider.Provider
	server  *modelserver.Server
	req     provider.Request
	host    string // its folder
	idle    time.Duration
}

func (p realProgram) bench(t *testing.T, script func(modelserver.Ask) modelserver.Turn) *bench {
	t.Helper()
	program := filepath.Join(os.Getenv(agentsFolder), "node_modules", ".bin", p.name)
	if _, err := os.Stat(program); err != nil {
		t.Skipf("%s is not installed in %s", p.name, os.Getenv(agentsFolder))
	}
	host := t.TempDir()
	b := &bench{realProgram: p, adapter: adapters()[p.name], server: modelserver.Start(script), host: host}
	t.Cleanup(b.server.Close)
	options := map[string]string{provider.OptionBaseURL: b.server.URL + p.path, provider.OptionProgram: program}
	b.req = provider.Request{
		Pool:   contract.Pool{ID: "p", Model: "model-x", Env: []string{p.key}, Options: options},
		Prompt: "-- repair the fault in a.txt", ResultFile: filepath.Join(host, "result", "result.json"),
		Worktree: filepath.Join(host, "tree"), Home: filepath.Join(host, "home"), Folder: filepath.Join(host, "launch"), Confined: true,
	}
	for _, dir := range []string{b.req.Worktree, b.req.Home, filepath.Join(host, "tmp"), filepath.Dir(b.req.ResultFile)} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(b.req.Worktree, "a.txt"), []byte("fault\n"), 0o600))
	return b
}

// launch runs the program as an attempt does, in the sandbox.
func (b *bench) launch(ctx context.Context, t *testing.T) (provider.Report, process.Result) {
	t.Helper()
	built, err := b.adapter.Build(b.req)
	require.NoError(t, err)
	for _, dir := range built.Folders {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for _, f := range built.Files {
		require.NoError(t, os.MkdirAll(filepath.Dir(f.Path), 0o700))
		require.NoError(t, os.WriteFile(f.Path, f.Data, 0o600))
	}
	env, err := process.Environment{
		Host: append(os.Environ(), b.key+"=sk-fake0000"), Home: b.req.Home, Temp: filepath.Join(b.host, "tmp"), Pass: b.req.Pool.Env,
	}.Build()
	require.NoError(t, err)
	reader := b.adapter.Read(b.req)
	var log strings.Builder
	spec := process.Spec{
		Argv: built.Argv, Stdin: built.Stdin, Dir: b.req.Worktree, Env: append(env, built.Env...),
		Absolute: 3 * time.Minute, Idle: b.idle, Mark: "test/" + strings.ReplaceAll(t.Name(), "/", "-"), Output: &log,
		Sandbox: &process.Sandbox{Writable: append(slices.Clone(built.Writable), b.host)},
		OnLine: func(stream process.Stream, line []byte, truncated bool) process.Verdict {
			return reader.Line(stream, line, truncated)
		},
	}
	if built.Interrupt {
		spec.StopSignal = syscall.SIGINT
	}
	result, err := process.Run(ctx, spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\n%s\n%s", built.Argv, result, log.String())
			for i, a := range b.server.Asked() {
				t.Logf("request %d: %s results=%d shell=%q prompt=%.300q", i, a.Wire, a.Results, a.Shell, a.Prompt)
			}
		}
	})
	return reader.Report(), result
}

const realResult = `{"items":[{"finding":"F-1","status":"resolved"}],"summary":"done"}`

// repairs is a model that repairs the fault with a command and ends.
func repairs(last string) func(modelserver.Ask) modelserver.Turn {
	return func(a modelserver.Ask) modelserver.Turn {
		switch {
		case a.Shell == "":
			return modelserver.Turn{Text: "A title"}
		case a.Results == 0:
			return modelserver.Turn{Shell: "echo mended > a.txt"}
		}
		return modelserver.Turn{Text: last}
	}
}

func eachReal(t *testing.T, test func(t *testing.T, p realProgram)) {
	for _, p := range realPrograms() {
		t.Run(p.name, func(t *testing.T) { // each of them is counted as skipped
			if os.Getenv(agentsFolder) == "" {
				t.Skipf("the real programs are tried by `make test-agents` (%s is not set)", agentsFolder)
			}
			test(t, p)
		})
	}
}

func TestRealProgramRepairsAndIsResumed(t *testing.T) {
	eachReal(t, func(t *testing.T, p realProgram) {
		b := p.bench(t, repairs("All done.\n\n```json\n"+realResult+"\n```\n"))
		report, result := b.launch(t.Context(), t)
		require.True(t, report.Done, "%s: %+v", result, report)
		data, err := os.ReadFile(filepath.Join(b.req.Worktree, "a.txt"))
		require.NoError(t, err)
		require.Equal(t, "mended\n", string(data))
		block, ok := provider.ResultBlock(report.Final)
		require.True(t, ok, report.Final)
		require.JSONEq(t, realResult, string(block))
		require.NotEmpty(t, report.Session)
		require.Equal(t, contract.Usage{InputTokens: 2000, OutputTokens: 68, USDMicros: report.Usage.USDMicros, Known: true}, report.Usage)

		b.req.Session, b.req.Before, b.req.Prompt = report.Session, report.Totals, "go on"
		again, result := b.launch(t.Context(), t)
		require.True(t, again.Done, "%s: %+v", result, again)
		require.Equal(t, report.Session, again.Session)
		require.Equal(t, contract.Usage{InputTokens: 2000, OutputTokens: 68, USDMicros: again.Usage.USDMicros, Known: true}, again.Usage)
		asked := b.server.Asked()
		require.Contains(t, string(asked[len(asked)-1].Body), "repair the fault in a.txt", "the history is gone")
	})
}

func TestRealProgramSaysThatASessionIsLost(t *testing.T) {
	eachReal(t, func(t *testing.T, p realProgram) {
		b := p.bench(t, repairs("x"))
		b.req.Session = "00000000-0000-4000-8000-00000000dead"
		if p.name == "opencode" {
			b.req.Session = "ses_0000000000000000000000dead"
		}
		report, result := b.launch(t.Context(), t)
		require.True(t, report.Lost, "%s: %+v", result, report)
		require.False(t, report.Done)
	})
}

func TestRealProgramGivesUpAtALimit(t *testing.T) {
	eachReal(t, func(t *testing.T, p realProgram) {
		b := p.bench(t, func(a modelserver.Ask) modelserver.Turn { return refusal(a.Wire, 429) })
		began := time.Now()
		report, result := b.launch(t.Context(), t)
		code := result.ExitCode
		v := report.Verdict(b.adapter.About(), quota.Launch{ExitCode: &code, ObservedAt: time.Now()})
		require.Equal(t, quota.RateLimited, v.Outcome, "%s: %+v", result, report)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}

func refusal(wire modelserver.Wire, status int) modelserver.Turn {
	body := `{"error":{"message":"Rate limit reached for model-x. Please try again later.","type":"requests","code":"rate_limit_exceeded"}}`
	switch wire {
	case modelserver.Anthropic:
		body = `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`
	case modelserver.Gemini:
		body = fmt.Sprintf(`{"error":{"code":%d,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, status)
	}
	return modelserver.Turn{Refuse: &modelserver.Refusal{Status: status, Body: body}}
}

func TestRealProgramIsStoppedInTheMiddleOfATool(t *testing.T) {
	eachReal(t, func(t *testing.T, p realProgram) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := p.bench(t, func(a modelserver.Ask) modelserver.Turn {
			if a.Shell == "" {
				return modelserver.Turn{Text: "A title"}
			}
			return modelserver.Turn{Shell: "touch running; sleep 1000"}
		})
		mark := filepath.Join(b.req.Worktree, "running")
		var seen atomic.Bool
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(mark); err == nil {
					seen.Store(true)
					cancel()
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		report, result := b.launch(ctx, t)
		require.True(t, seen.Load())
		require.Equal(t, process.EndCancelled, result.Ended)
		require.False(t, report.Done)
		require.NotEmpty(t, report.Session, "known while it runs")
	})
}

// A model that says nothing, breaks off or has nothing to say: the launch ends,
// and nothing of it is taken for work that was done.
func TestRealProgramWhoseModelFails(t *testing.T) {
	for name, turn := range map[string]modelserver.Turn{"never answers": {Hang: true}, "breaks off": {Cut: true}, "says nothing": {}} {
		t.Run(name, func(t *testing.T) {
			eachReal(t, func(t *testing.T, p realProgram) {
				b := p.bench(t, func(modelserver.Ask) modelserver.Turn { return turn })
				b.idle = 25 * time.Second
				report, result := b.launch(t.Context(), t)
				_, delivered := provider.ResultBlock(report.Final)
				require.False(t, delivered, report.Final)
				code := result.ExitCode
				at := quota.Launch{ObservedAt: time.Now()}
				if result.Ended == process.EndExited || result.Ended == process.EndFinalEvent {
					at.ExitCode = &code
				}
				v := report.Verdict(b.adapter.About(), at)
				t.Logf("%s: %s, %s: %q", p.name, result, v.Outcome, report.Told)
				if name != "never answers" && report.Done {
					return // claude asks again without a stream, and some end well with an empty message: no result is what tells
				}
				require.False(t, report.Done)
				require.Contains(t, []quota.Outcome{quota.Error, quota.Timeout, quota.Overloaded}, v.Outcome)
			})
		})
	}
}

// The programs that guard what is outside of the worktree must let the result be
// written by their own tools, not by a command alone.
func TestRealProgramWritesTheResultFileByItsOwnTool(t *testing.T) {
	write := map[string]func(path string) modelserver.Turn{
		"claude": func(path string) modelserver.Turn {
			return modelserver.Turn{Tool: "Write", Input: map[string]any{"file_path": path, "content": realResult}}
		},
		"gemini": func(path string) modelserver.Turn {
			return modelserver.Turn{Tool: "write_file", Input: map[string]any{"file_path": path, "content": realResult}}
		},
	}
	eachReal(t, func(t *testing.T, p realProgram) {
		turn, ok := write[p.name]
		if !ok {
			t.Skipf("%s writes by commands, or hands in its last message", p.name)
		}
		var file string
		b := p.bench(t, func(a modelserver.Ask) modelserver.Turn {
			if a.Shell != "" && a.Results == 0 {
				return turn(file)
			}
			return modelserver.Turn{Text: "Done."}
		})
		file = b.req.ResultFile
		report, result := b.launch(t.Context(), t)
		require.True(t, report.Done, "%s: %+v", result, report)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.JSONEq(t, realResult, string(data))
	})
}

// `make test-agents` installs the versions that the adapters name as tested.
func TestTestedVersionsAreTheInstalledOnes(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	packages := map[string]string{
		"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "opencode": "opencode-ai",
		"gemini": "@google/gemini-cli", "qwen": "@qwen-code/qwen-code",
	}
	for name, adapter := range adapters() {
		require.Contains(t, string(makefile), packages[name]+"@"+adapter.About().Tested, name)
	}
}
