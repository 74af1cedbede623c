package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func overloaded(scope string) attemptScript {
	return attemptScript{takes: 10 * time.Second, end: contract.WorkerEnd{
		Outcome: contract.OutcomeOverloaded, Reason: "529 Overloaded", Limit: &contract.Limit{Scope: scope, Evidence: "529 Overloaded"},
	}}
}

func manyUnits(n int) []plan.Unit {
	var units []plan.Unit
	for i := range n {
		units = append(units, unit(fmt.Sprintf("n%02d", i), 0))
	}
	return units
}

func kinds(h *host) []contract.FrictionType {
	var all []contract.FrictionType
	for _, f := range h.record.View.Friction {
		all = append(all, f.Type)
	}
	return all
}

// requireNobodyBlamed expects that everything landed, and that only successes were charged.
func requireNobodyBlamed(t *testing.T, h *host) {
	t.Helper()
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
		for _, a := range row.Attempts {
			require.Equal(t, a.Outcome == contract.OutcomeSuccess, a.Charged, "%s: %+v", id, a)
		}
	}
	require.NotContains(t, kinds(h), contract.FrictionQuotaEscalation)
	require.NotContains(t, kinds(h), contract.FrictionPoolSettled, "an overload exhausts nothing")
}

// For a whole hour and a half everything that two accounts have is overloaded,
// over three models: the run waits, tells that the pools are down, blames no
// node, and goes on when it is over.
func TestLongOverloadOfEverythingIsWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHost(manyUnits(20)...)
	opus, sonnet, other := testPool("opus", 3), testPool("sonnet", 3), testPool("other", 2)
	opus.Account, sonnet.Account = "one", "one"
	opus.Model, sonnet.Model, other.Model = "opus", "sonnet", "other"
	w := newWorld(t, h, opus, sonnet, other)
	const hours = 90 * time.Minute
	over := w.env.Now().Add(hours)
	h.work = func(contract.NodeInput) attemptScript {
		if w.env.Now().Before(over) {
			return overloaded("none")
		}
		return attemptScript{takes: time.Minute}
	}
	var held []contract.RunView
	for _, after := range []time.Duration{5 * time.Minute, 35 * time.Minute, 65 * time.Minute} {
		w.at(after, func() { held = append(held, w.status(t)) })
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	requireNobodyBlamed(t, h)
	down := 0
	for _, kind := range kinds(h) {
		if kind == contract.FrictionPoolDown {
			down++
		}
	}
	require.Equal(t, 3, down, "each pool is reported down once")
	require.Len(t, held, 3)
	for _, v := range held {
		require.Zero(t, v.Nodes["blocked"])
		require.Equal(t, 20, v.Nodes["stranded"]+v.Nodes["running"]+v.Nodes["pending"])
	}
	require.True(t, slices.ContainsFunc(held, func(v contract.RunView) bool { return v.Status == contract.RunPaused }), "it waits, it does not work")
	require.Less(t, len(h.attempts), 20+3*20, "the pools were probed, not hammered")
	require.Less(t, w.env.Now().Sub(over), time.Hour, "it noticed that it was over")
}

// One model of an account is overloaded for an hour: the other one serves
// meanwhile, the run never waits, and the model comes back by itself.
func TestOverloadOfOneModelLeavesTheOtherOne(t *testing.T) {
	t.Parallel()
	h := newHost(manyUnits(40)...)
	opus, sonnet := testPool("opus", 2), testPool("sonnet", 2)
	opus.Account, sonnet.Account, opus.Model, sonnet.Model = "one", "one", "opus", "sonnet"
	sonnet.Rank = 1
	w := newWorld(t, h, opus, sonnet)
	over := w.env.Now().Add(time.Hour)
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Pool == "opus" && w.env.Now().Before(over) {
			return overloaded("model")
		}
		return attemptScript{takes: 6 * time.Minute}
	}
	waited := false
	for after := 2 * time.Minute; after < time.Hour; after += 2 * time.Minute {
		w.at(after, func() { waited = waited || w.status(t).Status == contract.RunPaused })
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	requireNobodyBlamed(t, h)
	require.False(t, waited, "somebody could work all the time")
	late := 0
	for _, row := range h.rows() {
		if last := row.Attempts[len(row.Attempts)-1]; last.Pool == "opus" {
			require.False(t, last.StartedAt.Before(over))
			late++
		}
	}
	require.Positive(t, late, "the model came back")
}
