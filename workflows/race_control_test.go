package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// Races of control.md, and where each is tested:
//
//	 1  pause against the landing transaction     e2e.TestPauseAgainstTheLandingTransaction, TestPauseAndResumeAtEveryStage/land
//	 2  pause against the last completion         TestPauseWithTheLastNodesCompletion
//	 3  cancel against resume                     TestCancelAgainstResume
//	 4  disable against a run that starts         scheduler tests
//	 5  two operators in one task                 TestPauseAndResumeAtOnce, TestTwoOperatorsInOneTask
//	 6  settle against seal                       TestNodeThatReopensAfterItsDriveWasSealed
//	 7  drain against want-slot                   scheduler tests
//	 8  reset timer against an operator's pause   TestResetDuringAnOperatorsPause
//	 9  pools against a grant in flight           TestPoolsChangeAgainstAGrantInFlight
//	10  continue-as-new against each command      TestContinueAsNewAgainstEachCommand
//	11  answer against halt                       triage tests
//	12  host drain against landing                e2e.TestDrainAtEveryPoint

// 5: both orders are in the history before the run looks at either. The last one
// counts, and each is answered with what it did.
func TestTwoOperatorsInOneTask(t *testing.T) {
	t.Parallel()
	for _, first := range []string{contract.CommandPause, contract.CommandResume} {
		t.Run(first+"-first", func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0))
			entered, release := h.hold("RunWorker")
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, "RunWorker", entered)
			second := contract.CommandResume
			if first == contract.CommandResume {
				second = contract.CommandPause
			}
			// Both in one batch: the server takes them in order and schedules one task for them.
			l.signal(first, contract.Operator{By: "one", Finish: true})
			l.signal(second, contract.Operator{By: "two", Finish: true})

			l.until("both are in", func(contract.RunView) bool { return l.signalled(first) == 1 && l.signalled(second) == 1 })
			if second == contract.CommandPause {
				v := l.until("the pause", func(v contract.RunView) bool { return len(v.Holds) == 1 })
				require.Equal(t, "two", v.Holds[0].By)
				release()
				l.untilStatus(contract.RunPaused)
				l.ordered(contract.CommandResume, contract.Operator{})
			}
			release()
			require.Equal(t, contract.RunCompleted, l.wait().Status)
			require.Len(t, h.attempts, 1)
		})
	}
}

// 9: a pool leaves the composition while the grant for an attempt there is on its
// way: the grant is given back, the attempt runs on the new pool, no slot is lost.
func TestPoolsChangeAgainstAGrantInFlight(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h, testPool("main", 1)).begin()
	awaitClosed(t, "RunWorker", entered) // a runs, b waits for the slot
	other := testPool("other", 1)
	other.Account = l.in.Run + "-other"

	done := make(chan error, 1)
	go func() {
		_, err := l.update(contract.CommandPools, contract.Operator{Pools: []contract.Pool{other}})
		done <- err
	}()
	release() // a ends: its slot is granted to b, while the change is on its way
	require.NoError(t, <-done)
	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for _, node := range []string{"a", "b"} {
		require.Len(t, h.tried(node), 1, node)
	}
	for _, account := range []string{l.in.Run + "-main", l.in.Run + "-other"} {
		testkit.Eventually(t, "no slot of "+account+" is taken", func() bool {
			answer, err := l.client.QueryWorkflow(t.Context(), contract.BrokerID(account), "", contract.QueryStatus)
			if err != nil {
				return true // nobody ever asked this one
			}
			var status contract.BrokerStatus
			return answer.Get(&status) == nil && status.Running == 0 && status.Waiting == 0
		})
	}
}

// 10: each command comes as signal and as update while the run's state is being
// stored for the next execution: it is obeyed once, by whichever execution.
func TestContinueAsNewAgainstEachCommand(t *testing.T) {
	t.Parallel()
	tokens := int64(100_000_000)
	ways := []string{"signal", "update"}
	for i, c := range []struct {
		name  string
		order contract.Operator
		done  func(l *lab, v contract.RunView) bool
	}{
		{contract.CommandPause, contract.Operator{Reason: "maintenance", Finish: true}, func(_ *lab, v contract.RunView) bool { return len(v.Holds) == 1 }},
		{contract.CommandResume, contract.Operator{Budget: 77}, func(_ *lab, v contract.RunView) bool { return v.Budget != nil && v.Budget.Cap.Tokens == 77 }},
		{contract.CommandBudget, contract.Operator{Tokens: &tokens}, func(_ *lab, v contract.RunView) bool { return v.Budget != nil && v.Budget.Cap.Tokens == tokens }},
		{contract.CommandPools, contract.Operator{Pools: []contract.Pool{testPool("main", 2), testPool("other", 2)}}, func(_ *lab, v contract.RunView) bool { return len(v.Pools) == 2 }},
		{contract.CommandRecover, contract.Operator{How: "hope"}, nil},
		{contract.CommandGateRetry, contract.Operator{}, nil},
		{contract.CommandQuiesce, contract.Operator{}, nil},
		{contract.CommandReconcile, contract.Operator{Tokens: &tokens}, nil},
	} {
		for _, way := range ways[i%2 : i%2+1] { // each way in turn: what is stored and carried is the same
			t.Run(c.name+"-"+way, func(t *testing.T) {
				t.Parallel()
				h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0), unit("e", 0), unit("f", 0))
				bulky(h)
				worker, releaseWorker := h.hold("RunWorker")
				defer releaseWorker()
				entered, release := h.hold("SaveState")
				defer release()
				l := newLab(t, h).begin()
				awaitClosed(t, "RunWorker", worker)
				before := l.runID(l.id)
				l.ballast(l.id, "SaveState", func() bool { return isClosed(entered) })
				order := c.order
				order.RequestID = "r-1"

				answers := make(chan error, 1)
				if way == "signal" {
					l.signal(c.name, order)
					answers <- nil
				} else {
					go func() {
						_, err := l.update(c.name, order)
						answers <- err
					}()
					testkit.Eventually(t, "the update is in", func() bool { return l.updated(c.name) })
				}
				release()
				require.NoError(t, <-answers)
				testkit.Eventually(t, "continue-as-new", func() bool { return l.runID(l.id) != before })
				if c.done != nil {
					l.until("it was obeyed", func(v contract.RunView) bool { return c.done(l, v) })
				}
				// Whichever execution took it, the next ones remember it.
				other := order
				other.Reason = "something else"
				testkit.Eventually(t, "its id is remembered", func() bool {
					_, err := l.update(c.name, other)
					var refused *temporal.ApplicationError
					return asApplication(err, &refused) && refused.Type() == contract.ErrorRequestReused
				})
				releaseWorker()
				unlimited := int64(0)
				l.ordered(contract.CommandBudget, contract.Operator{Tokens: &unlimited})
				l.ordered(contract.CommandResume, contract.Operator{})
				require.Equal(t, contract.RunCompleted, l.wait().Status)
			})
		}
	}
}

func asApplication(err error, target **temporal.ApplicationError) bool { return errors.As(err, target) }

// updated reports whether the server has taken an update of the name for the run.
func (l *lab) updated(name string) bool {
	for _, e := range l.history(l.id, "").Events {
		if e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName() == name {
			return true
		}
	}
	return false
}

// Messages to a run that has closed get a clear answer from the server; the
// starter says how the run ended.
func TestMessagesToAClosedRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, newHost(unit("a", 0))).begin()
	l.wait()
	for _, name := range []string{contract.CommandPause, contract.CommandQuiesce, contract.CommandRecover} {
		require.Error(t, l.client.SignalWorkflow(patience(t), l.id, "", name, nil), name)
		_, err := l.client.UpdateWorkflow(patience(t), client.UpdateWorkflowOptions{
			WorkflowID: l.id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{contract.Operator{}},
		})
		require.Error(t, err, name)
	}
	data, err := json.Marshal(l.view())
	require.NoError(t, err)
	require.Contains(t, string(data), fmt.Sprintf("%q:%q", "status", contract.RunCompleted), "it can still be asked")
}
