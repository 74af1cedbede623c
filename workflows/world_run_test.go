package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func TestEverythingLandsAndTheGateIsGreen(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a"), unit("d", 2, "b", "c"))
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
		require.Len(t, row.Attempts, 1)
	}
	require.Len(t, h.rows(), 4)
	require.Equal(t, 2, h.count("RunGate"), "the base and the end")
}

func TestFailedAttemptsAreRetriedWithinTheBoundOfTheirCause(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"), unit("c", 0))
	h.work = func(in contract.NodeInput) attemptScript {
		switch {
		case in.Node == "a":
			return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "no"}}
		case in.Node == "c" && in.Attempt < 4:
			return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseHost, Reason: "setup"}}
		}
		return attemptScript{}
	}
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunBlocked, result.Status)
	rows := h.rows()
	require.Len(t, rows["a"].Attempts, 2, "work is tried twice")
	require.Equal(t, contract.NodeBlocked, rows["b"].State, "what needs it does not run")
	require.Empty(t, rows["b"].Attempts)
	require.Equal(t, contract.NodeLanded, rows["c"].State)
	require.Len(t, rows["c"].Attempts, 4)
}

func TestQuotaWallHoldsTheRunUntilItsReset(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a", "b"))
	w := newWorld(t, h)
	start := w.env.Now()
	reset := start.Add(5 * time.Hour)
	h.work = func(in contract.NodeInput) attemptScript {
		if w.env.Now().Before(reset) {
			return attemptScript{takes: time.Minute, end: contract.WorkerEnd{
				Outcome: contract.OutcomeRateLimited, Reason: "limit reached",
				Kept:  &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: "worker"},
				Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
			}}
		}
		return attemptScript{takes: time.Minute}
	}
	var held contract.RunView
	w.at(time.Hour, func() { held = w.status(t) })

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, contract.RunPaused, held.Status)
	require.Len(t, held.Holds, 1)
	require.Equal(t, contract.HoldQuota, held.Holds[0].Kind)
	require.WithinDuration(t, reset, *held.Holds[0].Until, time.Second)
	require.False(t, w.env.Now().Before(reset))
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
		for _, a := range row.Attempts {
			require.False(t, a.Charged && a.Outcome != contract.OutcomeSuccess, "a limit is nobody's fault: %+v", a)
		}
	}
	require.NotNil(t, h.tried("a")[1].Kept, "the kept tree is continued")
}

// An hour in which the provider takes nothing: no node is blamed, and the work goes on afterwards.
func TestAnHourOfOverloadBlamesNobody(t *testing.T) {
	t.Parallel()
	var units = []string{"a", "b", "c", "d", "e"}
	h := newHost()
	for _, id := range units {
		h.units = append(h.units, unit(id, 0))
	}
	w := newWorld(t, h, testPool("main", 3))
	over := w.env.Now().Add(time.Hour)
	h.work = func(contract.NodeInput) attemptScript {
		if w.env.Now().Before(over) {
			return attemptScript{takes: 5 * time.Second, end: contract.WorkerEnd{Outcome: contract.OutcomeOverloaded, Reason: "529"}}
		}
		return attemptScript{takes: 5 * time.Second}
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
		for _, a := range row.Attempts {
			require.Equal(t, a.Outcome == contract.OutcomeSuccess, a.Charged, "%+v", a)
		}
	}
	for _, f := range h.record.View.Friction {
		require.NotEqual(t, contract.FrictionQuotaEscalation, f.Type)
	}
	require.Less(t, len(h.attempts), 60, "the pool is probed, not hammered")
	require.Less(t, w.env.Now().Sub(over), 40*time.Minute)
}
