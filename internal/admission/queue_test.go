package admission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("walled")
	g.pause("walled", contract.HoldQuota)
	g.started("work")
	low, high := 5, -1
	for _, id := range []string{"q1", "q2", "q3", "q4"} {
		g.queued(id)
	}
	g.m.Prioritize(contract.SchedulerOrder{Run: "q1", Priority: &low}, g.now)
	g.m.Prioritize(contract.SchedulerOrder{Run: "q4", Priority: &high}, g.now)
	require.Equal(t, []string{"q4", "q2", "q3", "q1"}, g.queueOrder())
	g.want("walled")
	require.Equal(t, []string{"walled", "q4", "q2", "q3", "q1"}, g.queueOrder(), "resumptions before new ones")

	require.Empty(t, g.m.Hold(order("q3"), g.now).Refused)
	g.carryOut()
	require.Equal(t, contract.RunPaused, g.status("q3"))
	require.Equal(t, []string{"walled", "q4", "q2", "q1"}, g.queueOrder(), "what is held blocks nobody")
	require.Empty(t, g.m.Release(order("q3"), g.now).Refused)
	require.Equal(t, []string{"walled", "q3", "q4", "q2", "q1"}, g.queueOrder(), "a released one is a resumption")

	g.end("work")
	require.Equal(t, contract.RunStarting, g.status("walled"), "starts at once")
}

func TestHeldInTheQueueStartsOnlyAfterItsRelease(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("work")
	g.queued("q1")
	g.m.Hold(order("q1"), g.now)
	g.end("work")
	require.Equal(t, []string{"work"}, g.begun)
	row, _, _ := g.m.Run("q1")
	require.Equal(t, "about q1", row.Holds[0].Reason)
	require.Equal(t, "starter scheduler release q1", row.Holds[0].Lift)
	answer := g.m.Release(order("q1"), g.now)
	g.carryOut()
	require.Equal(t, []string{"q1 is released and starts"}, answer.Done)
	require.Equal(t, []string{"work", "q1"}, g.begun)
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.submit(submission("/repo"))
	require.Equal(t, contract.Submitted{Decision: contract.DecisionStarted, Run: RunID("/repo", "p", 1)}, first)
	g.take(first.Run)

	again := g.submit(submission("/repo"))
	require.Equal(t, contract.DecisionDuplicate, again.Decision)
	require.Equal(t, first.Run, again.Run)
	require.Equal(t, contract.RunStarting, again.Status)

	next := submission("/repo")
	next.Again = true
	second := g.submit(next)
	require.Equal(t, contract.DecisionQueued, second.Decision)
	require.Equal(t, RunID("/repo", "p", 2), second.Run)
	require.Equal(t, first.Run, second.Behind)

	g.limits(5, 20)
	require.Equal(t, contract.RunQueued, g.status(second.Run), "a free slot does not help: the same repository and base")
	beside := next
	beside.Parallel = true
	third := g.submit(beside)
	require.Equal(t, contract.DecisionStarted, third.Decision)
	require.Equal(t, RunID("/repo", "p", 3), third.Run)

	g.tell(first.Run, contract.RunStarting, contract.RunPreparing, contract.RunImplementing)
	g.end(first.Run)
	require.Equal(t, contract.RunQueued, g.status(second.Run), "behind the parallel one now")
	g.take(third.Run)
	g.tell(third.Run, contract.RunStarting, contract.RunClosing, contract.RunBlocked)
	require.Equal(t, contract.RunStarting, g.status(second.Run))

	g.tell(second.Run, contract.RunClosing, contract.RunCompleted)
	used := g.submit(submission("/repo"))
	require.Equal(t, contract.DecisionRejected, used.Decision)
	require.Equal(t, contract.RejectedGenerationUsed, used.Cause)
	require.Contains(t, used.Reason, "--again")
	expects := next
	expects.Run = RunID("/repo", "p", 2)
	require.Equal(t, contract.RejectedGenerationUsed, g.submit(expects).Cause, "its input was stored for another generation")
	expects.Run = RunID("/repo", "p", 4)
	require.Equal(t, contract.DecisionStarted, g.submit(expects).Decision)
}

func TestNamesOfOnesOwn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("Mine")
	same := submission("/repo/Mine")
	same.ID = "mine"
	require.Equal(t, contract.DecisionDuplicate, g.submit(same).Decision, "names are compared as file systems may")
	other := submission("/elsewhere")
	other.ID = "mine"
	require.Equal(t, contract.RejectedIDInUse, g.submit(other).Cause)
	same.Again, same.Parallel = true, true
	require.Equal(t, contract.RejectedIDInUse, g.submit(same).Cause, "a name has no generations")
	g.end("Mine")
	same.Again = false
	require.Equal(t, contract.RejectedIDInUse, g.submit(same).Cause)

	for name, s := range map[string]contract.Submission{
		"no plan":       {Repository: "/r", Input: contract.Artifact{URI: "i"}},
		"no repository": {Plan: "p", Input: contract.Artifact{URI: "i"}},
		"no input":      {Plan: "p", Repository: "/r"},
		"bad id":        {Plan: "p", Repository: "/r", ID: "a/b", Input: contract.Artifact{URI: "i"}},
		"bad number":    {Plan: "p", Repository: "/r", Generation: -1, Input: contract.Artifact{URI: "i"}},
	} {
		answer := g.submit(s)
		require.Equal(t, contract.RejectedInvalidPlan, answer.Cause, name)
		require.NotEmpty(t, answer.Reason, name)
	}
}

func TestFullQueueDefersAndStoresNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(1, 2)
	g.started("work")
	g.queued("q1")
	g.queued("q2")
	g.m.Hold(order("q2"), g.now) // one that is held counts
	before := g.m.Status()
	s := submission("/repo/q3")
	s.ID = "q3"
	answer := g.submit(s)
	require.Equal(t, contract.DecisionDeferred, answer.Decision)
	require.Equal(t, contract.DeferredQueueCapacity, answer.Cause)
	require.Equal(t, before, g.m.Status())
	_, _, known := g.m.Run("q3")
	require.False(t, known)

	g.end("work")
	require.Equal(t, contract.DecisionQueued, g.submit(s).Decision)
}

func TestLoweringTheLimitLetsWorkGoOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(3, 10)
	for _, id := range []string{"a", "b", "c"} {
		g.started(id)
	}
	g.queued("q1")
	g.limits(1, 10)
	require.Equal(t, 3, g.m.Status().Running)
	g.end("a")
	g.end("b")
	require.Equal(t, []string{"a", "b", "c"}, g.begun)
	g.end("c")
	require.Equal(t, []string{"a", "b", "c", "q1"}, g.begun)
	zero := 0
	require.NotEmpty(t, g.m.SetLimits(contract.SchedulerOrder{MaxRunning: &zero}, g.now).Refused)
}

func TestWalledRunBlocksNobodyAndComesBackFirst(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("walled")
	g.queued("q1")
	g.pause("walled", contract.HoldQuota)
	require.Equal(t, []string{"walled", "q1"}, g.begun, "its slot is free at once")
	g.queued("q2")
	g.want("walled")
	require.Equal(t, contract.RunQueued, g.status("walled"))
	g.take("q1")
	g.tell("q1", contract.RunStarting, contract.RunClosing, contract.RunCompleted)
	require.Equal(t, contract.RunStarting, g.status("walled"))
	require.Equal(t, []string{"q2"}, g.queueOrder())
}

// A grant that crosses a pause is given back, and not lost by a word that was
// said before it came.
func TestGrantThatCrossesAPause(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	r := g.started("a")
	g.pause("a", contract.HoldOperator)
	r.holds = nil
	g.tell("a", contract.RunQueued) // granted at once, the order is on its way
	require.Len(t, r.inbox, 1)
	require.Equal(t, 1, g.m.Status().Running)
	r.place(contract.HoldOperator)
	g.tell("a", contract.RunPaused) // an operator was faster
	require.Equal(t, 1, g.m.Status().Running, "it does not know of its grant yet")
	g.take("a")
	require.True(t, r.slot)
	g.tell("a")
	require.False(t, g.runs["a"].slot)
	require.Equal(t, 0, g.m.Status().Running)
	g.want("a")
	require.Equal(t, contract.RunImplementing, g.status("a"))
}

func TestOrdersForRunsThatHaveBegunArePassedOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("a")
	g.m.Hold(contract.SchedulerOrder{Run: "A", By: "ops", Reason: "why", Finish: true, RequestID: "r1"}, g.now)
	g.m.Release(contract.SchedulerOrder{Run: "a", Now: true}, g.now)
	g.m.Cancel(order("a"), g.now)
	todo := g.m.Actions()
	require.Len(t, todo, 1)
	require.Equal(t, []contract.RunCommand{
		{Name: contract.CommandPause, Order: contract.Operator{By: "ops", Reason: "why", Finish: true, RequestID: "r1"}},
		{Name: contract.CommandResume, Order: contract.Operator{Now: true}},
		{Name: contract.CommandCancel, Order: contract.Operator{By: "ops", Reason: "about a"}},
	}, todo[0].Order.Commands)
	g.tell("a", contract.RunClosing)
	require.Equal(t, []string{"a"}, g.m.Cancel(order("a"), g.now).InTheWay, "it ends by itself")
	for _, give := range []func(contract.SchedulerOrder) contract.SchedulerAnswer{
		func(o contract.SchedulerOrder) contract.SchedulerAnswer { return g.m.Hold(o, g.now) },
		func(o contract.SchedulerOrder) contract.SchedulerAnswer { return g.m.Release(o, g.now) },
		func(o contract.SchedulerOrder) contract.SchedulerAnswer { return g.m.Cancel(o, g.now) },
		func(o contract.SchedulerOrder) contract.SchedulerAnswer { return g.m.Prioritize(o, g.now) },
	} {
		require.NotEmpty(t, give(order("nobody")).Refused)
		require.NotEmpty(t, give(contract.SchedulerOrder{}).Refused, "no run is named")
	}
	require.NotEmpty(t, g.m.Prioritize(order("a"), g.now).Refused, "no priority is named")
}

func TestCancelInTheQueueClosesAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("work")
	g.queued("q1")
	g.queued("q2")
	g.m.Cancel(order("q1"), g.now)
	g.end("work")
	require.Equal(t, []string{"work", "q2"}, g.begun)
	row, found, _ := g.m.Run("q1")
	require.True(t, found)
	require.Equal(t, contract.RunCancelled, row.Status)
	require.Equal(t, "about q1", row.Reason)
}

func TestClosedRunsGoIntoPages(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for i := range 130 {
		id := fmt.Sprintf("r%03d", i)
		g.started(id)
		g.end(id)
		if page := g.m.Page(); page != nil {
			require.Len(t, page, pageSize)
			require.Equal(t, fmt.Sprintf("r%03d", g.m.state.Paged), page[0].Run)
			g.m.Paged(contract.Artifact{URI: fmt.Sprintf("page-%d", len(g.m.state.Pages))})
		}
		g.carry()
	}
	status := g.m.Status()
	require.Equal(t, 130, status.Closed)
	require.Len(t, status.Pages, 1)
	require.Equal(t, "r129", g.m.Runs(0, 1)[0].Run, "the last one first")
	_, found, known := g.m.Run("r000")
	require.False(t, found)
	require.True(t, known, "its name is never given again")
	s := submission("/repo")
	s.ID = "r000"
	require.Equal(t, contract.RejectedIDInUse, g.submit(s).Cause)
}
