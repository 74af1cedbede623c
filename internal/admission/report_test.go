package admission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestIllegalMoveIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	r := g.started("a")
	before := g.m.Status()
	err := g.m.Report(r.state(contract.RunGating, contract.RunCompleted), g.now)
	require.EqualError(t, err, "report a: move run: completed does not follow gating")
	require.Equal(t, before, g.m.Status())
	require.Equal(t, contract.RunImplementing, g.status("a"))
	require.ErrorContains(t, g.m.Report(contract.RunState{Run: "a", Execution: "x1", Seq: 99}, g.now), "no status")
	require.ErrorIs(t, g.m.Report(contract.RunState{Run: "nobody", Path: []contract.RunStatus{contract.RunPaused}}, g.now), ErrUnknownRun)
}

func TestReportsAreTakenOnceAndLateOnesIgnored(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	r := g.started("a")
	closing := r.state(contract.RunClosing)
	completed := r.state(contract.RunCompleted)
	require.NoError(t, g.m.Report(closing, g.now))
	require.NoError(t, g.m.Report(completed, g.now))
	require.NoError(t, g.m.Report(closing, g.now))
	require.NoError(t, g.m.Report(completed, g.now))
	require.Equal(t, 1, g.m.Status().Closed)
	require.NoError(t, g.m.Check())
}

func TestVanishedRunIsHeldForRecoveryAndBlocksNobody(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("a")
	g.queued("q1")
	require.True(t, g.m.Vanished("a", g.now))
	require.False(t, g.m.Vanished("a", g.now), "no news")
	require.False(t, g.m.Vanished("nobody", g.now))
	g.carryOut()
	require.Equal(t, []string{"a", "q1"}, g.begun)
	row, _, _ := g.m.Run("a")
	require.Equal(t, contract.RunRecovery, row.Status)
	require.Contains(t, row.Holds[0].Reason, contract.RecoveryRunVanished)
	require.NotEmpty(t, g.m.Hold(order("a"), g.now).Refused)

	// Reset to an earlier moment it comes back, with the slot that it had then.
	r := g.runs["a"]
	r.execution, r.seq = "x2", 0
	g.tell("a", contract.RunPreparing, contract.RunImplementing)
	require.Equal(t, contract.RunImplementing, g.status("a"))
	require.Equal(t, 2, g.m.Status().Running, "what works, works")
	g.end("a")

	require.True(t, g.m.Vanished("q1", g.now))
	require.Empty(t, g.m.Cancel(order("q1"), g.now).Refused, "given up")
	row, _, _ = g.m.Run("q1")
	require.Equal(t, contract.RunCancelled, row.Status)
}

// A run that was reset while nobody looked goes on from there; while the
// scheduler is disabled it gets the hold.
func TestResetRunIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	r := g.started("a")
	g.m.Disable(order(""), g.now)
	g.carryOut()
	g.take("a")
	g.tell("a", contract.RunPausing, contract.RunPaused)
	r.execution, r.seq, r.grant, r.holds, r.slot, r.status = "x2", 0, 1, nil, true, contract.RunPreparing
	g.tell("a", contract.RunPreparing)
	require.Equal(t, contract.RunPausing, g.status("a"))
	g.take("a")
	require.Contains(t, r.holds, contract.HoldScheduler)
}

func TestRunThatCannotBeStartedFails(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.submit(func() contract.Submission { s := submission("/repo/a"); s.ID = "a"; return s }())
	g.queued("q1")
	g.m.StartFailed("a", "the input is missing", g.now)
	g.carryOut()
	row, _, _ := g.m.Run("a")
	require.Equal(t, contract.RunFailed, row.Status)
	require.Equal(t, "start run: the input is missing", row.Reason)
	require.Equal(t, []string{"a", "q1"}, g.begun)
}

func TestDeploymentBudgetIsLeasedInSlabs(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	tokens := int64(1_000_000)
	g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now)
	a := g.started("a")
	lease := func() int64 { return *g.sent[len(g.sent)-1].Lease.Tokens }
	require.Equal(t, int64(250_000), lease(), "a slab is a share of a small cap")
	a.used, a.need = contract.Amount{Tokens: 200_000}, contract.Amount{Tokens: 500_000}
	g.tell("a")
	require.Equal(t, int64(700_000), lease())
	g.started("b")
	require.Equal(t, int64(250_000), lease())
	status := g.m.Status()
	require.Equal(t, int64(200_000), status.Budget.Settled.Tokens)
	require.Equal(t, int64(750_000), status.Budget.Reserved.Tokens)

	// It used more than it had: the other's lease is cut, nothing is promised twice.
	a.used.Tokens = 900_000
	g.tell("a")
	require.Equal(t, int64(100_000), g.m.Status().Budget.Reserved.Tokens)
	g.runs["b"].used.Tokens, g.runs["b"].need.Tokens = 100_000, 300_000
	g.pause("b", contract.HoldBudget)
	g.end("a")
	g.queued("q1")
	row, _, _ := g.m.Run("q1")
	require.Contains(t, row.Reason, "budget")

	tokens = 1_200_000
	g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now)
	g.carryOut()
	require.Contains(t, g.begun, "q1", "200 000 are left: too little for b, something for a new one")
	tokens = 5_000_000
	g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now)
	g.carryOut()
	inbox := g.runs["b"].inbox
	require.GreaterOrEqual(t, *inbox[len(inbox)-1].Lease.Tokens, int64(400_000), "b hears that there is room again")
	tokens = 0
	g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now)
	g.carryOut()
	require.Nil(t, g.sent[len(g.sent)-1].Lease)
	tokens = -1
	require.NotEmpty(t, g.m.SetBudget(contract.SchedulerOrder{Tokens: &tokens}, g.now).Refused)
}
