package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func TestOneHourOfOverloadBlamesNobodyAndWorkGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.pools = []simPool{{Pool: agentPool("p0", "x0", "m0", 3)}, {Pool: agentPool("p1", "x0", "m0", 2)}}
		over := simWall{from: t0.Add(2 * time.Minute), to: t0.Add(72 * time.Minute), outcome: contract.OutcomeOverloaded}
		w.walls["x0"] = []simWall{over}
		w.addRun("run0", 40)
		w.runs[0].spill = plan.SpillSameTier
		for node := range w.runs[0].tokens {
			w.runs[0].tokens[node], w.runs[0].tier[node] = 0, "standard"
		}
		w.runs[0].feed()
		w.run()

		r := w.runs[0]
		r.checkOver()
		require.Len(t, r.settled, 40)
		for _, s := range r.settled {
			require.Equal(t, contract.NodeLanded, s.State, "nobody is blamed: %s", s.Reason)
			require.Equal(t, contract.Charged{}, s.Charged)
		}
		require.Greater(t, w.limits, 5)
		var kinds []contract.FrictionType
		for _, f := range r.friction {
			kinds = append(kinds, f.Type)
		}
		require.Contains(t, kinds, contract.FrictionPoolDown)
		require.NotContains(t, kinds, contract.FrictionQuotaEscalation)
		require.Less(t, w.now.Sub(over.to), 2*time.Hour, "work goes on afterwards")
		require.Less(t, w.limits, 18, "a wall of 70 minutes is met by five attempts and probed a dozen times, not hammered")
	}
}

func BenchmarkDecideWith200NodesAnd6Pools(b *testing.B) {
	var pools []contract.Pool
	for i := range 6 {
		p := agentPool(fmt.Sprint("p", i), fmt.Sprint("x", i%3), fmt.Sprint("m", i%2), 4)
		p.Tier = []plan.Tier{plan.TierSmall, plan.TierStandard, plan.TierDeep}[i%3]
		p.Cost, p.ContextTokens = &contract.Cost{InputMicros: int64(i)}, 100_000
		pools = append(pools, p)
	}
	var nodes []contract.Admission
	for i := range 200 {
		nodes = append(nodes, contract.Admission{
			Node: fmt.Sprint("n", i), Opening: 1, NextAttempt: 1, Tokens: 1000 * (i % 150), Tier: []string{"small", "standard", "deep"}[i%3],
		})
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			d := NewDrive(input(pools, nodes...))
			d.Decide(t0)
		}
	})
	b.Run("idle", func(b *testing.B) {
		d := NewDrive(input(pools, nodes...))
		d.Decide(t0)
		for b.Loop() {
			d.Decide(t0)
		}
	})
	b.Run("select", func(b *testing.B) {
		d := NewDrive(input(pools, nodes...))
		views := d.views()
		for b.Loop() {
			for _, n := range d.queue {
				Select(n.view(), views, plan.SpillSameTier, t0)
			}
		}
	})
}

func BenchmarkBrokerGrantsWith200Tickets(b *testing.B) {
	br := NewBroker("x")
	for i := range 200 {
		br.Apply(ask("A", i+1, fmt.Sprint("t", i)), t0)
	}
	seq := 200
	for b.Loop() {
		seq++
		done := br.state.Tickets[0].ID
		m := ask("A", seq, done+"'")
		m.Settle = []contract.TicketEnd{{Ticket: done, Outcome: contract.OutcomeSuccess}}
		br.Apply(m, t0)
	}
}
