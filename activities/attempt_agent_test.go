package activities

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider/claude"
	"mendflow/internal/provider/codex"
)

// agentScene is an attempt whose worker is a script that plays an agent program.
type agentScene struct {
	*landScene
	folder string // what the program left: its arguments and its stdin
	script string
}

const agentSession = "00000000-0000-4000-8000-00000000beef"

// newAgentScene makes the pool's program play: each launch prints the events and
// runs the shell lines, which see what an agent sees.
func newAgentScene(t *testing.T, name contract.Provider) *agentScene {
	t.Helper()
	s := &agentScene{landScene: newLandScene(t), folder: t.TempDir()}
	s.script = filepath.Join(s.folder, "agent")
	s.host.Providers.Register(contract.ProviderClaude, claude.Provider{})
	s.host.Providers.Register(contract.ProviderCodex, codex.Provider{})
	if _, err := process.SandboxAvailable(); err == nil {
		s.host.Confine = true
	}
	require.NoError(t, s.host.MakeFolders())
	s.in.Attempt = 2
	s.in.Definition = &contract.Pool{
		ID: "p", Provider: name, Account: "p", MaxConcurrent: 1, Writable: []string{s.folder},
		Options: map[string]string{"program": s.script},
	}
	return s
}

// plays writes the program.
func (s *agentScene) plays(t *testing.T, code string, events []string, lines ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "events"), []byte(strings.Join(events, "\n")+"\n"), 0o600))
	text := "#!/bin/sh\ncd '" + s.folder + "'\nprintf '%s\\n' \"$@\" >> args\ncat > stdin\n" +
		strings.Join(lines, "\n") + "\ncat events\nexit " + code + "\n"
	require.NoError(t, os.WriteFile(s.script, []byte(text), 0o700))
}

func (s *agentScene) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.folder, name))
	require.NoError(t, err)
	return string(data)
}

func (s *agentScene) run(t *testing.T) contract.WorkerEnd {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	attempt := &Attempt{Host: s.host, Now: time.Now, Jitter: func() float64 { return 0 }, Local: time.UTC}
	env.RegisterActivity(attempt.RunWorker)
	value, err := env.ExecuteActivity(attempt.RunWorker, s.in.NodeInput)
	require.NoError(t, err)
	var end contract.WorkerEnd
	require.NoError(t, value.Get(&end))
	return end
}

// recorded are the raw events of a recorded run.
func recorded(t *testing.T, provider, name string) []string {
	t.Helper()
	f, err := os.Open("../internal/provider/testdata/agent-runs.jsonl")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row struct {
			Provider, Case string
			Raw            []string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		if row.Provider == provider && row.Case == name {
			return row.Raw
		}
	}
	require.Fail(t, "there is no row", "%s %s", provider, name)
	return nil
}

const agentResult = `{"items":[{"finding":"F","status":"resolved"}]}`

// events of a session that ends well with a last message.
func claudeEnds(message string) []string {
	text, _ := json.Marshal(message)
	return []string{
		`{"type":"system","subtype":"init","session_id":"` + agentSession + `"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":` + string(text) + `,"session_id":"` + agentSession + `","total_cost_usd":0.5,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":3}}`,
	}
}

func codexEnds(message string) []string {
	text, _ := json.Marshal(message)
	return []string{
		`{"type":"thread.started","thread_id":"` + agentSession + `"}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":` + string(text) + `}}`,
		`{"type":"turn.completed","usage":{"input_tokens":15,"output_tokens":3}}`,
	}
}

func TestAgentDeliversItsResultInTheFileOrInItsLastMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   contract.Provider
		events func(string) []string
		usage  contract.Usage
	}{
		{contract.ProviderClaude, claudeEnds, contract.Usage{InputTokens: 15, OutputTokens: 3, USDMicros: 500_000, Known: true}},
		{contract.ProviderCodex, codexEnds, contract.Usage{InputTokens: 15, OutputTokens: 3, Known: true}},
	} {
		for name, lines := range map[string][]string{
			"file":  {"printf '%s' '" + agentResult + "' > \"$MENDFLOW_RESULT\""},
			"block": nil,
		} {
			t.Run(string(c.name)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newAgentScene(t, c.name)
				message := "Done.\n\n```json\n" + agentResult + "\n```"
				if name == "file" {
					message = "Done."
				}
				s.plays(t, "0", c.events(message), append(lines, "echo repaired > \"$MENDFLOW_WORKTREE/a.txt\"")...)
				end := s.run(t)
				require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
				require.True(t, end.Delivered)
				require.Equal(t, c.usage, end.Usage)
				require.Contains(t, s.file(t, "stdin"), "### F: A fault")
				data, err := os.ReadFile(resultFile(s.host.attemptDir("r", "n", 2)))
				require.NoError(t, err)
				require.JSONEq(t, agentResult, string(data))

				landed := s.land(t)
				require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
				require.NotEmpty(t, landed.Commit)
			})
		}
	}
}

func TestAgentAtALimitKeepsItsSessionAndIsResumedInIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    contract.Provider
		row     string
		first   string // the event that names the session
		events  func(string) []string
		resumed []string
	}{
		{contract.ProviderClaude, "oauth_rl_unified_5h", "", claudeEnds, nil},
		{contract.ProviderCodex, "usage_limit_plus", `{"type":"thread.started","thread_id":"` + agentSession + `"}`, codexEnds, []string{"resume", agentSession}},
	} {
		t.Run(string(c.name), func(t *testing.T) {
			t.Parallel()
			s := newAgentScene(t, c.name)
			raw := recorded(t, string(c.name), c.row)
			if c.first != "" {
				raw = append([]string{c.first}, raw...)
			}
			s.plays(t, "0", raw, "echo half > \"$MENDFLOW_WORKTREE/a.txt\"") // exit code 0 means nothing
			end := s.run(t)
			require.Equal(t, contract.OutcomeRateLimited, end.Outcome, end.Reason)
			require.NotNil(t, end.Limit)
			require.NotNil(t, end.Limit.ResetAt)
			require.NotNil(t, end.Kept)
			require.NotEmpty(t, end.Kept.Session)
			require.Contains(t, end.Reason, "limit")

			s.plays(t, "0", c.events("```\n"+agentResult+"\n```"), `cp "$MENDFLOW_WORKTREE/a.txt" found`)
			s.in.Attempt, s.in.Kept = 3, end.Kept
			again := s.run(t)
			require.Equal(t, contract.OutcomeSuccess, again.Outcome, again.Reason)
			require.Equal(t, "half\n", s.file(t, "found"), "the tree is as it was left")
			require.Contains(t, s.file(t, "stdin"), "unfinished work of an earlier session")
			args := strings.Split(s.file(t, "args"), "\n")
			if c.resumed == nil {
				require.Contains(t, args, "--resume="+end.Kept.Session)
				return
			}
			require.True(t, slices.Contains(args, "resume") && slices.Contains(args, end.Kept.Session), args)
		})
	}
}

func TestLostSessionIsReplacedByAFreshOneInTheSameTree(t *testing.T) {
	t.Parallel()
	s := newAgentScene(t, contract.ProviderClaude)
	s.plays(t, "0", claudeEnds("```\n"+agentResult+"\n```"),
		`case "$*" in *--resume=*) echo "No conversation found with session ID: x" >&2; exit 1;; esac`)
	s.in.Kept = &contract.Kept{Attempt: 1, Host: "h", Pool: "p", Session: "gone"}
	require.NoError(t, os.WriteFile(filepath.Join(s.tree.Path(), "a.txt"), []byte("half\n"), 0o600))
	end := s.run(t)
	require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
	require.Equal(t, 1, strings.Count(s.file(t, "args"), "--resume=gone"))
	require.Equal(t, 2, strings.Count(s.file(t, "args"), "stream-json"))
	require.Contains(t, s.file(t, "stdin"), "unfinished work of an earlier session")
	require.Contains(t, s.file(t, "stdin"), "It has changed `a.txt` so far.")
}

func TestAgentWithoutAResultIsJudgedByItsWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		agent   contract.Provider
		exit    string
		events  []string
		lines   []string
		outcome contract.Outcome
		cause   contract.Cause
		reason  string
	}{
		{"ends well and says nothing", contract.ProviderClaude, "0", claudeEnds("I looked around."), nil,
			contract.OutcomeError, contract.CauseWork, "gave no result: I looked around."},
		{"exit 0 with an error event", contract.ProviderClaude, "0", recorded(t, "claude", "error_500.bounded"), nil,
			contract.OutcomeError, contract.CauseProvider, "500"},
		{"overloaded", contract.ProviderCodex, "1", recorded(t, "codex", "overloaded_529.bounded"), nil, contract.OutcomeOverloaded, "", "529"},
		{"credit", contract.ProviderCodex, "1", recorded(t, "codex", "insufficient_quota"), nil, contract.OutcomeCreditExhausted, "", "Quota exceeded"},
		{"a question", contract.ProviderClaude, "0", nil, []string{`echo "Do you want to allow this command? (y/n)"; sleep 600`},
			contract.OutcomeError, contract.CauseHost, "nobody is there to answer"},
		{"an announced sleep", contract.ProviderClaude, "0", nil,
			[]string{`echo '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":300,"retry_delay_ms":7795020,"error_status":429,"error":"rate_limit","session_id":"s"}'; sleep 600`},
			contract.OutcomeRateLimited, "", "429"},
		{"another program", contract.ProviderCodex, "0", []string{"Welcome to something else!"}, nil,
			contract.OutcomeError, contract.CauseWork, "tested with codex " + codex.Tested},
		{"an invalid block", contract.ProviderClaude, "0", claudeEnds("```\n{\"items\":[{\"finding\":\"F\",\"status\":\"magic\"}]}\n```"), nil,
			contract.OutcomeSuccess, "", ""}, // LandWork says what is wrong with it
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newAgentScene(t, c.agent)
			s.plays(t, c.exit, c.events, c.lines...)
			end := s.run(t)
			require.Equal(t, c.outcome, end.Outcome, end.Reason)
			require.Equal(t, c.cause, end.Cause, end.Reason)
			require.Contains(t, end.Reason, c.reason)
			require.False(t, end.Delivered)
		})
	}
}

// Ending at our own cap is nobody's fault once.
func TestAgentOverItsAllowanceIsInterruptedOnceAndThenCharged(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		s := newAgentScene(t, contract.ProviderClaude)
		s.in.Tokens, s.in.Capped = 100, again
		s.plays(t, "0", nil, `echo '{"type":"system","subtype":"init","session_id":"`+agentSession+`"}'`,
			`echo '{"type":"assistant","session_id":"`+agentSession+`","message":{"id":"m","usage":{"input_tokens":90,"output_tokens":20},"content":[]}}'`, "sleep 600")
		end := s.run(t)
		require.Contains(t, end.Reason, "it used more than 100 tokens")
		require.Len(t, end.Friction, 1)
		require.Equal(t, contract.FrictionOverAllowance, end.Friction[0].Type)
		if again {
			require.Equal(t, contract.OutcomeError, end.Outcome)
			require.Equal(t, contract.CauseWork, end.Cause)
			require.Nil(t, end.Kept)
			continue
		}
		require.Equal(t, contract.OutcomeInterrupted, end.Outcome)
		require.Equal(t, agentSession, end.Kept.Session, "it goes on where it was")
	}
}

func TestProgramThatDoesNotEndAfterItsFinalEventIsEnded(t *testing.T) {
	t.Parallel()
	s := newAgentScene(t, contract.ProviderClaude)
	s.plays(t, "0", nil, "cat <<'END'\n"+strings.Join(claudeEnds("```\n"+agentResult+"\n```"), "\n")+"\nEND", "sleep 600")
	end := s.run(t)
	require.Equal(t, contract.OutcomeSuccess, end.Outcome, end.Reason)
}

func TestInterruptedAgentKeepsItsSessionItsLogAndItsUsage(t *testing.T) {
	t.Parallel()
	s := newAgentScene(t, contract.ProviderClaude)
	aborted := `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","session_id":"` + agentSession + `","usage":{"input_tokens":7,"output_tokens":2}}`
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "aborted"), []byte(aborted+"\n"), 0o600))
	s.plays(t, "0", nil, "trap 'cat aborted; exit 0' INT", `echo '{"type":"system","subtype":"init","session_id":"`+agentSession+`"}'`,
		"touch started", "while :; do sleep 0.1; done")
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	interruptWhen(t, s.host, func() bool {
		_, err := os.Stat(filepath.Join(s.folder, "started"))
		return err == nil
	})
	attempt := &Attempt{Host: s.host, Now: time.Now, Jitter: func() float64 { return 0 }, Local: time.UTC}
	env.RegisterActivity(attempt.RunWorker)
	value, err := env.ExecuteActivity(attempt.RunWorker, s.in.NodeInput)
	require.NoError(t, err)
	var end contract.WorkerEnd
	require.NoError(t, value.Get(&end))
	require.Equal(t, contract.OutcomeInterrupted, end.Outcome, end.Reason)
	require.NotNil(t, end.Kept)
	require.Equal(t, agentSession, end.Kept.Session)
	require.Equal(t, contract.Usage{InputTokens: 7, OutputTokens: 2, Known: true}, end.Usage, "INT is the first signal: the program tells what it used")
	require.NotNil(t, end.Log)
}
