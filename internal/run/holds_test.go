package run

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func held(kinds ...contract.HoldKind) *Holds {
	h := &Holds{}
	for _, k := range kinds {
		h.Place(contract.Hold{Kind: k, Reason: "r", Since: noon})
	}
	return h
}

func kinds(h *Holds) []contract.HoldKind {
	ks := []contract.HoldKind{}
	for _, x := range h.List("R") {
		ks = append(ks, x.Kind)
	}
	return ks
}

func TestResumeLiftsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	op, quota, gate, budget, sched := contract.HoldOperator, contract.HoldQuota, contract.HoldGate, contract.HoldBudget, contract.HoldScheduler
	type ks = []contract.HoldKind
	for name, c := range map[string]struct {
		held         ks
		now, budget  bool
		lifted, left ks
	}{
		"operator":                                   {held: ks{op}, lifted: ks{op}},
		"quota alone":                                {held: ks{quota}, lifted: ks{quota}},
		"a night of maintenance keeps the wall":      {held: ks{quota, op}, lifted: ks{op}, left: ks{quota}},
		"now ends the wall as well":                  {held: ks{quota, op}, now: true, lifted: ks{op, quota}},
		"scheduler stays":                            {held: ks{op, sched}, now: true, lifted: ks{op}, left: ks{sched}},
		"gate when it is the only one":               {held: ks{gate}, lifted: ks{gate}},
		"gate beside another stays":                  {held: ks{gate, op}, lifted: ks{op}, left: ks{gate}},
		"budget needs a cap":                         {held: ks{budget}, now: true, left: ks{budget}},
		"budget with a cap":                          {held: ks{budget}, budget: true, lifted: ks{budget}},
		"question, service and recovery are not its": {held: ks{contract.HoldService, contract.HoldQuestion, contract.HoldRecovery}, now: true, budget: true, left: ks{contract.HoldService, contract.HoldQuestion, contract.HoldRecovery}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := held(c.held...)
			lifted, left := h.Resume(c.now, c.budget)
			require.Equal(t, c.lifted, lifted)
			require.Equal(t, c.left, left)
			require.Equal(t, append(ks{}, c.left...), kinds(h))
		})
	}
}

func TestPlacingAgainKeepsWhoAndSince(t *testing.T) {
	t.Parallel()
	var h Holds
	until := noon.Add(time.Hour)
	require.True(t, h.Place(contract.Hold{Kind: contract.HoldQuota, Reason: "a", By: "run", Since: noon}))
	require.False(t, h.Place(contract.Hold{Kind: contract.HoldQuota, Reason: "b", By: "other", Since: until, Until: &until}))
	require.Equal(t, []contract.Hold{{Kind: contract.HoldQuota, Reason: "b", By: "run", Since: noon, Until: &until, Lift: "starter resume R --now"}}, h.List("R"))
	require.False(t, h.Due(until.Add(-1)))
	require.True(t, h.Due(until))
	require.True(t, h.Empty())
}

func TestEveryHoldNamesTheCommandThatLiftsIt(t *testing.T) {
	t.Parallel()
	h := held(holdOrder...)
	for _, hold := range h.List("R") {
		require.NotEmpty(t, hold.Lift, hold.Kind)
	}
}

// TestHoldsAreLiftedByTheirOwnLifterOnly compares random sequences with a set per kind.
func TestHoldsAreLiftedByTheirOwnLifterOnly(t *testing.T) {
	t.Parallel()
	lifters := []Lifter{LiftedByScheduler, LiftedByPools, LiftedByBudget, LiftedByHosts, LiftedByAnswers, LiftedByGateRetry, LiftedByRecover}
	rapid.Check(t, func(t *rapid.T) {
		h, model, due := &Holds{}, map[contract.HoldKind]bool{}, (*time.Time)(nil)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				hold := contract.Hold{Kind: rapid.SampledFrom(holdOrder).Draw(t, "kind"), Since: noon}
				if hold.Kind == contract.HoldQuota {
					at := noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "until")) * time.Minute)
					hold.Until, due = &at, &at
				}
				require.Equal(t, !model[hold.Kind], h.Place(hold))
				model[hold.Kind] = true
			case 1:
				by := rapid.SampledFrom(lifters).Draw(t, "by")
				require.Equal(t, model[lifts[by]], h.Lift(by))
				delete(model, lifts[by])
			case 2:
				now := noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "now")) * time.Minute)
				is := model[contract.HoldQuota] && !now.Before(*due)
				require.Equal(t, is, h.Due(now))
				if is {
					delete(model, contract.HoldQuota)
				}
			case 3:
				now, budget := rapid.Bool().Draw(t, "resume now"), rapid.Bool().Draw(t, "budget")
				before := kinds(h)
				lifted, left := h.Resume(now, budget)
				for _, kind := range lifted {
					delete(model, kind)
				}
				require.ElementsMatch(t, before, slices.Concat(lifted, left))
				require.NotContains(t, left, contract.HoldOperator)
				if slices.Contains(before, contract.HoldOperator) && !now {
					require.NotContains(t, lifted, contract.HoldQuota)
				}
			}
			require.Len(t, kinds(h), len(model))
			for _, kind := range kinds(h) {
				require.True(t, model[kind])
			}
			data, err := json.Marshal(h)
			require.NoError(t, err)
			h2 := &Holds{}
			require.NoError(t, json.Unmarshal(data, h2))
			require.Equal(t, h.List("R"), h2.List("R"))
			h = h2
		}
	})
}

func TestRunStatusesMoveAsDesigned(t *testing.T) {
	t.Parallel()
	all := []contract.RunStatus{
		contract.RunQueued, contract.RunStarting, contract.RunPreparing, contract.RunImplementing, contract.RunPausing, contract.RunPaused,
		contract.RunGating, contract.RunClosing, contract.RunPublishing, contract.RunCompleted, contract.RunBlocked, contract.RunFailed,
		contract.RunCancelled, contract.RunRecovery,
	}
	for _, from := range all {
		require.True(t, CanMove(from, from))
		for _, to := range all {
			if from != to && from.Closed() {
				require.False(t, CanMove(from, to), "%s → %s", from, to)
			}
		}
		if !from.Closed() {
			require.True(t, CanMove(from, contract.RunFailed), from)
		}
	}
	require.False(t, CanMove(contract.RunPausing, contract.RunImplementing), "a stopping run proves first that it stopped")
	require.False(t, CanMove(contract.RunImplementing, contract.RunCompleted), "no run completes without closing")
	require.False(t, CanMove(contract.RunPublishing, contract.RunCancelled))
	require.EqualError(t, CheckMove(contract.RunCompleted, contract.RunQueued), "move run: queued does not follow completed")
	require.NoError(t, CheckMove(contract.RunPaused, contract.RunQueued))
	require.False(t, CanCancel(contract.RunClosing))
	require.True(t, CanCancel(contract.RunQueued))
}
