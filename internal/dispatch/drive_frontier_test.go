package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// frontRun hosts a Frontier and the drives of its levels as Remediation does,
// over the simulated world of drives and brokers.
type frontRun struct {
	*simRun
	f      *Frontier
	units  map[string]plan.Unit
	depths []int        // of the drives, by number
	sealed map[int]bool // drives
	alarm  time.Time
	phases int
}

func (w *world) addFrontRun(units []plan.Unit) *frontRun {
	w.addRun("run0", 0)
	r := &frontRun{simRun: w.runs[0], f: NewFrontier(units, FrontierOptions{}), units: map[string]plan.Unit{}, sealed: map[int]bool{}}
	for _, u := range units {
		r.units[u.ID] = u
		r.tokens[u.ID], r.tier[u.ID] = u.Tokens, string(u.Tier)
	}
	r.spill = plan.SpillSameTier
	r.host = r
	return r
}

// feed admits what may run, opens phases, gives up dead ends and seals levels.
func (r *frontRun) feed() {
	r.f.DeadEnds()
	r.f.Rearm(contract.StrandHeld)
	if _, next, ok := r.f.PhaseBoundary(); ok && len(r.out) == 0 {
		r.phases++
		require.Less(r.w.t, r.phases, 10)
		r.f.OpenPhase(next)
	}
	touched := map[int][]contract.Admission{}
	var depths []int
	for _, a := range r.f.Admissions(r.w.now, 8-len(r.out)) {
		if touched[a.Depth] == nil {
			depths = append(depths, a.Depth)
		}
		touched[a.Depth] = append(touched[a.Depth], a.Admission)
	}
	for _, depth := range depths {
		d := r.at(depth)
		for _, a := range touched[depth] {
			r.out[a.Node] = d.number
		}
		d.drive.Admit(touched[depth])
		r.decide(d)
	}
	r.seal()
	r.wait()
}

// at is the open drive of a level.
func (r *frontRun) at(depth int) *simDrive {
	for i, d := range r.drives {
		if r.depths[i] == depth && !d.drive.Drained() && !r.sealed[d.number] && d.drive.stop == "" {
			return d
		}
	}
	r.depths = append(r.depths, depth)
	return r.start()
}

func (r *frontRun) seal() {
	for i, d := range r.drives {
		has := 0
		for _, number := range r.out {
			if number == d.number {
				has++
			}
		}
		if !d.drive.Drained() && !r.sealed[d.number] && r.f.OpenAt(r.depths[i]) == has {
			r.sealed[d.number] = true
			d.drive.Seal()
			r.decide(d)
		}
	}
}

// wait sets the alarm for the earliest instant of what is stranded.
func (r *frontRun) wait() {
	var at time.Time
	for _, row := range r.f.Nodes(0, 0) {
		if row.State == contract.NodeStranded && row.NotBefore != nil {
			at = earliest(at, *row.NotBefore)
		}
	}
	if at.IsZero() || at.Equal(r.alarm) {
		return
	}
	r.alarm = at
	r.w.after(max(at.Sub(r.w.now), 0), func() {
		if r.alarm.Equal(at) {
			r.alarm = time.Time{}
			r.feed()
		}
	})
}

func (r *frontRun) settle(s contract.Settlement) {
	c := r.f.Settle(s, r.w.now)
	require.Empty(r.w.t, c.Ignored)
}

func (r *frontRun) strand(s contract.Stranding) {
	c := r.f.Strand(s, r.w.now)
	require.Empty(r.w.t, c.Ignored)
}

func (r *frontRun) rearm(causes ...contract.StrandCause) {
	r.f.Rearm(causes...)
	r.feed()
}

// starts checks that no attempt runs beside one whose scope overlaps.
func (r *frontRun) starts(node string) {
	for other, alive := range r.alive {
		if alive && other != node {
			require.False(r.w.t, conflict(r.units[node], r.units[other]), "%s runs beside %s", node, other)
		}
	}
}

// checkOver checks that the run ended: everything is terminal or blocked, or waits for somebody.
func (r *frontRun) checkOver() {
	require.Empty(r.w.t, r.out)
	require.Empty(r.w.t, r.f.Running())
	terminal := r.f.Waiting()
	require.NotEqual(r.w.t, TerminalBusy, terminal.Kind)
	for _, c := range terminal.Causes {
		helps := []contract.StrandCause{contract.StrandNoCapablePool, contract.StrandEmptyPool, contract.StrandEscalated}
		require.Contains(r.w.t, helps, c.Cause, "%v", c.Nodes)
	}
}

// answer is what a worker of the node says about its findings.
func (r *frontRun) answer(l Launch) []contract.ItemResult {
	findings := l.Input.Findings
	if len(findings) == 0 {
		findings = r.units[l.Input.Node].Findings
	}
	var items []contract.ItemResult
	for _, f := range findings {
		items = append(items, contract.ItemResult{Finding: f, Status: contract.ItemResolved})
	}
	return items
}

func TestFrontierDrivesAndBrokersBringARunToItsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"))
		w.drawPools(t)
		w.calm = rapid.SampledFrom([]float64{1, 0.8}).Draw(t, "calm")
		units := drawUnits(t)
		for i := range units {
			units[i].Tokens = []int{0, 10_000, 40_000}[w.rnd.IntN(3)]
		}
		r := w.addFrontRun(units)
		for range rapid.IntRange(0, 4).Draw(t, "disturbances") {
			w.after(time.Duration(w.rnd.IntN(7200_000))*time.Millisecond, w.disturb)
		}
		r.feed()
		w.run()
		r.checkOver()
	})
}

func TestCalmRunOverHealthyPoolsEndsDone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"))
		w.pools = []simPool{{Pool: agentPool("p0", "x0", "m0", 3)}, {Pool: agentPool("p1", "x1", "m0", 1)}}
		for _, account := range []string{"x0", "x1"} {
			w.drawWalls(account)
			w.walls[account] = w.walls[account][:min(1, len(w.walls[account]))] // several could escalate a node
		}
		units := drawUnits(t)
		r := w.addFrontRun(units)
		r.feed()
		w.run()
		r.checkOver()
		require.Equal(t, TerminalDone, r.f.Waiting().Kind)
		for _, row := range r.f.Nodes(0, 0) {
			require.Equal(t, contract.NodeLanded, row.State, "%s: %s", row.ID, row.Reason)
			for _, a := range row.Attempts {
				require.False(t, a.Charged && a.Outcome.Limit(), "walls charge nobody")
			}
		}
	})
}
