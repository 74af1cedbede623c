package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// A stranded node's instant passes while every place is taken: the run waits
// for one, it does not look at the clock again and again.
func TestDueNodeThatFindsNoPlaceWaitsQuietly(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0), unit("e", 0), unit("f", 0))
	large, small := testPool("large", 1), testPool("small", 1)
	small.ContextTokens, h.units[0].Tokens = 50_000, 100_000 // a needs the large pool, which is walled at first
	w := newWorld(t, h, large, small)
	reset := w.began.Add(10 * time.Minute)
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Pool == "large" && w.env.Now().Before(reset) {
			return attemptScript{takes: time.Second, end: contract.WorkerEnd{
				Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
			}}
		}
		return attemptScript{takes: 3 * time.Hour}
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, "large", h.tried("a")[1].Pool)
}

// Nodes come back stranded for good while others of their level go on: the
// level's drive ends all the same, and the run says what is left.
func TestDriveEndsWhenOnlyStrandedNodesAreLeft(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 0), unit("d", 0), unit("e", 0), unit("f", 0))
	small, large := testPool("small", 1), testPool("large", 1)
	small.ContextTokens = 50_000
	h.units[0].Tokens = 100_000 // only the large pool can take it
	w := newWorld(t, h, small, large)
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Pool == "large" {
			return attemptScript{takes: time.Second, end: contract.WorkerEnd{Outcome: contract.OutcomeCreditExhausted, Reason: "no credit"}}
		}
		return attemptScript{takes: time.Minute}
	}

	result := w.run(t)

	require.Equal(t, contract.RunBlocked, result.Status, result.Reason)
	rows := h.rows()
	require.Equal(t, contract.NodeBlocked, rows["a"].State)
	for _, id := range []string{"b", "c", "d", "e", "f"} {
		require.Equal(t, contract.NodeLanded, rows[id].State, id)
	}
	require.Less(t, w.env.Now().Sub(w.began), time.Hour, "it does not wait for what never comes")
}
