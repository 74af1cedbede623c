package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// walledUntil scripts a pool whose account is limited until an instant.
func walledUntil(w *world, reset time.Time) func(contract.NodeInput) attemptScript {
	return func(in contract.NodeInput) attemptScript {
		if in.Pool != "main" || !w.env.Now().Before(reset) {
			return attemptScript{takes: time.Minute}
		}
		return attemptScript{takes: time.Second, end: contract.WorkerEnd{
			Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "model"},
			Kept: &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: "worker"},
		}}
	}
}

func TestPoolsOrderWakesAWaitAndIsCarriedByAttempts(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	first, next := testPool("main", 2), testPool("main", 2)
	first.Model, next.Model = "one", "other"
	w := newWorld(t, h, first)
	h.work = walledUntil(w, w.env.Now().Add(100*time.Hour))
	w.at(time.Hour, func() {
		w.signal(t, contract.CommandPools, contract.Operator{Pools: []contract.Pool{next}})
		h.work = nil
	})

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Less(t, w.env.Now().Sub(w.began), 2*time.Hour)
	tries := h.tried("a")
	require.Len(t, tries, 2)
	require.Equal(t, "other", tries[1].Definition.Model, "the attempt has the pool as it is now")
	require.Nil(t, tries[1].Kept, "another model does not go on in the tree of the old one")
	require.Contains(t, kinds(h), contract.FrictionCompositionChanged)
	require.Len(t, h.releases, 3, "the limited attempt's, the disowned tree's, the good attempt's: %+v", h.releases)
}

func TestUnusablePoolsOrderChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0))
	w := newWorld(t, h)
	h.work = func(contract.NodeInput) attemptScript { return attemptScript{takes: time.Hour} }
	w.at(time.Minute, func() {
		w.signal(t, contract.CommandPools, nil)
		w.signal(t, contract.CommandPools, contract.Operator{Pools: []contract.Pool{{ID: "x"}}})
	})

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, "main", h.record.View.Pools[0].ID)
	require.Contains(t, kinds(h), contract.FrictionBadMessage)
}

// The operator does not want to wait for days: one attempt per order finds out.
func TestResumeNowProbesWithOneAttempt(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0))
	w := newWorld(t, h, testPool("main", 3))
	h.work = walledUntil(w, w.env.Now().Add(100*time.Hour))
	var before, after int
	w.at(time.Hour, func() {
		before = len(h.attempts)
		w.signal(t, contract.CommandResume, contract.Operator{Now: true})
	})
	w.at(2*time.Hour, func() {
		after = len(h.attempts)
		require.Equal(t, contract.RunPaused, w.status(t).Status, "the wall still stands")
		h.work = nil
		w.signal(t, contract.CommandResume, contract.Operator{Now: true})
	})

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, before+1, after)
	require.Less(t, w.env.Now().Sub(w.began), 3*time.Hour)
}

func TestBudgetOrdersRaiseRemoveAndReconcile(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0))
	h.opened.Policy.AttemptTokens, h.opened.Policy.Budget = 1000, plan.Budget{Tokens: 1500}
	w := newWorld(t, h) // whose attempts tell no usage
	h.work = func(contract.NodeInput) attemptScript { return attemptScript{takes: time.Minute} }
	var views []contract.RunView
	look := func() { views = append(views, w.status(t)) }
	tokens := func(n int64) *int64 { return &n }
	w.at(time.Hour, func() {
		look()
		w.signal(t, contract.CommandReconcile, contract.Operator{Attempt: "nobody/1", Tokens: tokens(1)})
		w.signal(t, contract.CommandReconcile, contract.Operator{Attempt: "a/1", Tokens: tokens(400)})
	})
	w.at(2*time.Hour, func() {
		look()
		w.signal(t, contract.CommandBudget, contract.Operator{Tokens: tokens(2400)})
	})
	w.at(3*time.Hour, func() {
		look()
		w.signal(t, contract.CommandBudget, contract.Operator{Tokens: tokens(0)})
	})

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, views, 3)
	for i, landed := range []int{1, 2, 3} {
		require.Equal(t, landed, views[i].Nodes["landed"], "step %d", i)
		require.Equal(t, contract.HoldBudget, views[i].Holds[0].Kind)
	}
	require.Equal(t, []contract.UncertainAttempt{{Attempt: "a/1", Amount: contract.Amount{Tokens: 1000}}}, views[0].Budget.Attempts)
	require.Equal(t, contract.Amount{Tokens: 400}, views[1].Budget.Settled)
	require.Zero(t, h.record.View.Budget.Cap)
	for id, row := range h.rows() {
		require.Len(t, row.Attempts, 1, "%s failed because of a budget", id)
	}
}
