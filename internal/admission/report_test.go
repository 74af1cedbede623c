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
