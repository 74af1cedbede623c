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

func TestBudgetOnAnAccountThatTellsNothingIsBlind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		coverage string
		free     bool
		capped   bool
		blind    int
	}{
		"nothing known":  {coverage: coverageNone, capped: true, blind: 1},
		"limits known":   {coverage: coverageReactive, capped: true},
		"no budget":      {coverage: coverageNone},
		"a free account": {coverage: coverageNone, capped: true, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := contract.Pool{ID: "p", Account: "x", Provider: contract.ProviderCommand, MaxConcurrent: 2}
			if c.free {
				pool.Cost = &contract.Cost{}
			}
			d := NewDrive(contract.LevelInput{Run: "r", Drive: 1, Pools: []contract.Pool{pool}})
			if c.capped {
				limit := int64(1e9)
				d.SetLease(Lease{Tokens: &limit})
			}
			d.Admit([]contract.Admission{{Node: "a", Opening: 1}, {Node: "b", Opening: 1}})
			asked := d.Decide(t0).Messages[0].Tickets.Reserve
			require.Len(t, asked, 2)
			d.Receive(contract.Grants{Account: "x", Seq: 1, Granted: []string{asked[0].Ticket, asked[1].Ticket}, Coverage: c.coverage}, t0)
			var blind int
			for _, report := range d.Decide(t0).Reports {
				for _, f := range report.Friction {
					if f.Type == contract.FrictionQuotaBlind {
						blind++
					}
				}
			}
			require.Equal(t, c.blind, blind)
		})
	}
}
