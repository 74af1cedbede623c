package run

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/plan"
)

func TestRedGateIsAttributedThenReblockedThenEnds(t *testing.T) {
	t.Parallel()
	var g Gate
	red := func() GateStep { return g.Record(GateExecuted, GateRed, "t", plan.OnRedAttribute) }
	for _, node := range []string{"A", "B", "C", "D"} {
		require.Equal(t, GateAttribute, red())
		require.Equal(t, GateReopen, g.Attributed(Attribution{Verdict: Culprit, Culprit: node}, true))
	}
	require.Equal(t, GateAttribute, red())
	require.Equal(t, GateReject, g.Attributed(Attribution{Verdict: Interaction, Culprit: "A"}, true), "re-opened once, no more")
	require.Equal(t, GateReblock, red(), "five attributions are used up")
	require.Equal(t, GateProceed, g.Record(GateExecuted, GateGreen, "green", plan.OnRedAttribute))
	require.Equal(t, "green", g.LastGreen)
	require.Equal(t, GateReblock, red(), "a green in between resets no count")
	require.True(t, g.MayRun())
	require.Equal(t, GateEnd, red(), "the third red ends the run")
	require.False(t, g.MayRun())
}

func TestWhatCannotBeAttributedIsReblocked(t *testing.T) {
	t.Parallel()
	var g Gate
	require.Equal(t, GateAttribute, g.Record(GateExecuted, GateRed, "t", plan.OnRedAttribute))
	require.Equal(t, GateReblock, g.Attributed(Attribution{Verdict: Unattributable}, true))
	require.Equal(t, GateAttribute, g.Record(GateExecuted, GateRed, "t", plan.OnRedAttribute))
	require.Equal(t, GateReblock, g.Attributed(Attribution{Verdict: Culprit, Culprit: "A"}, false), "its revert conflicts")
	require.Equal(t, GateEnd, g.Record(GateExecuted, GateRed, "t", plan.OnRedAttribute))
	require.Equal(t, 2, g.Reblocks)
}

func TestPolicyOnRedDecides(t *testing.T) {
	t.Parallel()
	var g Gate
	require.Equal(t, GateHold, g.Record(GateExecuted, GateRed, "t", plan.OnRedPause))
	require.Equal(t, GateReblock, g.Record(GateExecuted, GateRed, "t", plan.OnRedReblock))
	require.Zero(t, g.Attributions)
	require.Equal(t, GateProceed, g.Record(GateExecuted, GateFlaky, "t", plan.OnRedPause), "flaky is not blamed")
	require.Equal(t, GateProceed, g.Record(GateDisabled, GateNone, "t", plan.OnRedPause))
}

// TestNoSequenceOfGatesRunsForEver drives a gate that never turns green.
func TestNoSequenceOfGatesRunsForEver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var g Gate
		reds := 0
		for g.MayRun() {
			reds++
			require.LessOrEqual(t, reds, MaxAttributions+MaxReblocks+1)
			step := g.Record(GateExecuted, GateRed, "t", rapid.SampledFrom([]plan.OnRed{plan.OnRedAttribute, plan.OnRedReblock}).Draw(t, "policy"))
			if step == GateAttribute {
				step = g.Attributed(Attribution{
					Verdict: rapid.SampledFrom([]AttributionVerdict{Culprit, Interaction, Unattributable}).Draw(t, "verdict"),
					Culprit: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "culprit"),
				}, rapid.Bool().Draw(t, "revertible"))
			}
			require.LessOrEqual(t, g.Attributions, MaxAttributions)
			require.LessOrEqual(t, g.Reblocks, MaxReblocks)
			require.Equal(t, step == GateEnd, !g.MayRun())
		}
	})
}
