package workflows

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/testkit"
)

func (h *host) Notify(ctx context.Context, in contract.NotificationInput) error {
	if err := h.begin(ctx, "Notify"); err != nil {
		return err
	}
	if h.closing.notify != nil {
		if err := h.closing.notify(ctx, in); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing.notices = append(h.closing.notices, in)
	return nil
}

// heard lists what a receiver was told, by the notices' numbers.
func (h *host) heard(receiver int) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]string{}
	for _, n := range h.closing.notices {
		if n.Receiver == receiver {
			all[n.Notice.ID] = fmt.Sprintf("%s %s", n.Notice.Event, n.Notice.Status)
		}
	}
	return all
}

func everyEvent() []plan.NotifyOn {
	return []plan.NotifyOn{plan.NotifyStarted, plan.NotifyPaused, plan.NotifyQuestion, plan.NotifyClosed}
}

func TestEachChangeIsToldOnce(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	h.opened.Notify = [][]plan.NotifyOn{everyEvent(), {plan.NotifyClosed}}
	l := newLab(t, h)
	entered, release := h.hold("RunWorker")
	defer release()
	l.begin()
	awaitClosed(t, "RunWorker", entered)
	l.ordered(contract.CommandPause, contract.Operator{Reason: "night"})
	l.untilStatus(contract.RunPaused)
	l.ordered(contract.CommandPause, contract.Operator{Reason: "night again"})
	release()
	l.ordered(contract.CommandResume, contract.Operator{})
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status)
	run := l.in.Run
	testkit.Eventually(t, "every notice is delivered", func() bool { return len(h.heard(0))+len(h.heard(1)) == 4 })
	first := h.heard(0)
	require.Equal(t, map[string]string{run + "/2": "paused paused", run + "/3": "closed completed"}, without(first, run+"/1"))
	require.Contains(t, first[run+"/1"], "started ")
	require.Equal(t, map[string]string{run + "/4": "closed completed"}, h.heard(1))
	for _, n := range h.closing.notices {
		if n.Notice.Event == plan.NotifyPaused {
			require.Equal(t, "night", n.Notice.Holds[0].Reason)
			require.Contains(t, n.Notice.Holds[0].Lift, "starter resume")
		}
	}
	for i := 1; i <= 4; i++ {
		require.NoError(t, newReplayer(t).ReplayWorkflowHistory(quietLogger{}, l.history(contract.NotificationID(run, i), "")))
	}
}

func without(m map[string]string, key string) map[string]string {
	left := map[string]string{}
	for k, v := range m {
		if k != key {
			left[k] = v
		}
	}
	return left
}

// TestAReceiverIsNeverInTheWay: one that hangs and one that fails hold up nothing,
// and the failing one is tried again after the run has closed.
func TestAReceiverIsNeverInTheWay(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	h.opened.Notify = [][]plan.NotifyOn{{plan.NotifyStarted, plan.NotifyClosed}, {plan.NotifyClosed}}
	up := make(chan struct{})
	h.closing.notify = func(ctx context.Context, in contract.NotificationInput) error {
		if in.Receiver == 0 { // hangs until its activity is over
			waitBeating(ctx, nil)
			return ctx.Err()
		}
		select {
		case <-up:
			return nil
		default:
			return errors.New("503")
		}
	}
	l := newLab(t, h)
	l.begin()
	require.Equal(t, contract.RunCompleted, l.wait().Status, "nobody was told yet")
	require.Empty(t, h.heard(1))
	close(up)
	testkit.Eventually(t, "the notice is delivered in the end", func() bool { return len(h.heard(1)) == 1 })
	described, err := l.client.DescribeWorkflowExecution(patience(t), contract.NotificationID(l.in.Run, 1), "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetWorkflowExecutionInfo().GetStatus(), "the one that hangs is still tried")
	for n := range 3 {
		_ = l.client.TerminateWorkflow(context.Background(), contract.NotificationID(l.in.Run, n+1), "", "test over")
	}
}

func TestNoticesAreCarriedOverToTheNextExecution(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	bulky(h)
	h.opened.Notify = [][]plan.NotifyOn{everyEvent()}
	l := newLab(t, h)
	entered, release := h.hold("RunWorker")
	defer release()
	l.begin()
	awaitClosed(t, "RunWorker", entered)
	l.renew(l.id)
	release()
	l.wait()
	testkit.Eventually(t, "both notices are delivered", func() bool { return len(h.heard(0)) == 2 })
	require.Equal(t, "closed completed", h.heard(0)[l.in.Run+"/2"], "started is not told again")
}

func TestChangesOfState(t *testing.T) {
	t.Parallel()
	var b noticeBook
	require.Empty(t, b.changes(false, false, false, false))
	require.Equal(t, []plan.NotifyOn{plan.NotifyStarted}, b.changes(true, false, false, false))
	require.Empty(t, b.changes(true, false, false, false))
	require.Equal(t, []plan.NotifyOn{plan.NotifyPaused, plan.NotifyQuestion}, b.changes(true, true, true, false))
	require.Empty(t, b.changes(true, true, true, false))
	require.Empty(t, b.changes(true, true, false, false), "an answer is no news")
	require.Equal(t, []plan.NotifyOn{plan.NotifyQuestion}, b.changes(true, true, true, false), "another question is")
	require.Empty(t, b.changes(true, false, false, false))
	require.Equal(t, []plan.NotifyOn{plan.NotifyPaused, plan.NotifyClosed}, b.changes(true, true, false, true))
}
