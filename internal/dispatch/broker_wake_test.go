package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func runsTold(pushes []Push) []string {
	var runs []string
	for _, p := range pushes {
		if p.Holder == "" {
			runs = append(runs, p.Run)
		}
	}
	return runs
}

// A drive that ran into the wall itself strands its nodes without asking again
// and ends: its run hears of the reopening all the same.
func TestBrokerTellsARunThatWasNeverRefused(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"before the drive is missed": false, "after the drive was missed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.end(d.ask(1)[0], contract.OutcomeCreditExhausted)
			if forget {
				d.b.HolderGone("A", d.now)
			}
			pushes, err := d.b.Reopen("", "", d.now)
			require.NoError(t, err)
			require.Equal(t, []string{"run-A"}, runsTold(pushes))
		})
	}
}

func TestBrokerProbesAPauseEarlyWithOneTicket(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.end(d.ask(3)[0], contract.OutcomeRateLimited)
	require.Equal(t, "paused", d.b.Status(d.now).States[0].State)
	require.Empty(t, d.ask(1))

	d.now = d.now.Add(time.Second)
	pushes := d.b.Probe(d.now)

	require.Equal(t, []string{"run-A"}, runsTold(pushes))
	require.Equal(t, contract.OutcomeRateLimited, pushes[0].Grants.States[0].Outcome, "no operator vouches for the pool")
	require.Empty(t, d.b.Status(d.now).States)
	require.Len(t, d.ask(3), 1)
}

func TestBrokerProbeLeavesExhaustionsAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.end(d.ask(1)[0], contract.OutcomeCreditExhausted)
	require.Empty(t, d.b.Probe(d.now))
	require.Equal(t, "exhausted", d.b.Status(d.now).States[0].State)
}
