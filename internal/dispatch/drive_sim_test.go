package dispatch

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
)

// The simulation couples drives of several runs with the brokers of several
// accounts through messages that take time, and with providers that wall,
// overload, lie about resets, run dry and refuse large packets.

type simWall struct {
	from, to time.Time
	outcome  contract.Outcome
	states   bool          // the provider states its reset
	early    time.Duration // by how much too early it states it
}

type simPool struct {
	contract.Pool
	dry     time.Time // credit ends; zero: never
	missing bool      // the model does not exist
	context int       // real context; 0: any
	down    bool      // every attempt fails at the provider
}

type simEvent struct {
	at  time.Time
	seq int
	do  func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// world is everything outside: clock, messages, providers.
type world struct {
	t        require.TestingT
	rnd      *rand.Rand
	now      time.Time
	events   simQueue
	count    int
	pools    []simPool
	walls    map[string][]simWall // by account
	brokers  map[string]*Broker
	alarms   map[string]time.Time // of brokers
	channels map[string]time.Time // last delivery per channel: messages keep their order
	alive    map[string]int       // by pool
	probes   map[string]int       // launches alive that went into a wall which the broker had seen, by key
	runs     []*simRun
	calm     float64 // share of successes
	limits   int     // attempts that ran into a wall
}

func (w *world) after(by time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, simEvent{at: w.now.Add(by), seq: w.count, do: do})
}

// deliver carries a message over a channel, with a delay, in order.
func (w *world) deliver(channel string, do func()) {
	at := later(w.now.Add(time.Duration(w.rnd.IntN(200))*time.Millisecond), w.channels[channel])
	w.channels[channel] = at
	w.after(at.Sub(w.now), do)
}

func (w *world) broker(account string) *Broker {
	if w.brokers[account] == nil {
		w.brokers[account] = NewBroker(account)
	}
	return w.brokers[account]
}

// brokerDid delivers what a broker said, checks it, and sets its alarm.
func (w *world) brokerDid(account string, pushes []Push) {
	b := w.brokers[account]
	w.checkBroker(b)
	for _, p := range pushes {
		if p.Holder != "" {
			w.deliver(account+">"+p.Holder, func() { w.grants(p) })
			continue
		}
		for _, r := range w.runs {
			if r.id == p.Run {
				w.deliver(account+">"+r.id, r.reopened)
			}
		}
	}
	// Continue-as-new at any moment changes nothing.
	if w.rnd.IntN(10) == 0 {
		w.brokers[account] = w.reborn(b)
	}
	at := w.brokers[account].Wake()
	if at.IsZero() || at.Equal(w.alarms[account]) {
		return
	}
	w.alarms[account] = at
	w.after(at.Sub(w.now), func() {
		if w.alarms[account].Equal(at) {
			delete(w.alarms, account)
			w.brokerDid(account, w.brokers[account].Tick(w.now))
		}
	})
}

func (w *world) reborn(b *Broker) *Broker {
	text, err := b.MarshalJSON()
	require.NoError(w.t, err)
	next := &Broker{}
	require.NoError(w.t, next.UnmarshalJSON(text))
	again, err := next.MarshalJSON()
	require.NoError(w.t, err)
	require.Equal(w.t, string(text), string(again))
	return next
}

// checkBroker checks that no pool is above its cap and no slot is left idle.
func (w *world) checkBroker(b *Broker) {
	alive := map[string]int{}
	op := &brokerOp{b: b, now: w.now}
	for i := range b.state.Tickets {
		t := &b.state.Tickets[i]
		if t.alive() {
			alive[t.Pool]++
			continue
		}
		require.False(w.t, op.fits(t), "%s waits although there is a slot", t.ID)
		require.Nil(w.t, op.wallOver(t), "%s waits behind a wall", t.ID)
	}
	for _, p := range w.pools {
		require.LessOrEqual(w.t, alive[p.ID], p.MaxConcurrent)
	}
}

func (w *world) grants(p Push) {
	for _, r := range w.runs {
		for _, d := range r.drives {
			if contract.LevelID(r.id, d.number) != p.Holder || d.drive.Drained() {
				continue
			}
			for _, l := range d.drive.Receive(p.Grants, w.now) {
				w.launch(r, d, l)
			}
			r.decide(d)
		}
	}
}

// walled is the wall of the account that stands at an instant.
func (w *world) walled(account string, at time.Time) *simWall {
	for i := range w.walls[account] {
		if x := &w.walls[account][i]; !at.Before(x.from) && at.Before(x.to) {
			return x
		}
	}
	return nil
}

// launch runs an attempt: it checks that it may, and draws how it ends.
func (w *world) launch(r *simRun, d *simDrive, l Launch) {
	node, pool := l.Input.Node, w.pool(l.Input.Pool)
	require.False(w.t, r.alive[node], "%s runs twice at once", node)
	require.Greater(w.t, l.Input.Attempt, r.attempts[node], "attempt numbers are never reused")
	r.alive[node], r.attempts[node] = true, l.Input.Attempt
	w.alive[pool.ID]++
	require.LessOrEqual(w.t, w.alive[pool.ID], pool.MaxConcurrent, "pool %s above its cap", pool.ID)
	require.NotContains(w.t, r.refused[node], pool.ID, "a pool that refused the node is not asked again")
	require.False(w.t, r.excluded[pool.ID], "an excluded pool is not asked")
	probe := w.probe(l, pool)
	r.host.starts(node)

	res, length := w.outcome(r, l, pool)
	started := w.now.Add(min(length, 50*time.Millisecond))
	w.after(length, func() {
		r.alive[node] = false
		w.alive[pool.ID]--
		if probe != "" {
			w.probes[probe]--
		}
		res.Node, res.Opening, res.Attempt, res.Pool = node, l.Input.Opening, l.Input.Attempt, pool.ID
		res.StartedAt, res.EndedAt = started, w.now
		require.True(w.t, d.drive.Ended(res, w.now))
		r.decide(d)
	})
}

// probe counts a launch into a wall that its broker had met before: no more
// than one may be under way. It returns the key of the wall, empty for no probe.
func (w *world) probe(l Launch, p *simPool) string {
	wall, b := w.walled(p.Account, w.now), w.brokers[p.Account]
	if wall == nil {
		return ""
	}
	at := slices.IndexFunc(b.state.Tickets, func(t brokerTicket) bool { return t.ID == l.Ticket })
	model := limitModel(wall.outcome, &contract.Limit{Scope: wall.scope()}, p.Model)
	known := slices.IndexFunc(b.state.Walls, func(x brokerWall) bool { return x.Model == model })
	if known < 0 || b.state.Walls[known].Began.Before(wall.from) || !b.state.Tickets[at].Granted.After(b.state.Walls[known].Began) {
		return ""
	}
	key := p.Account + "/" + model
	w.probes[key]++
	require.Equal(w.t, 1, w.probes[key], "wall %s is hammered", key)
	return key
}

func (x *simWall) scope() string {
	if x.outcome == contract.OutcomeRateLimited {
		return scopeAccount
	}
	return "none"
}

func (w *world) pool(id string) *simPool {
	return &w.pools[slices.IndexFunc(w.pools, func(p simPool) bool { return p.ID == id })]
}

func (w *world) outcome(r *simRun, l Launch, p *simPool) (contract.AttemptResult, time.Duration) {
	quick := time.Second + time.Duration(w.rnd.IntN(20_000))*time.Millisecond
	length := quick + time.Duration(w.rnd.IntN(300))*time.Second
	kept := &contract.Kept{Attempt: l.Input.Attempt, Host: "h", Pool: p.ID}
	switch {
	case !p.dry.IsZero() && w.now.After(p.dry):
		return contract.AttemptResult{Outcome: contract.OutcomeCreditExhausted, Limit: &contract.Limit{Hard: true, Scope: "account"}, Kept: kept}, quick
	case p.missing:
		return contract.AttemptResult{Outcome: contract.OutcomeModelUnavailable}, quick
	case p.context > 0 && r.tokens[l.Input.Node] > p.context:
		r.refused[l.Input.Node] = append(r.refused[l.Input.Node], p.ID)
		return contract.AttemptResult{Outcome: contract.OutcomePacketTooLarge}, quick
	case p.down:
		return contract.AttemptResult{Outcome: contract.OutcomeError, Cause: contract.CauseProvider}, quick
	}
	wall := w.walled(p.Account, w.now)
	if wall == nil {
		if later := w.walled(p.Account, w.now.Add(length)); later != nil {
			wall, quick = later, later.from.Sub(w.now)+quick
		}
	}
	if wall != nil {
		return w.limited(p, wall, w.now.Add(quick), kept), quick
	}
	if w.rnd.Float64() < w.calm {
		return contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Items: r.host.answer(l), Usage: contract.Usage{InputTokens: 100, Known: true}}, length
	}
	switch w.rnd.IntN(6) {
	case 0:
		return contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Kept: kept}, length
	case 1:
		return contract.AttemptResult{Outcome: contract.OutcomeTimeout}, length
	}
	causes := []contract.Cause{contract.CauseWork, contract.CauseConflict, contract.CauseProvider, contract.CauseHost}
	return contract.AttemptResult{Outcome: contract.OutcomeError, Cause: causes[w.rnd.IntN(4)]}, length
}

func (w *world) limited(p *simPool, wall *simWall, at time.Time, kept *contract.Kept) contract.AttemptResult {
	w.limits++
	limit := &contract.Limit{Scope: wall.scope()}
	if wall.states {
		reset := wall.to.Add(-wall.early).Add(time.Second)
		limit.ReopensAt = &reset
	}
	return contract.AttemptResult{Outcome: wall.outcome, Limit: limit, Kept: kept}
}

// run carries the simulation on until nothing is left to happen.
func (w *world) run() {
	for steps := 0; len(w.events) > 0; steps++ {
		require.Less(w.t, steps, 60_000, "the simulation spins")
		e := heap.Pop(&w.events).(simEvent)
		w.now = e.at
		e.do()
	}
}

func TestDrivesAndBrokersLoseNothingAndNeverExceedACap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, r := range w.runs {
			r.feed()
		}
		w.run()
		for _, r := range w.runs {
			r.checkOver()
		}
		for account, b := range w.brokers {
			require.Zero(t, b.Status(w.now).Running+b.Status(w.now).Waiting, "slots of %s leaked", account)
		}
	})
}
