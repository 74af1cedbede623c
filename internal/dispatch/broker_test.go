package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func ask(holder string, seq int, tickets ...string) contract.Tickets {
	m := contract.Tickets{Holder: holder, Run: "run-" + holder, Seq: seq}
	for _, id := range tickets {
		m.Reserve = append(m.Reserve, contract.Reservation{Ticket: id, Pool: "p", Model: "m", Cap: 3, Tokens: 100})
	}
	return m
}

func granted(pushes []Push) []string {
	var ids []string
	for _, p := range pushes {
		ids = append(ids, p.Grants.Granted...)
	}
	return ids
}

func TestBrokerNeverHasMoreAliveThanTheCapOverTwoRuns(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	require.Equal(t, []string{"a1", "a2"}, granted(b.Apply(ask("A", 1, "a1", "a2"), t0)))
	require.Equal(t, []string{"b1"}, granted(b.Apply(ask("B", 1, "b1", "b2", "b3"), t0)))
	require.Empty(t, b.Apply(ask("B", 1, "b1", "b2", "b3"), t0), "a repeated message changes nothing")

	end := contract.Tickets{Holder: "A", Seq: 2, Settle: []contract.TicketEnd{{Ticket: "a1", Outcome: contract.OutcomeSuccess}}}
	require.Equal(t, []string{"b2"}, granted(b.Apply(end, t0)))
	require.Equal(t, []string{"b3"}, granted(b.HolderGone("A", t0)))
	require.Equal(t, []string{"B"}, b.Holders())
	require.Equal(t, 3, b.Status(t0).Running)
}

func TestBrokerProbesWithOneTicketAfterTheReset(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	b.Apply(ask("A", 1, "a1", "a2"), t0)
	reset := t0.Add(time.Hour)
	limited := contract.Tickets{Holder: "A", Run: "run-A", Seq: 2, Settle: []contract.TicketEnd{{
		Ticket: "a1", Outcome: contract.OutcomeRateLimited, StartedAt: t0.Add(time.Second),
		Limit: &contract.Limit{ReopensAt: &reset, Scope: "account"},
	}}}
	pushes := b.Apply(limited, t0.Add(time.Minute))
	require.Len(t, pushes, 1)
	require.Equal(t, reset, *pushes[0].Grants.States[0].Until)
	refused := b.Apply(ask("A", 3, "a3"), t0.Add(2*time.Minute))
	require.Equal(t, "paused", refused[0].Grants.Refused[0].Cause)
	require.Equal(t, reset, b.Wake())

	require.Empty(t, b.Tick(reset))
	require.Equal(t, []string{"a4"}, granted(b.Apply(ask("A", 4, "a4", "a5", "a6"), reset)))
}
