package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// simRun feeds nodes to drives as a run does, without edges or scopes.
type simRun struct {
	w        *world
	id       string
	pending  []contract.Admission
	out      map[string]int // nodes handed to a drive and not reported, by drive
	drives   []*simDrive
	settled  map[string]contract.Settlement
	ended    map[string]contract.Stranding // stranded, and waiting does not help
	waiting  map[string]contract.Stranding
	alive    map[string]bool
	attempts map[string]int
	tokens   map[string]int
	refused  map[string][]string
	tier     map[string]string
	friction []contract.Friction
	used     []string
	dead     []string
	excluded map[string]bool
	spill    plan.Spill
	host     simHost
}

// simHost is who hands the nodes out: the run itself, or a Frontier.
type simHost interface {
	feed()
	settle(contract.Settlement)
	strand(contract.Stranding)
	rearm(...contract.StrandCause)
	starts(node string)
	answer(Launch) []contract.ItemResult
}

type simDrive struct {
	number int
	drive  *Drive
	alarm  time.Time
	seq    int
}

func (w *world) addRun(id string, nodes int) {
	r := &simRun{
		w: w, id: id, out: map[string]int{}, settled: map[string]contract.Settlement{}, ended: map[string]contract.Stranding{},
		waiting: map[string]contract.Stranding{}, alive: map[string]bool{}, attempts: map[string]int{}, tokens: map[string]int{},
		refused: map[string][]string{}, tier: map[string]string{}, excluded: map[string]bool{},
	}
	for i := range nodes {
		node := fmt.Sprint("n", i)
		r.tokens[node] = []int{0, 10_000, 40_000, 80_000}[w.rnd.IntN(4)]
		r.tier[node] = []string{"small", "standard", "deep"}[w.rnd.IntN(3)]
		r.pending = append(r.pending, contract.Admission{Node: node, Opening: 1, NextAttempt: 1, Tokens: r.tokens[node], Tier: r.tier[node]})
	}
	r.host = r
	w.runs = append(w.runs, r)
}

func (r *simRun) starts(string) {}

func (r *simRun) answer(Launch) []contract.ItemResult { return nil }

// feed admits pending nodes to the youngest live drive, or to a new one, and
// seals it when none will follow.
func (r *simRun) feed() {
	if len(r.pending) == 0 {
		if d := r.live(); d != nil && len(r.out) == 0 && len(r.waiting) == 0 {
			d.drive.Seal()
			r.decide(d)
		}
		return
	}
	d := r.live()
	room := 8 - len(r.out)
	if room <= 0 {
		return
	}
	nodes := r.pending[:min(room, len(r.pending))]
	r.pending = slices.Clone(r.pending[len(nodes):])
	if d == nil {
		d = r.start()
	}
	for _, n := range nodes {
		r.out[n.Node] = d.number
	}
	d.drive.Admit(nodes)
	r.decide(d)
}

func (r *simRun) live() *simDrive {
	if len(r.drives) == 0 || r.drives[len(r.drives)-1].drive.Drained() {
		return nil
	}
	return r.drives[len(r.drives)-1]
}

func (r *simRun) start() *simDrive {
	in := contract.LevelInput{Run: r.id, Drive: len(r.drives) + 1, Policy: contract.LevelPolicy{Spill: string(r.spill)}, Settled: r.dead, Used: r.used, Pools: r.composition()}
	d := &simDrive{number: in.Drive, drive: NewDrive(in)}
	r.drives = append(r.drives, d)
	return d
}

func (r *simRun) composition() []contract.Pool {
	var pools []contract.Pool
	for _, p := range r.w.pools {
		if !r.excluded[p.ID] {
			pools = append(pools, p.Pool)
		}
	}
	return pools
}

// exclude takes a pool out of the composition, or back in.
func (r *simRun) exclude(pool string) {
	r.excluded[pool] = !r.excluded[pool]
	for _, d := range r.drives {
		if !d.drive.Drained() {
			d.drive.SetPools(r.composition())
			r.decide(d)
		}
	}
	r.host.rearm(contract.StrandNoCapablePool, contract.StrandEmptyPool, contract.StrandQuotaPaused)
}

// over reports whether the id is one of the run's drives that ended.
func (r *simRun) over(id string) bool {
	return slices.ContainsFunc(r.drives, func(d *simDrive) bool { return contract.LevelID(r.id, d.number) == id && d.drive.Drained() })
}

// decide carries a decision of a drive out.
func (r *simRun) decide(d *simDrive) {
	w := r.w
	if d.drive.Drained() {
		return
	}
	a := d.drive.Decide(w.now)
	again := d.drive.Decide(w.now)
	require.Empty(w.t, again.Messages, "a decision is taken once")
	require.Empty(w.t, again.Reports)
	if !again.Wake.IsZero() && !a.Drained {
		require.False(w.t, a.Wake.IsZero() || again.Wake.Before(a.Wake), "%s: a wake was missed", again.Wake)
	}
	if !a.Wake.IsZero() {
		require.True(w.t, a.Wake.After(w.now), "woken at %s for nothing", a.Wake)
	}
	for _, m := range a.Messages {
		w.deliver(m.Tickets.Holder+">"+m.Account, func() {
			b := w.broker(m.Account)
			pushes := b.Apply(m.Tickets, w.now)
			require.Empty(w.t, b.Apply(m.Tickets, w.now), "a message counts once")
			w.brokerDid(m.Account, pushes)
		})
	}
	for _, rep := range a.Reports {
		d.seq++
		require.Equal(w.t, d.seq, rep.Seq)
		w.deliver(contract.LevelID(r.id, d.number)+">run", func() { r.report(d, rep) })
	}
	r.arm(d, a.Wake)
	r.checkIdle(d)
}

func (r *simRun) arm(d *simDrive, at time.Time) {
	if at.IsZero() || at.Equal(d.alarm) {
		return
	}
	d.alarm = at
	r.w.after(at.Sub(r.w.now), func() {
		if d.alarm.Equal(at) {
			d.alarm = time.Time{}
			r.decide(d)
		}
	})
}

// report takes what a drive told.
func (r *simRun) report(d *simDrive, rep contract.DriveReport) {
	w := r.w
	for _, s := range rep.Settled {
		require.Equal(w.t, d.number, r.out[s.Node])
		require.NotEmpty(w.t, s.Attempts)
		delete(r.out, s.Node)
		r.host.settle(s)
		if s.State == contract.NodeLanded {
			r.used = append(r.used, s.Attempts[len(s.Attempts)-1].Pool)
		}
	}
	for _, s := range rep.Stranded {
		require.Equal(w.t, d.number, r.out[s.Node])
		delete(r.out, s.Node)
		r.host.strand(s)
	}
	for _, p := range rep.Pools {
		if p.State == string(PhaseSettled) && !slices.Contains(r.dead, p.ID) {
			r.dead = append(r.dead, p.ID)
		}
	}
	r.friction = append(r.friction, rep.Friction...)
	if rep.Drained {
		for node, number := range r.out {
			require.NotEqual(w.t, d.number, number, "%s was lost", node)
		}
	}
	r.host.feed()
}

func (r *simRun) settle(s contract.Settlement) {
	require.NotContains(r.w.t, r.settled, s.Node, "settled twice")
	r.settled[s.Node] = s
}

func (r *simRun) strand(s contract.Stranding) {
	switch s.Cause {
	case contract.StrandHeld:
		r.pending = append(r.pending, readmit(&s, r))
	case contract.StrandQuotaPaused:
		require.NotNil(r.w.t, s.NotBefore)
		require.NotEmpty(r.w.t, s.Passed)
		r.waiting[s.Node] = s
		at := *s.NotBefore
		r.w.after(max(at.Sub(r.w.now), 0), func() {
			if x, ok := r.waiting[s.Node]; ok && x.NextAttempt == s.NextAttempt && x.NotBefore.Equal(at) {
				delete(r.waiting, s.Node)
				r.pending = append(r.pending, readmit(&s, r))
				r.feed()
			}
		})
	default:
		require.NotEmpty(r.w.t, s.Cause)
		require.Nil(r.w.t, s.NotBefore)
		r.ended[s.Node] = s
	}
}

// reopened readmits everything that waits for a pool to come back.
func (r *simRun) reopened() {
	r.dead = nil
	r.host.rearm(contract.StrandEmptyPool, contract.StrandQuotaPaused)
}

func (r *simRun) rearm(causes ...contract.StrandCause) {
	for _, all := range []map[string]contract.Stranding{r.waiting, r.ended} {
		for _, node := range sortedKeys(all) {
			s := all[node]
			if !slices.Contains(causes, s.Cause) {
				continue
			}
			delete(all, node)
			r.pending = append(r.pending, readmit(&s, r))
		}
	}
	r.feed()
}

func sortedKeys(m map[string]contract.Stranding) []string {
	var ids []string
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func readmit(s *contract.Stranding, r *simRun) contract.Admission {
	return contract.Admission{
		Node: s.Node, Opening: s.Opening, NextAttempt: s.NextAttempt, Charged: s.Charged, Refused: s.Refused, FirstPool: s.FirstPool,
		Limited: s.Limited, Kept: s.Kept, Tail: s.Tail, Salvage: s.Salvage, Tokens: r.tokens[s.Node], Tier: r.tier[s.Node],
	}
}

// checkIdle checks that no node waits on a busy pool while one that it may use is idle.
func (r *simRun) checkIdle(d *simDrive) {
	views := d.drive.views()
	for _, n := range d.drive.queue {
		if n.run != nil || n.notBefore.After(r.w.now) {
			continue
		}
		s := newSelection(n.view(), views, d.drive.spill(), r.w.now)
		if len(n.tickets) == 0 {
			require.Nil(r.w.t, s.best(), "%s has no ticket although a slot is free", n.Node)
			continue
		}
		if r.w.now.Sub(n.tickets[len(n.tickets)-1].at) >= hedgeAfter {
			for _, p := range s.order {
				require.True(r.w.t, p.Free <= 0 || s.waitsAt(p), "%s waits while %s is idle", n.Node, p.ID)
			}
		}
	}
}

// checkOver checks that every node settled, or waits for somebody to do something.
func (r *simRun) checkOver() {
	t := r.w.t
	require.Empty(t, r.pending)
	require.Empty(t, r.waiting)
	require.Empty(t, r.out)
	require.Len(t, r.tokens, len(r.settled)+len(r.ended))
	for _, s := range r.settled {
		if s.State != contract.NodeBlocked {
			continue
		}
		c := s.Charged
		require.True(t, c.Work == 2 || c.Conflict == 3 || c.Provider == 5 || c.Host == 5, "%+v", s)
	}
	if d := r.live(); d != nil {
		require.Empty(t, d.drive.queue)
	}
}
