package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// recorded are the events that a real program printed in a case (internal/provider/testdata).
func recorded(t *testing.T, program, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testkit.Root(), "internal", "provider", "testdata", "agent-runs.jsonl"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var row struct {
			Provider, Case string
			Raw            []string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		if row.Provider == program && row.Case == name && len(row.Raw) > 0 {
			return strings.Join(row.Raw, "\n") + "\n"
		}
	}
	t.Fatalf("no row of %s %s has events", program, name)
	return ""
}

// oddEnd is a program that does not end as a good one does.
type oddEnd struct {
	name, provider string
	options        string
	prints         string // once, before then
	then           string // shell lines
	outcome        contract.Outcome
	cause          contract.Cause
	says           string // in explain: the program's own words, or what was wrong with it
}

// codexBegins is what codex prints before the model's first answer.
const codexBegins = `{"type":"thread.started","thread_id":"00000000-0000-4000-8000-00000000beef"}` + "\n" + `{"type":"turn.started"}` + "\n"

// loop is opencode that takes one step after the other.
func loop(reason string) string {
	return `while :; do echo '{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}'; ` +
		`echo '{"type":"step_finish","sessionID":"ses_1","part":{"type":"step-finish","reason":"` + reason +
		`","tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0}}'; sleep 0.05; done`
}

func oddEnds(t *testing.T) []oddEnd {
	t.Helper()
	return []oddEnd{
		{
			name: "asks", provider: "gemini",
			prints: "{\"type\":\"init\",\"session_id\":\"s\"}\nDo you trust the files in this folder? (y/N)\n", then: "sleep 1000",
			outcome: contract.OutcomeError, cause: contract.CauseHost,
			says: `it asked for a permission ("Do you trust the files in this folder? (y/N)") and nobody is there to answer`,
		},
		{
			name: "broken", provider: "opencode",
			then:    loop("unknown"), // the stream breaks off, and the program begins a new step without end
			outcome: contract.OutcomeError, cause: contract.CauseProvider,
			says: "the model's answer broke off, again and again",
		},
		{
			name: "steps", provider: "opencode", options: `, steps: "7"`,
			then:    loop("tool-calls"),
			outcome: contract.OutcomeError, cause: contract.CauseWork,
			says: "it took more than 7 model steps",
		},
		{
			name: "silent", provider: "codex", prints: codexBegins, then: "sleep 1000",
			outcome: contract.OutcomeTimeout, cause: contract.CauseHost,
			says: "no output for too long: the program was stopped",
		},
		{
			name: "offline", provider: "codex",
			prints:  codexBegins + `{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}` + "\n",
			then:    "sleep 1000",
			outcome: contract.OutcomeError, cause: contract.CauseProvider,
			says: "no output for too long: the program was stopped; it said last: Reconnecting... waiting for network",
		},
		{
			name: "empty", provider: "gemini", prints: recorded(t, "gemini", "empty"), then: "exit 0",
			outcome: contract.OutcomeError, cause: contract.CauseProvider,
			says: "The model returned an empty response with no text or thoughts.",
		},
		{
			name: "credit", provider: "claude", prints: recorded(t, "claude", "credit_400"), then: "exit 0",
			outcome: contract.OutcomeCreditExhausted,
			says:    "Credit balance is too low",
		},
		{
			name: "cut", provider: "qwen", prints: recorded(t, "qwen", "truncated"), then: "exit 0",
			outcome: contract.OutcomeError, cause: contract.CauseProvider,
			says: "Model stream ended without a finish reason.",
		},
	}
}

// Programs that print what real ones printed: each end is what it was, within
// its bound, and explain has the program's own words.
func TestOddEndsOfAgentsAreWhatTheyAre(t *testing.T) {
	t.Parallel()
	ends := oddEnds(t)
	dir := t.TempDir()
	var pools []string
	for _, e := range ends {
		program := filepath.Join(dir, e.name)
		require.NoError(t, os.WriteFile(program+".out", []byte(e.prints), 0o600))
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat '"+program+".out'\n"+e.then+"\n"), 0o755))
		pools = append(pools, fmt.Sprintf("id: %s, provider: %s, options: {program: %q%s}", e.name, e.provider, program, e.options))
	}
	lab := agentLab(t, nil, pools...)
	var waiting []func()
	for i, e := range ends {
		own := filepath.Join(dir, e.name+".yaml")
		require.NoError(t, os.WriteFile(own, []byte("version: 1\npools:\n  - {"+pools[i]+"}\n"), 0o600))
		c := testkit.NewCase(t, testkit.RunID(t)+"-"+e.name, testkit.Plan{
			Nodes: []testkit.Node{{ID: "n"}}, Policy: map[string]any{"idle_minutes": 1, "unattended": true},
		})
		lab.Client.Start(t, c.Run, c.Repo.URL, c.Path, own)
		waiting = append(waiting, func() { e.check(t, lab, c.Run) })
	}
	for _, check := range waiting {
		check()
	}
}

// check waits until the node's first attempt is over and looks what it became.
func (e oddEnd) check(t *testing.T, lab *testkit.Lab, run string) {
	t.Helper()
	testkit.Eventually(t, "the first attempt of "+run+" is over", func() bool {
		v, err := lab.Client.Status(run)
		if err != nil || v.Status.Closed() {
			return err == nil
		}
		answer, err := lab.Client.Server().QueryWorkflow(t.Context(), contract.LevelID(run, 1), "", contract.QueryStatus)
		var level contract.LevelStatus
		return err == nil && answer.Get(&level) == nil && len(level.Waiting) > 0 && attemptBegan(lab, run)
	})
	if v, err := lab.Client.Status(run); err != nil || !v.Status.Closed() { // it would be tried again: that is not the question
		lab.Client.Starter(t, "cancel", run)
		lab.Client.AwaitClosed(t, run)
	}
	require.Empty(t, testkit.Marked(run))
	first := lab.Client.Nodes(t, run)["n"].Attempts[0]
	require.Equal(t, e.outcome, first.Outcome, "%s: %s", e.name, first.Reason)
	require.Equal(t, e.cause, first.Cause, "%s: %s", e.name, first.Reason)
	require.Contains(t, lab.Client.OK(t, "explain", run, "n"), e.says, e.name)
}

func attemptBegan(lab *testkit.Lab, run string) bool {
	_, err := os.Stat(filepath.Join(lab.Host.State, "artifacts", "runs", run, "nodes", "n", "a1", "worker.log"))
	return err == nil
}
