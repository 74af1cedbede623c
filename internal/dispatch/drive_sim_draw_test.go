package dispatch

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func drawWorld(t *rapid.T) *world {
	w := newWorld(t, rapid.Uint64().Draw(t, "seed"))
	w.calm = rapid.SampledFrom([]float64{0.95, 0.7, 0.4}).Draw(t, "calm")
	w.drawPools(t)
	for i := range rapid.IntRange(1, 2).Draw(t, "runs") {
		w.addRun(fmt.Sprint("run", i), rapid.IntRange(1, 25).Draw(t, "nodes"))
	}
	spills := []plan.Spill{plan.SpillSameTier, plan.SpillAllowPaid, plan.SpillNever}
	for _, r := range w.runs {
		r.spill = rapid.SampledFrom(spills).Draw(t, "spill")
	}
	for range rapid.IntRange(0, 6).Draw(t, "disturbances") {
		w.after(time.Duration(w.rnd.IntN(7200_000))*time.Millisecond, w.disturb)
	}
	return w
}

// drawPools draws the providers, their accounts, faults and walls.
func (w *world) drawPools(t *rapid.T) {
	accounts := rapid.IntRange(1, 3).Draw(t, "accounts")
	tiers := []plan.Tier{plan.TierSmall, plan.TierStandard, plan.TierDeep}
	for i := range rapid.IntRange(1, 6).Draw(t, "pools") {
		p := simPool{Pool: agentPool(fmt.Sprint("p", i), fmt.Sprint("x", w.rnd.IntN(accounts)), fmt.Sprint("m", w.rnd.IntN(2)), 1+w.rnd.IntN(3))}
		p.Tier = tiers[w.rnd.IntN(3)]
		p.Cost = []*contract.Cost{nil, {}, {InputMicros: 3}}[w.rnd.IntN(3)]
		p.ContextTokens = []int{0, 0, 60_000}[w.rnd.IntN(3)]
		switch w.rnd.IntN(12) {
		case 0:
			p.dry = t0.Add(time.Duration(w.rnd.IntN(3600)) * time.Second)
		case 1:
			p.missing = true
		case 2:
			p.context = 30_000
		case 3:
			p.down = true
		}
		w.pools = append(w.pools, p)
	}
	for i := range accounts {
		w.drawWalls(fmt.Sprint("x", i))
	}
}

// disturb is something that an operator or a provider does at any time.
func (w *world) disturb() {
	account := w.pools[w.rnd.IntN(len(w.pools))].Account
	r := w.runs[w.rnd.IntN(len(w.runs))]
	switch w.rnd.IntN(5) {
	case 0:
		w.broker(account)
		pushes, err := w.brokers[account].Reopen(fmt.Sprint(w.count), "", w.now)
		require.NoError(w.t, err)
		w.brokerDid(account, pushes)
	case 1:
		reset := w.now.Add(time.Duration(w.rnd.IntN(3600)) * time.Second)
		facts := []contract.Window{{Name: "5h", UsedPermill: 900 + w.rnd.IntN(101), ResetAt: &reset}}
		w.broker(account)
		w.brokerDid(account, w.brokers[account].Observe("", facts, w.now))
	case 2:
		r.exclude(w.pools[w.rnd.IntN(len(w.pools))].ID)
	case 3:
		if d := r.live(); d != nil {
			d.drive.Stop(contract.StopFinish)
			r.decide(d)
		}
	case 4:
		gone := w.broker(account).Holders()
		for _, id := range gone {
			if r.over(id) {
				w.brokerDid(account, w.brokers[account].HolderGone(id, w.now))
			}
		}
	}
}

func newWorld(t require.TestingT, seed uint64) *world {
	return &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: t0, calm: 1, walls: map[string][]simWall{}, brokers: map[string]*Broker{},
		alarms: map[string]time.Time{}, channels: map[string]time.Time{}, alive: map[string]int{}, probes: map[string]int{},
	}
}

func (w *world) drawWalls(account string) {
	outcomes := []contract.Outcome{contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeQuotaUnclassified}
	at := t0
	for range w.rnd.IntN(4) {
		at = at.Add(time.Duration(w.rnd.IntN(1200)) * time.Second)
		x := simWall{from: at, to: at.Add(time.Duration(10+w.rnd.IntN(7200)) * time.Second), outcome: outcomes[w.rnd.IntN(3)], states: w.rnd.IntN(2) == 0}
		if w.rnd.IntN(4) == 0 {
			x.early = time.Duration(w.rnd.IntN(7200)) * time.Second
		}
		w.walls[account] = append(w.walls[account], x)
		at = x.to
	}
}
