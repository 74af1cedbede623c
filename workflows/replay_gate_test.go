package workflows

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// sabotaged is a host whose gate is red with the first landing of n4.
func sabotaged() *host {
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
	return h
}

// gateScenarios are runs with a red gate or with people, whose histories are kept.
func gateScenarios() []scenario {
	return []scenario{
		{name: "culprit", host: sabotaged},
		{name: "culprit-carried", host: sabotaged, run: carrySearch},
		{name: "reblock", host: func() *host {
			h := newHost(unit("a", 0), unit("b", 1, "a"))
			h.hub.red = func([]string) bool { return true }
			return h
		}},
		{name: "triage", host: attended, run: func(t *testing.T, l *lab) {
			l.begin()
			l.untilStatus(contract.RunPaused)
			l.ordered(contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerClarified, Text: "the second"})
			l.until("the rest is asked", func(v contract.RunView) bool {
				return v.Status == contract.RunPaused && v.Nodes[string(contract.NodeLanded)] == 2
			})
			l.signal(contract.CommandTriage, contract.Operator{Item: "f-fails", Action: contract.TriageRetry})
			l.wait()
		}},
		{name: "halt", host: attended, run: func(t *testing.T, l *lab) {
			l.begin()
			l.untilStatus(contract.RunPaused)
			l.ordered(contract.CommandTriage, contract.Operator{Item: contract.EveryItem, Action: contract.TriageHalt})
			l.wait()
		}},
	}
}

// carrySearch pauses a run in the middle of its search, lets it continue as new
// and resumes it.
func carrySearch(t *testing.T, l *lab) {
	entered, release := l.host.holdNth("RunTrial", 3)
	defer release()
	l.begin()
	awaitClosed(t, "a trial", entered)
	l.ordered(contract.CommandPause, contract.Operator{})
	l.untilStatus(contract.RunPaused)
	l.renew(l.id)
	release()
	l.ordered(contract.CommandResume, contract.Operator{})
	l.wait()
}

// A run continues as new in the middle of a search and asks nothing twice.
func TestSearchSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	h := sabotaged()
	l := newLab(t, h)
	carrySearch(t, l)
	require.Equal(t, 5, h.count("Suspects"), "the pages are read once, then they are carried")
	require.LessOrEqual(t, h.trialled(), 7)
	require.Len(t, h.hub.reverts, 1)
	require.Equal(t, 2, h.rows()["n4"].Opening)
	require.Len(t, h.record.Gates, 2)
}

// An execution that closed at its first red gate before red gates were attributed
// does so when it is replayed: red-gate-remediation-1.json is one.
func TestOldHistoriesCloseAtTheFirstRedGate(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	h.gate = func(_ context.Context, in contract.GateInput) (contract.GateEnd, error) {
		end := contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth"}
		if in.Purpose == gateFinal {
			end.Verdict, end.Failing = gateRed, "go test ./..."
		}
		return end, nil
	}
	w := newWorld(t, h)
	w.env.OnGetVersion(changeAttribution, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	result := w.run(t)
	require.Equal(t, contract.RunBlocked, result.Status)
	require.Contains(t, result.Reason, "the gate is red: `go test ./...` fails on truth")
	require.Zero(t, h.count("Suspects"))
	require.Len(t, h.tried("a"), 1)
}
