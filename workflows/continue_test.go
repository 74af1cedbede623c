package workflows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// ballast makes a workflow's history so large that the server suggests to
// continue as new, and waits for what follows. Tasks that took it in may have been
// started before it counted, so that small ones are sent until it happens.
func (l *lab) ballast(id, what string, happened func() bool) {
	l.t.Helper()
	send := func(size int) {
		require.NoError(l.t, l.client.SignalWorkflow(patience(l.t), id, "", foreignSignal, strings.Repeat("x", size)))
	}
	for range 3 {
		send(1_500_000)
	}
	testkit.Eventually(l.t, what, func() bool {
		if happened() {
			return true
		}
		send(1)
		return false
	})
}

func (l *lab) runID(id string) string {
	l.t.Helper()
	described, err := l.client.DescribeWorkflowExecution(patience(l.t), id, "")
	require.NoError(l.t, err)
	return described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// renew makes a workflow continue as new and waits until it has.
func (l *lab) renew(id string) {
	l.t.Helper()
	before := l.runID(id)
	l.ballast(id, id+" continues as new", func() bool { return l.runID(id) != before })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bulky gives a unit so much to carry that the state of a few does not fit into an input.
func bulky(h *host) {
	for i := range h.units {
		for j := range 16 {
			h.units[i].Files = append(h.units[i].Files, fmt.Sprintf("%s/%02d/%s", h.units[i].ID, j, strings.Repeat("folder/", 40)))
		}
	}
}

func TestRunContinuesAsNewInTheMiddleOfDrives(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"inline", "stored"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a"), unit("d", 1, "b"), unit("e", 2, "c", "d"), unit("f", 0), unit("g", 0))
			if size == "stored" {
				bulky(h)
			}
			entered, release := h.hold("RunWorker")
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, "RunWorker", entered)
			l.until("a baseline", func(v contract.RunView) bool { return h.count("RunGate") == 1 })

			l.renew(l.id)
			require.Equal(t, size == "stored", h.count("SaveState") > 0)
			require.Equal(t, contract.RunImplementing, l.untilStatus(contract.RunImplementing).Status)
			l.renew(l.id)
			release()
			result := l.wait()

			require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
			require.Len(t, h.attempts, 7, "nothing is done twice")
			require.Len(t, h.rows(), 7)
		})
	}
}

// What status says is the same before and after.
func TestHoldsSurviveContinueAsNew(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	reset := time.Now().Add(time.Hour).UTC()
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Node != "a" || in.Attempt > 1 {
			return attemptScript{}
		}
		return attemptScript{end: contract.WorkerEnd{
			Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
			Kept: &contract.Kept{Attempt: 1, Host: testHost, Pool: in.Pool, Step: "worker"},
		}}
	}
	l := newLab(t, h).begin()
	l.until("the quota hold", func(v contract.RunView) bool { return v.Status == contract.RunPaused && len(v.Holds) == 1 })
	l.ordered(contract.CommandPause, contract.Operator{Reason: "maintenance", By: "ops"})
	before := l.until("both holds", func(v contract.RunView) bool { return v.Status == contract.RunPaused && len(v.Holds) == 2 })

	l.renew(l.id)
	require.Equal(t, before, l.view())

	l.ordered(contract.CommandResume, contract.Operator{Now: true})
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.NotNil(t, h.tried("a")[1].Kept)
}

// Orders that come while the state is being stored, or loaded, are obeyed.
func TestOrdersDuringContinueAsNewAreObeyed(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"SaveState", "LoadState"} {
		for _, way := range []string{"signal", "update"} {
			t.Run(moment+"-"+way, func(t *testing.T) {
				t.Parallel()
				h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0), unit("e", 0), unit("f", 0))
				bulky(h)
				worker, releaseWorker := h.hold("RunWorker")
				defer releaseWorker()
				entered, release := h.hold(moment)
				defer release()
				l := newLab(t, h).begin()
				awaitClosed(t, "RunWorker", worker)
				before := l.runID(l.id)
				l.ballast(l.id, moment, func() bool { return isClosed(entered) })

				answered := make(chan error, 1)
				if way == "signal" {
					l.signal(contract.CommandPause, "maintenance")
					answered <- nil
				} else {
					go func() {
						_, err := l.update(contract.CommandPause, contract.Operator{Reason: "maintenance"})
						answered <- err
					}()
				}
				release()
				require.NoError(t, <-answered)
				testkit.Eventually(t, "continue-as-new", func() bool { return l.runID(l.id) != before })
				v := l.untilStatus(contract.RunPaused)
				require.Equal(t, "maintenance", v.Holds[0].Reason)
				releaseWorker()
				l.signal(contract.CommandResume, nil)

				require.Equal(t, contract.RunCompleted, l.wait().Status)
			})
		}
	}
}

// A steady stream of reports must not keep a run from continuing as new.
func TestRunContinuesAsNewUnderLoad(t *testing.T) {
	t.Parallel()
	h := newHost()
	for i := range 40 {
		h.units = append(h.units, unit(nodeName(i), 0))
	}
	l := newLab(t, h, testPool("main", 3)).begin()
	testkit.Eventually(t, "attempts", func() bool { return h.count("RunWorker") > 2 })

	l.renew(l.id)
	require.Less(t, h.count("RunWorker"), 40, "it did not wait for the end")
	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, h.attempts, 40)
}

func TestBrokerContinuesAsNewWithSlotsTakenAndAskedFor(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a", "b"))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h, testPool("main", 1)).begin()
	awaitClosed(t, "RunWorker", entered)
	broker := contract.BrokerID(l.accounts()[0])

	l.renew(broker)
	l.renew(broker)
	answer, err := l.client.QueryWorkflow(t.Context(), broker, "", contract.QueryStatus)
	require.NoError(t, err)
	var status contract.BrokerStatus
	require.NoError(t, answer.Get(&status))
	require.Equal(t, 1, status.Running)
	release()

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, h.attempts, 3)
}

// What a broker remembers of its operators does not fit into an input: it goes
// by reference, and is remembered.
func TestLargeBrokerContinuesAsNew(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)
	broker := contract.BrokerID(l.accounts()[0])
	request := func(i int, model string) contract.Operator {
		return contract.Operator{RequestID: fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 150)), Model: model}
	}
	for i := range 200 {
		require.NoError(t, l.client.SignalWorkflow(patience(t), broker, "", contract.CommandReopen, request(i, "m")))
	}
	l.renew(broker)
	handle, err := l.client.UpdateWorkflow(patience(t), client.UpdateWorkflowOptions{
		WorkflowID: broker, UpdateName: contract.CommandReopen, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{request(7, "other")},
	})
	require.NoError(t, err)
	require.ErrorContains(t, handle.Get(t.Context(), nil), "before", "the same request with another payload")
	release()

	require.Equal(t, contract.RunCompleted, l.wait().Status)
}

// A workflow cancel that comes while the state is being stored is not lost with
// the execution that it was meant for.
func TestWorkflowCancelDuringContinueAsNew(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0), unit("e", 0), unit("f", 0))
	bulky(h)
	worker, releaseWorker := h.hold("RunWorker")
	defer releaseWorker()
	entered, release := h.hold("SaveState")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", worker)
	l.ballast(l.id, "SaveState", func() bool { return isClosed(entered) })

	require.NoError(t, l.client.CancelWorkflow(t.Context(), l.id, ""))
	testkit.Eventually(t, "the cancel is in", func() bool {
		for _, e := range l.history(l.id, "").Events {
			if e.EventType == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED {
				return true
			}
		}
		return false
	})
	release()

	require.Equal(t, contract.RunCancelled, l.wait().Status)
}
