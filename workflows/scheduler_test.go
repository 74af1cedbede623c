package workflows

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

func TestSchedulerStartsRunsInTheirOrder(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	first, release := d.working("r1")
	defer release()
	require.Equal(t, contract.RunImplementing, d.until(first, contract.RunImplementing).Status)
	second, third := d.queue("r2"), d.queue("r3")
	require.Equal(t, 1, d.row(second).Position)
	require.Contains(t, d.row(second).Reason, "slot")
	low := 9
	d.order(contract.CommandPriority, contract.SchedulerOrder{Run: second.in.Run, Priority: &low})
	release()

	d.ends(first, contract.RunCompleted)
	d.ends(third, contract.RunCompleted)
	d.ends(second, contract.RunCompleted)
	require.Equal(t, []string{"r1", "r3", "r2"}, d.begun())
	require.Equal(t, 3, d.status().Closed)
	require.Zero(t, d.status().Running)
	d.check()
}

// A run walled by its provider gives its slot back; when the wall opens it waits
// for one, and goes on before those that never began.
func TestWalledRunGivesItsSlotBackAndWaitsForAnother(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	open := make(chan struct{})
	wall := d.run("wall", walled(open))
	d.until(wall, contract.RunPaused)
	require.Equal(t, contract.HoldQuota, d.row(wall).Holds[0].Kind)

	work, release := d.working("work")
	defer release()
	next := d.queue("next")
	close(open)
	wall.ordered(contract.CommandResume, contract.Operator{Now: true})
	wall.untilStatus(contract.RunQueued)
	require.Equal(t, 1, d.until(wall, contract.RunQueued).Position)
	require.Equal(t, 2, d.row(next).Position)
	release()

	d.ends(work, contract.RunCompleted)
	d.ends(wall, contract.RunCompleted)
	d.ends(next, contract.RunCompleted)
	require.Len(t, wall.host.tried("a"), 2)
	require.NotNil(t, wall.host.tried("a")[1].Kept, "the same tree is continued")
	d.check()
}

// Two are working, one is walled, three wait: the two end, nothing starts, the
// walled one stays held and costs no slot. Enabling starts what waits in order.
func TestDrainOnTheServer(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2)
	open := make(chan struct{})
	wall := d.run("wall", walled(open))
	d.until(wall, contract.RunPaused)
	var works []*lab
	var releases []func()
	for i := range 2 {
		h := newHost(unit("a", 0), unit("b", 1, "a"))
		entered, release := h.hold("RunWorker")
		defer release()
		works = append(works, d.run(fmt.Sprintf("w%d", i+1), h))
		releases = append(releases, release)
		awaitClosed(t, "RunWorker", entered)
	}
	var queued []*lab
	for i := range 3 {
		queued = append(queued, d.queue(fmt.Sprintf("q%d", i+1)))
	}

	answer := d.order(contract.CommandDrain, contract.SchedulerOrder{Reason: "upgrade", By: "ops"})
	require.Equal(t, []string{works[0].in.Run, works[1].in.Run}, answer.Running)
	require.False(t, d.status().Drained)
	for _, release := range releases {
		release()
	}
	d.ends(works[0], contract.RunCompleted)
	d.ends(works[1], contract.RunCompleted)
	status := d.status()
	require.True(t, status.Drained)
	require.Zero(t, status.Running, "a run that waits in a hold costs no slot")
	require.Equal(t, 1, status.Held)
	require.Equal(t, 3, status.Queued)
	require.Equal(t, []string{"wall", "w1", "w2"}, d.begun())
	require.Equal(t, contract.RunPaused, wall.view().Status)
	late := d.prepare("late", newHost(unit("a", 0)))
	require.Equal(t, contract.DeferredNotAccepting, d.submit(late).Cause)

	d.order(contract.CommandLimits, contract.SchedulerOrder{MaxRunning: new(int)}) // refused: it stays 2
	require.Empty(t, d.order(contract.CommandEnable, contract.SchedulerOrder{}).Refused)
	for _, l := range queued {
		d.ends(l, contract.RunCompleted)
	}
	require.Equal(t, []string{"wall", "w1", "w2", "q1", "q2", "q3"}, d.begun())
	close(open)
	wall.ordered(contract.CommandResume, contract.Operator{Now: true})
	d.ends(wall, contract.RunCompleted)
	d.check()
}

// Disabling pauses what works and keeps its work; an operator's hold that is
// added to one survives the enabling.
func TestDisableOnTheServer(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 2)
	var works []*lab
	var releases []func()
	for i := range 2 {
		h := newHost(unit("a", 0))
		entered, release := h.hold("RunWorker")
		defer release()
		works = append(works, d.run(fmt.Sprintf("w%d", i+1), h))
		releases = append(releases, release)
		awaitClosed(t, "RunWorker", entered)
	}
	one, two := works[0], works[1]

	answer := d.order(contract.CommandDisable, contract.SchedulerOrder{Reason: "the host goes down", By: "ops"})
	require.Equal(t, []string{one.in.Run, two.in.Run}, answer.Pausing)
	for _, l := range works {
		v := l.untilStatus(contract.RunPaused)
		require.Len(t, v.Holds, 1)
		require.Equal(t, contract.HoldScheduler, v.Holds[0].Kind)
		require.Equal(t, "the host goes down", v.Holds[0].Reason)
		d.until(l, contract.RunPaused)
	}
	require.Zero(t, d.status().Running)
	resumed := one.ordered(contract.CommandResume, contract.Operator{Now: true})
	require.Equal(t, contract.HoldScheduler, resumed.Holds[0].Kind, "an operator does not lift the scheduler's hold")
	d.about(contract.CommandHold, two)
	two.until("the operator's hold", func(v contract.RunView) bool { return len(v.Holds) == 2 })
	for _, release := range releases {
		release()
	}

	require.Empty(t, d.order(contract.CommandEnable, contract.SchedulerOrder{}).Refused)
	d.ends(one, contract.RunCompleted)
	require.NotNil(t, one.host.tried("a")[1].Kept, "its work was kept")
	v := two.until("the scheduler's hold is lifted", func(v contract.RunView) bool { return len(v.Holds) == 1 })
	require.Equal(t, contract.HoldOperator, v.Holds[0].Kind)
	require.Equal(t, contract.RunPaused, v.Status)
	require.Len(t, two.host.tried("a"), 1)
	d.about(contract.CommandRelease, two)
	d.ends(two, contract.RunCompleted)
	require.NotNil(t, two.host.tried("a")[1].Kept)
	d.check()
}

func TestHoldAndCancelInTheQueue(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	work, release := d.working("work")
	defer release()
	held, dropped, next := d.queue("held"), d.queue("dropped"), d.queue("next")
	d.about(contract.CommandHold, held)
	d.about(contract.CommandCancel, dropped)
	require.Equal(t, contract.RunCancelled, d.row(dropped).Status)
	release()

	d.ends(work, contract.RunCompleted)
	d.ends(next, contract.RunCompleted)
	require.Equal(t, contract.RunPaused, d.row(held).Status)
	require.Equal(t, "ops", d.row(held).Holds[0].By)
	d.about(contract.CommandRelease, held)
	d.ends(held, contract.RunCompleted)
	require.Equal(t, []string{"work", "next", "held"}, d.begun())
	d.check()
}

// What is told to the scheduler about a run that works reaches the run.
func TestOrdersThroughTheSchedulerReachTheRun(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	l, release := d.working("r")
	defer release()
	d.order(contract.CommandHold, contract.SchedulerOrder{Run: l.in.Run, By: "ops", Reason: "maintenance"})
	v := l.untilStatus(contract.RunPaused)
	require.Equal(t, "maintenance", v.Holds[0].Reason)
	require.Equal(t, "ops", v.Holds[0].By)
	d.order(contract.CommandRelease, contract.SchedulerOrder{Run: l.in.Run})
	l.untilStatus(contract.RunImplementing)
	d.order(contract.CommandCancel, contract.SchedulerOrder{Run: l.in.Run, Reason: "enough"})

	result := l.wait()
	require.Equal(t, contract.RunCancelled, result.Status)
	require.Equal(t, "enough", result.Reason)
	d.until(l, contract.RunCancelled)
	d.check()
}

// A run whose workflow is terminated tells nobody: the scheduler notices, and its
// slot is free.
func TestTerminatedRunIsNoticed(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	lost, release := d.working("lost")
	defer release()
	next := d.queue("next")
	require.NoError(t, d.client.TerminateWorkflow(t.Context(), lost.id, "", "by mistake"))

	// An order that does not arrive is one way to notice; the periodic check is the other (TestPeriodicCheck).
	d.about(contract.CommandHold, lost)
	row := d.until(lost, contract.RunRecovery)
	require.Contains(t, row.Holds[0].Reason, contract.RecoveryRunVanished)
	d.ends(next, contract.RunCompleted)
	d.about(contract.CommandCancel, lost)
	require.Equal(t, contract.RunCancelled, d.row(lost).Status)
	d.check()
}

// A run that cannot be started closes as failed, with the reason, and blocks nobody.
func TestRunWithoutAnInputFails(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	bad := d.prepare("bad", newHost(unit("a", 0)))
	other := d.prepare("other", newHost(unit("a", 0)))
	d.mu.Lock()
	d.inputs[d.submission(bad).Input.URI] = d.inputs[d.submission(other).Input.URI]
	d.mu.Unlock()
	require.Equal(t, contract.DecisionStarted, d.submit(bad).Decision)
	row := d.until(bad, contract.RunFailed)
	require.Contains(t, row.Reason, other.in.Run)
	require.Equal(t, contract.DecisionStarted, d.submit(other).Decision)
	d.ends(other, contract.RunCompleted)
	d.check()
}

// A repeated request is answered as before; its id does not stand for anything else.
func TestRequestsToTheSchedulerAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	l := d.prepare("r", newHost(unit("a", 0)))
	s := d.submission(l)
	s.RequestID = "one"
	first, err := update[contract.Submitted](d, contract.CommandSubmit, s)
	require.NoError(t, err)
	d.ends(l, contract.RunCompleted)
	again, err := update[contract.Submitted](d, contract.CommandSubmit, s)
	require.NoError(t, err)
	require.Equal(t, first, again)
	s.Priority = 3
	_, err = update[contract.Submitted](d, contract.CommandSubmit, s)
	require.ErrorContains(t, err, "something else")
	_, err = update[contract.SchedulerAnswer](d, contract.CommandDrain, contract.SchedulerOrder{RequestID: "one"})
	require.ErrorContains(t, err, "something else")
	require.Equal(t, contract.ModeEnabled, d.status().Mode)
	d.check()
}

// A scheduler that was lost is started anew by the next word of a run, which it
// takes in as it is.
func TestLostSchedulerLearnsOfItsRuns(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	l, release := d.working("r")
	defer release()
	d.until(l, contract.RunImplementing)
	require.NoError(t, d.client.TerminateWorkflow(t.Context(), d.id, "", "by mistake"))
	l.ordered(contract.CommandPause, contract.Operator{})
	l.untilStatus(contract.RunPaused)
	testkit.Eventually(t, "the new scheduler knows the run", func() bool {
		_, err := d.client.QueryWorkflow(t.Context(), d.id, "", contract.QueryRun, l.in.Run)
		return err == nil
	})
	d.until(l, contract.RunPaused)
	release()
	l.ordered(contract.CommandResume, contract.Operator{})

	d.ends(l, contract.RunCompleted)
	d.check()
}

// An attempt that tells no usage is charged what it reserved. The second does not
// fit into the deployment's budget: the run waits without a slot until it does.
func TestDeploymentBudgetOnTheServer(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	budget := func(tokens int64) {
		d.order(contract.CommandBudget, contract.SchedulerOrder{Tokens: &tokens})
	}
	budget(600_000) // an attempt reserves 500 000
	l := d.run("r", newHost(unit("a", 0), unit("b", 1, "a")))
	d.until(l, contract.RunPaused)
	v := l.view()
	require.Len(t, v.Holds, 1)
	require.Equal(t, contract.HoldBudget, v.Holds[0].Kind)
	require.Equal(t, 1, v.Nodes[string(contract.NodeLanded)])
	status := d.status()
	require.Zero(t, status.Running)
	require.Equal(t, contract.Amount{Tokens: 500_000}, status.Budget.Settled)
	require.Zero(t, status.Budget.Reserved.Tokens)
	l.ordered(contract.CommandResume, contract.Operator{Budget: 50_000_000}) // its own cap is not what binds it
	require.Contains(t, d.until(l, contract.RunQueued).Reason, "budget")
	require.Empty(t, l.host.tried("b"))

	budget(2_000_000)
	d.ends(l, contract.RunCompleted)
	require.Equal(t, contract.Amount{Tokens: 1_000_000}, d.status().Budget.Settled)
	d.check()
}
