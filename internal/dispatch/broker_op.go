package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// brokerOp is one call of the broker under way: what it has to tell whom.
type brokerOp struct {
	b      *Broker
	now    time.Time
	out    []Push                  // one per holder, by id
	told   bool                    // pauses or exhaustions changed: every holder is told all of them
	lifted []contract.AccountState // those that ended before their time
}

// begin starts a call with what became due.
func (b *Broker) begin(now time.Time) *brokerOp {
	o := &brokerOp{b: b, now: now}
	o.expire()
	return o
}

// end grants what fits and returns the messages.
func (o *brokerOp) end() []Push {
	o.grant()
	if o.told {
		states := o.states()
		for _, h := range o.b.state.Holders {
			o.to(h.ID).States = states
		}
		if len(o.lifted) > 0 {
			o.wakeRuns(states)
		}
	}
	for i := range o.out {
		p := &o.out[i]
		p.Grants.Account = o.b.state.Account
		if p.Holder == "" {
			continue
		}
		if len(p.Grants.Granted) > 0 {
			p.Grants.Coverage = cmp.Or(o.b.state.Coverage, coverageNone)
		}
		h, _ := o.b.holder(p.Holder, p.Run)
		h.Out++
		p.Grants.Seq = h.Out
	}
	return o.out
}

// to is the message under way to a holder.
func (o *brokerOp) to(holder string) *contract.Grants {
	at, found := slices.BinarySearchFunc(o.out, holder, func(p Push, id string) int { return strings.Compare(p.Holder, id) })
	if !found {
		o.out = slices.Insert(o.out, at, Push{Holder: holder})
	}
	return &o.out[at].Grants
}

// greet tells a new holder what holds now.
func (o *brokerOp) greet(holder string) {
	if states := o.states(); len(states) > 0 {
		o.to(holder).States = states
	}
}

// wakeRuns tells the runs that may wait without a drive that something ended
// before its time: those whose tickets were refused, and those of every holder,
// since a drive that saw the wall itself strands its nodes without asking.
// At a pause's own end they come by their own timers.
func (o *brokerOp) wakeRuns(states []contract.AccountState) {
	for _, h := range o.b.state.Holders {
		o.b.waits(h.Run)
	}
	for _, run := range o.b.state.Waiting {
		o.out = append(o.out, Push{Run: run, Grants: contract.Grants{States: states}})
	}
	o.b.state.Waiting = nil
}

// states is every pause and exhaustion that holds, and those lifted just now.
func (o *brokerOp) states() []contract.AccountState {
	states := slices.Clone(o.lifted)
	for i := range o.b.state.Walls {
		if w := &o.b.state.Walls[i]; w.stands() {
			states = append(states, w.wire(o.b.state.Account))
		}
	}
	slices.SortStableFunc(states, func(a, b contract.AccountState) int { return strings.Compare(a.Model, b.Model) })
	return states
}

// reserve lets a ticket wait, or refuses it.
func (o *brokerOp) reserve(h *brokerHolder, r *contract.Reservation) {
	state := &o.b.state
	h.state(r.Pool, r.Cap)
	if slices.ContainsFunc(state.Tickets, func(t brokerTicket) bool { return t.ID == r.Ticket }) {
		return
	}
	t := brokerTicket{ID: r.Ticket, Holder: h.ID, Run: h.Run, Pool: r.Pool, Model: r.Model, Tokens: r.Tokens, Priority: r.Priority}
	if w := o.wallOver(&t); w != nil {
		o.refuse(&t, w)
		return
	}
	state.Arrivals++
	t.Arrival = state.Arrivals
	state.Tickets = append(state.Tickets, t)
}

// state records the cap that the holder states for a pool.
func (h *brokerHolder) state(pool string, most int) {
	at, found := slices.BinarySearchFunc(h.Caps, pool, func(c brokerCap, id string) int { return strings.Compare(c.Pool, id) })
	if !found {
		h.Caps = slices.Insert(h.Caps, at, brokerCap{Pool: pool})
	}
	h.Caps[at].Cap = max(most, 1)
}

// refuse answers a ticket that a wall keeps out, and remembers its run.
func (o *brokerOp) refuse(t *brokerTicket, w *brokerWall) {
	no := contract.TicketRefusal{Ticket: t.ID, Cause: refusedExhausted, Reason: w.Reason}
	if w.Phase == wallPaused {
		until := w.Until
		no.Cause, no.Until = refusedPaused, &until
	}
	g := o.to(t.Holder)
	g.Refused = append(g.Refused, no)
	o.b.waits(t.Run)
}

// waits remembers a run that is to be told when something ends before its time.
func (b *Broker) waits(run string) {
	at, found := slices.BinarySearch(b.state.Waiting, run)
	if !found {
		b.state.Waiting = slices.Insert(b.state.Waiting, at, run)
	}
}

// Causes of a refusal (contract.TicketRefusal).
const (
	refusedPaused    = "paused"
	refusedExhausted = "exhausted"
	refusedBudget    = "budget"
)

// refuseWaiting answers every waiting ticket that a new wall keeps out.
func (o *brokerOp) refuseWaiting(w *brokerWall) {
	o.b.state.Tickets = slices.DeleteFunc(o.b.state.Tickets, func(t brokerTicket) bool {
		if t.alive() || !t.under(w.Model) {
			return false
		}
		o.refuse(&t, w)
		return true
	})
}

// grant gives free slots to waiting tickets by priority (lower first) and arrival.
func (o *brokerOp) grant() {
	tickets := o.b.state.Tickets
	line := make([]int, 0, len(tickets))
	for i := range tickets {
		if !tickets[i].alive() {
			line = append(line, i)
		}
	}
	slices.SortFunc(line, func(x, y int) int {
		return cmp.Or(cmp.Compare(tickets[x].Priority, tickets[y].Priority), cmp.Compare(tickets[x].Arrival, tickets[y].Arrival))
	})
	for _, i := range line {
		if t := &tickets[i]; o.fits(t) {
			t.Granted = o.now
			g := o.to(t.Holder)
			g.Granted = append(g.Granted, t.ID)
		}
	}
}

// fits reports whether one more attempt may run for the ticket: caps of pool
// and account, ramps of the account and the model, and nearly used windows.
func (o *brokerOp) fits(t *brokerTicket) bool {
	state := &o.b.state
	inPool := o.alive(func(a *brokerTicket) bool { return a.Pool == t.Pool })
	if inPool >= o.b.poolCap(t.Pool) || o.alive(anyTicket) >= o.b.accountCap() {
		return false
	}
	for i := range state.Walls {
		w := &state.Walls[i]
		if !t.under(w.Model) || !w.Ramp.ramping() {
			continue
		}
		since := o.alive(func(a *brokerTicket) bool { return a.under(w.Model) && w.Ramp.counts(a.Granted) })
		if since >= w.Ramp.Allowed {
			return false
		}
	}
	for i := range state.Windows {
		w := &state.Windows[i]
		if t.under(w.Model) && w.UsedPermill >= windowNearly && o.alive(func(a *brokerTicket) bool { return a.under(w.Model) }) > 0 {
			return false
		}
	}
	return true
}

func anyTicket(*brokerTicket) bool { return true }

// alive counts the attempts that run and match.
func (o *brokerOp) alive(match func(*brokerTicket) bool) int {
	n := 0
	for i := range o.b.state.Tickets {
		if t := &o.b.state.Tickets[i]; t.alive() && match(t) {
			n++
		}
	}
	return n
}

// poolCap is the smallest cap that a holder with tickets states for the pool.
func (b *Broker) poolCap(pool string) int {
	least := 0
	for h := range b.present() {
		for _, c := range h.Caps {
			if c.Pool == pool && (least == 0 || c.Cap < least) {
				least = c.Cap
			}
		}
	}
	return least
}

// accountCap is the widest sum of caps that a holder with tickets states.
func (b *Broker) accountCap() int {
	widest := 0
	for h := range b.present() {
		sum := 0
		for _, c := range h.Caps {
			sum += c.Cap
		}
		widest = max(widest, sum)
	}
	return widest
}

// present yields the holders that have tickets.
func (b *Broker) present() func(func(*brokerHolder) bool) {
	return func(yield func(*brokerHolder) bool) {
		for i := range b.state.Holders {
			h := &b.state.Holders[i]
			has := slices.ContainsFunc(b.state.Tickets, func(t brokerTicket) bool { return t.Holder == h.ID })
			if has && !yield(h) {
				return
			}
		}
	}
}
