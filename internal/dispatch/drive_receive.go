package dispatch

import (
	"slices"
	"time"

	"mendflow/internal/contract"
)

// Launch is an attempt to start now: the host starts the workflow whose id is
// contract.NodeID of the input, and feeds its result to Ended.
type Launch struct {
	Input   contract.NodeInput // Kept is set when the attempt continues that tree
	Pool    contract.Pool      // the definition that the attempt runs under
	Account string
	Ticket  string
	Leaves  *contract.Kept // a tree of an earlier attempt to salvage and release: this one starts fresh
	Spend   Spend          // reserved
}

// Receive takes one message of a broker: what holds of the account, what it
// refused and what it granted. It returns the attempts to start, in the order
// of the grants. A grant that is no longer wanted is given back by the next
// Decide. A message seen before changes nothing.
func (d *Drive) Receive(g contract.Grants, now time.Time) []Launch {
	m := d.to(g.Account)
	if g.Seq > 0 && g.Seq <= m.got {
		return nil
	}
	m.got = max(m.got, g.Seq)
	d.tell(now)
	if len(g.States) > 0 {
		d.states(g.Account, g.States, now)
	}
	for i := range g.Refused {
		d.refused(&g.Refused[i], now)
	}
	var launches []Launch
	for _, ticket := range g.Granted {
		if l, ok := d.granted(g.Account, ticket, now); ok {
			d.blind(&l, g.Coverage)
			launches = append(launches, l)
		}
	}
	return launches
}

// blind tells once that a budget is spent where nobody reports what is left of
// the provider's own quota. What is free has none.
func (d *Drive) blind(l *Launch, coverage string) {
	if coverage == coverageNone && d.lease.capped() && !l.Pool.Cost.Free() {
		d.friction(contract.FrictionQuotaBlind, l.Account, severityInfo,
			"nothing is known about the quota of account "+l.Account+": a wall may come before the budget is spent")
	}
}

// states replaces what is known about an account. What only this drive saw
// stays for a moment: the message may be older.
func (d *Drive) states(account string, states []contract.AccountState, now time.Time) {
	said := func(w *driveWall) *contract.AccountState {
		at := slices.IndexFunc(states, func(s contract.AccountState) bool { return s.Model == w.model })
		if at < 0 {
			return nil
		}
		return &states[at]
	}
	for i := range states {
		d.state(account, &states[i], now)
	}
	d.takeDown(now, func(w *driveWall) bool {
		if w.account != account {
			return false
		}
		s := said(w)
		return s != nil && s.State == wallOpen || s == nil && !w.guess.After(now)
	})
}

// state takes one pause, exhaustion or early reopening of an account.
func (d *Drive) state(account string, s *contract.AccountState, now time.Time) {
	w := driveWall{account: account, model: s.Model, reason: wallReason(s.Outcome, s.Reason)}
	switch {
	case s.State == wallExhausted:
		w.exhausted = true
	case s.State == wallPaused && s.Until != nil && s.Until.After(now):
		w.until = *s.Until
	case s.State == wallOpen && s.Outcome == "":
		d.reopened(&w, now)
		return
	default:
		return
	}
	d.raise(w, now)
	if !w.exhausted && !s.Since.IsZero() && now.Sub(s.Since) >= downAfter {
		d.down(&w, s.Since)
	}
}

// reopened takes an operator's reopening: the run's own verdicts end with it.
func (d *Drive) reopened(w *driveWall, now time.Time) {
	for _, p := range d.pools {
		if !w.over(p) {
			continue
		}
		p.proven = now
		if p.settled != "" {
			p.settled = ""
			p.ramp.start(now)
		}
	}
}

// down tells once that nobody succeeds on the pools behind a wall.
func (d *Drive) down(w *driveWall, since time.Time) {
	for _, p := range d.pools {
		if w.over(p) && !p.excluded {
			d.friction(contract.FrictionPoolDown, p.def.ID, severityWarning,
				"nobody succeeded there since "+since.UTC().Format(time.RFC3339)+": "+w.reason)
		}
	}
}

// refused takes a ticket that will not be granted now. The broker's states say
// more; the refusal alone is enough to stop asking.
func (d *Drive) refused(r *contract.TicketRefusal, now time.Time) {
	n, t := d.ticket(r.Ticket)
	if n == nil {
		return
	}
	p := t.pool
	n.tickets = slices.DeleteFunc(n.tickets, func(x driveTicket) bool { return x.id == r.Ticket })
	p.took(t.spend, -1, 0)
	switch {
	case r.Cause == refusedBudget:
		n.broke = true
	case d.wallOver(p) != nil:
	case r.Cause == refusedExhausted:
		d.raise(driveWall{account: p.def.Account, model: p.def.Model, exhausted: true, reason: r.Reason}, now)
	default:
		until := now.Add(pauseBase)
		if r.Until != nil {
			until = later(*r.Until, now.Add(time.Second))
		}
		d.raise(driveWall{account: p.def.Account, model: p.def.Model, until: until, reason: r.Reason}, now)
	}
}

// ticket finds a waiting reservation and its node; nil when there is none.
func (d *Drive) ticket(id string) (*driveNode, driveTicket) {
	for _, n := range d.queue {
		for _, t := range n.tickets {
			if t.id == id {
				return n, t
			}
		}
	}
	return nil, driveTicket{}
}

// granted starts the attempt of a ticket, or gives the slot back.
func (d *Drive) granted(account, id string, now time.Time) (Launch, bool) {
	n, t := d.ticket(id)
	if n == nil {
		if !slices.ContainsFunc(d.queue, func(n *driveNode) bool { return n.run != nil && n.run.ticket == id }) {
			d.giveBack(account, id)
		}
		return Launch{}, false
	}
	if phase, _, _ := d.phase(t.pool); d.closing() || phase != PhaseLive && phase != PhaseRamping {
		d.withdrawWhere(n, func(x *driveTicket) bool { return x.id == id })
		return Launch{}, false
	}
	d.withdrawWhere(n, func(x *driveTicket) bool { return x.id != id })
	n.tickets = nil
	t.pool.took(t.spend, -1, 0)
	t.pool.took(t.spend, 0, 1)
	return d.launch(n, &t, now), true
}

// launch makes the attempt of a node.
func (d *Drive) launch(n *driveNode, t *driveTicket, now time.Time) Launch {
	p := t.pool
	l := Launch{Pool: p.def, Account: p.def.Account, Ticket: t.id, Spend: t.spend, Input: contract.NodeInput{
		Run: d.in.Run, Drive: d.in.Drive, Config: d.in.Config,
		Node: n.Node, Opening: n.Opening, Attempt: n.NextAttempt, Pool: p.def.ID,
		Findings: n.Findings, Tail: n.Tail, Salvage: n.Salvage, Clarified: n.Clarified, Tokens: d.cap(n, t),
	}}
	if n.Kept != nil && n.Kept.Pool == p.def.ID {
		l.Input.Kept = n.Kept
	} else {
		l.Leaves = n.Kept
	}
	if n.FirstPool == "" {
		n.FirstPool = t.first
	}
	l.Input.Claim, l.Input.Capped = n.claim, n.over
	n.run = &driveRun{ticket: t.id, pool: p, attempt: n.NextAttempt, at: now, spend: t.spend}
	d.tellGiven(n)
	n.NextAttempt++
	n.asked, n.notBefore = 0, time.Time{}
	d.launches++
	return l
}

// cap is what the program is told to stay within: nothing, unless the operator
// set attempt_tokens or a budget; then the larger of three reservations and
// attempt_tokens, within what is left.
func (d *Drive) cap(n *driveNode, t *driveTicket) int {
	if t.pool.attended || d.in.Policy.AttemptTokens == 0 && !d.lease.capped() {
		return 0
	}
	most := max(3*t.spend.Tokens, int64(d.in.Policy.AttemptTokens))
	if d.lease.Tokens != nil {
		most = max(min(most, *d.lease.Tokens-d.committed(n).Tokens), 1)
	}
	return int(most)
}
