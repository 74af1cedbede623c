package workflows

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"

	"mendflow/internal/contract"
)

// A run lasts for days and moves on to the newest build, which replays it. Kept
// histories show whether it could: a change of workflow code that breaks one
// needs workflow.GetVersion. Record anew only when nothing runs in production
// that the old histories stand for:
//
//	go test ./workflows -run TestReplay -update-histories
var updateHistories = flag.Bool("update-histories", false, "record the histories of testdata/replay from the real server")

const replayDir = "testdata/replay"

func TestReplayOfKeptHistories(t *testing.T) {
	t.Parallel()
	switch {
	case *updateHistories:
		recordHistories(t)
	case *updateScheduled:
		recordScheduled(t, map[string]bool{})
	}
	files, err := filepath.Glob(filepath.Join(replayDir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, newReplayer(t).ReplayWorkflowHistoryFromJSONFile(quietLogger{}, file))
		})
	}
}

// newReplayer replays histories with the workflows as they are now.
func newReplayer(t *testing.T) worker.WorkflowReplayer {
	t.Helper()
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true, Interceptors: Interceptors()})
	require.NoError(t, err)
	Register(replayer)
	return replayer
}

// scenario is a run whose histories are kept.
type scenario struct {
	name string
	host func() *host
	run  func(t *testing.T, l *lab) // begun to ended; nil: begin and wait
	// pools of the run; nil: one of a program.
	pools func() []contract.Pool
	more  func(l *lab) []execution // executions beside those of the run
}

func scenarios() []scenario {
	diamond := func() *host {
		return newHost(unit("a", 0), unit("b", 1, "a"), unit("c", 1, "a"), unit("d", 2, "b", "c"))
	}
	undead := func() *host {
		h := diamond()
		h.undead = "end program: still alive: 7 (agent)"
		return h
	}
	return []scenario{
		{name: "green", host: diamond},
		{name: "retry", host: func() *host {
			h := diamond()
			h.work = func(in contract.NodeInput) attemptScript {
				switch {
				case in.Node == "b" && in.Attempt == 1:
					return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseHost, Reason: "setup"}}
				case in.Node == "c":
					return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "no"}}
				}
				return attemptScript{}
			}
			return h
		}},
		{name: "red-gate", host: func() *host {
			h := diamond()
			h.gate = func(_ context.Context, in contract.GateInput) (contract.GateEnd, error) {
				end := contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth"}
				if in.Purpose == gateFinal {
					end.Verdict, end.Failing = gateRed, "go test ./..."
				}
				return end, nil
			}
			return h
		}},
		{name: "phases", host: func() *host {
			h := newHost(unit("a", 0), unit("b", 1, "a"))
			h.units[1].Phase = 1
			h.opened.Baseline = "require"
			return h
		}},
		{name: "quota-wall", host: func() *host {
			h := diamond()
			reset := time.Now().Add(4 * time.Second).UTC()
			h.work = func(in contract.NodeInput) attemptScript {
				if time.Now().After(reset) {
					return attemptScript{}
				}
				return attemptScript{end: contract.WorkerEnd{
					Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
					Kept: &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: "worker"},
				}}
			}
			return h
		}},
		{name: "pause-resume", host: diamond, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("RunWorker")
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", entered)
			l.ordered(contract.CommandPause, contract.Operator{Reason: "maintenance"})
			l.untilStatus(contract.RunPaused)
			release()
			l.signal(contract.CommandResume, nil)
			l.wait()
		}},
		{name: "pause-finish", host: diamond, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("LandWork")
			defer release()
			l.begin()
			awaitClosed(t, "LandWork", entered)
			l.signal(contract.CommandPause, contract.Operator{Finish: true})
			l.untilStatus(contract.RunPausing)
			release()
			l.untilStatus(contract.RunPaused)
			l.ordered(contract.CommandResume, contract.Operator{})
			l.wait()
		}},
		{name: "cancel", host: diamond, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("RunWorker")
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", entered)
			l.ordered(contract.CommandCancel, contract.Operator{Reason: "enough"})
			l.wait()
		}},
		{name: "continue-as-new", host: func() *host {
			h := diamond()
			bulky(h)
			return h
		}, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("RunWorker")
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", entered)
			l.renew(l.id)
			l.renew(contract.BrokerID(l.accounts()[0]))
			release()
			l.wait()
		}},
		{name: "lost-broker", host: diamond, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("RunWorker")
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", entered)
			require.NoError(t, l.client.TerminateWorkflow(t.Context(), contract.BrokerID(l.accounts()[0]), "", "test"))
			release()
			l.wait()
		}},
		{name: "no-hosts", host: diamond, run: func(t *testing.T, l *lab) { // takes minutes: nobody takes its attempt in time
			l.in.Pools[0].ID = "nobody"
			l.begin()
			l.until("the hold", func(v contract.RunView) bool { return v.Status == contract.RunPaused })
			l.serve("nobody")
			l.wait()
		}},
		{name: "undead-pause", host: undead, run: func(t *testing.T, l *lab) {
			worker, release := l.host.hold("RunWorker")
			proof, prove := l.host.hold("ProveQuiet")
			defer prove()
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", worker)
			l.ordered(contract.CommandPause, contract.Operator{RequestID: "r-1"})
			awaitClosed(t, "ProveQuiet", proof)
			l.ordered(contract.CommandPause, contract.Operator{RequestID: "r-1"})
			l.host.undead = ""
			release()
			prove()
			l.untilStatus(contract.RunPaused)
			l.ordered(contract.CommandResume, contract.Operator{})
			l.wait()
		}},
		{name: "quiesce-force", host: undead, run: func(t *testing.T, l *lab) {
			worker, release := l.host.hold("RunWorker")
			proof, prove := l.host.hold("ProveQuiet")
			defer prove()
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", worker)
			l.ordered(contract.CommandPause, contract.Operator{})
			awaitClosed(t, "ProveQuiet", proof)
			l.host.undead = ""
			release()
			l.ordered(contract.CommandQuiesce, contract.Operator{Force: true})
			l.ordered(contract.CommandResume, contract.Operator{})
			l.ordered(contract.CommandRecover, contract.Operator{How: contract.RecoverClean})
			l.wait()
		}},
		{name: "attended", host: attendedHost, pools: attendedPools, run: attend},
		{name: "pools-and-budget", host: diamond, run: func(t *testing.T, l *lab) {
			entered, release := l.host.hold("RunWorker")
			defer release()
			l.begin()
			awaitClosed(t, "RunWorker", entered)
			tokens := int64(100_000_000)
			l.ordered(contract.CommandBudget, contract.Operator{Tokens: &tokens})
			l.ordered(contract.CommandPools, contract.Operator{Pools: l.in.Pools})
			release()
			l.wait()
		}},
	}
}

// recordHistories runs every scenario and keeps what is new of its histories.
func recordHistories(t *testing.T) {
	old, err := filepath.Glob(filepath.Join(replayDir, "*.json"))
	require.NoError(t, err)
	for _, file := range old {
		require.NoError(t, os.Remove(file))
	}
	require.NoError(t, os.MkdirAll(replayDir, 0o755))
	kept := map[string]bool{}
	for _, s := range slices.Concat(scenarios(), gateScenarios(), closingScenarios()) {
		t.Run("record-"+s.name, func(t *testing.T) {
			var pools []contract.Pool
			if s.pools != nil {
				pools = s.pools()
			}
			l := newLab(t, s.host(), pools...)
			if s.run != nil {
				s.run(t, l)
			} else {
				l.begin().wait()
			}
			executions := l.executions()
			broker := contract.BrokerID(l.accounts()[0])
			described, err := l.client.DescribeWorkflowExecution(patience(t), broker, "")
			require.NoError(t, err)
			executions = append(executions, execution{broker, described.GetWorkflowExecutionInfo().GetFirstRunId()}, execution{broker, ""})
			if s.more != nil {
				executions = append(executions, s.more(l)...)
			}
			for _, x := range executions {
				l.keep(s.name, x, kept)
			}
		})
	}
	recordScheduled(t, kept)
}

// keep writes an execution's history unless one like it is kept already.
func (l *lab) keep(scenario string, x execution, kept map[string]bool) {
	l.t.Helper()
	h := l.history(x.id, x.runID)
	shape := shapeOf(h)
	if kept[shape] {
		return
	}
	kept[shape] = true
	for _, e := range h.Events { // what no replay reads only takes room
		if signal := e.GetWorkflowExecutionSignaledEventAttributes(); signal.GetSignalName() == foreignSignal {
			signal.Input = &commonpb.Payloads{}
		}
		if started := e.GetWorkflowTaskStartedEventAttributes(); started != nil {
			started.WorkerVersion, started.Identity, started.RequestId = nil, "", ""
		}
		if completed := e.GetWorkflowTaskCompletedEventAttributes(); completed != nil {
			completed.WorkerVersion, completed.MeteringMetadata, completed.Identity = nil, nil, ""
		}
		if activity := e.GetActivityTaskStartedEventAttributes(); activity != nil {
			activity.WorkerVersion, activity.Identity, activity.RequestId = nil, "", ""
		}
	}
	data, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	require.NoError(l.t, err)
	kind := strings.ToLower(h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
	var name string
	for i := 1; ; i++ {
		name = filepath.Join(replayDir, fmt.Sprintf("%s-%s-%d.json", scenario, kind, i))
		if _, err := os.Stat(name); os.IsNotExist(err) {
			break
		}
	}
	require.NoError(l.t, os.WriteFile(name, append(data, '\n'), 0o644))
}

// shapeOf is what a history does, without when and for whom: the workflow, and the
// kinds of its events with what they name.
func shapeOf(h *historypb.History) string {
	var b strings.Builder
	b.WriteString(h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
	for _, e := range h.Events {
		fmt.Fprintf(&b, " %d%s%s", e.EventType, e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(),
			e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName())
	}
	return b.String()
}
