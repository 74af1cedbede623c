package dispatch

import (
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Actions are what the host carries out after a decision, in this order.
type Actions struct {
	Messages []Message              // to brokers, by account; each is given out once
	Reports  []contract.DriveReport // to the run, in order of their Seq; each is given out once
	Wake     time.Time              // call Decide again then, if nothing happens before; zero: never
	Drained  bool                   // the last report says so; the drive is over once the messages and reports are sent
}

// Message is what the drive has to tell the broker of an account.
type Message struct {
	Account string
	Tickets contract.Tickets
}

// driveAccount holds the traffic between the drive and a broker.
type driveAccount struct {
	account string
	next    contract.Tickets // under way
	sent    int              // our last message
	got     int              // its last message
}

func (m *driveAccount) empty() bool {
	return len(m.next.Reserve)+len(m.next.Withdraw)+len(m.next.Settle) == 0
}

// to is the message under way to a broker.
func (d *Drive) to(account string) *driveAccount {
	at, found := slices.BinarySearchFunc(d.accounts, account, func(m *driveAccount, id string) int {
		return strings.Compare(m.account, id)
	})
	if !found {
		d.accounts = slices.Insert(d.accounts, at, &driveAccount{account: account})
	}
	return d.accounts[at]
}

// Decide does what is due at now: it asks for slots, takes back what is no
// longer wanted, strands nodes that no pool can take, and says what happened
// since the last call. Calling it again at once does nothing.
func (d *Drive) Decide(now time.Time) Actions {
	d.tell(now)
	var wake time.Time
	if d.closing() {
		d.sealed = d.sealed || d.stop == ""
		d.strandHeld()
	} else {
		d.trim()
		d.dropClaims()
		wake = d.place(now)
	}
	if wake = earliest(wake, d.nextReopening()); len(d.queue) == 0 {
		wake = time.Time{}
	}
	actions := Actions{Messages: d.messages(), Wake: wake}
	actions.Drained = d.finish()
	actions.Reports = d.flush(actions.Drained)
	return actions
}

// finish decides whether the drive is over: nothing is left, and either nothing
// will follow or what it had was stranded.
func (d *Drive) finish() bool {
	if d.drained || len(d.queue) > 0 || !d.sealed && d.stop == "" && !d.returned {
		return false
	}
	d.drained = true
	return true
}

// nextReopening is when a pause ends that nodes in the queue could wait for.
func (d *Drive) nextReopening() time.Time {
	var at time.Time
	for i := range d.walls {
		if w := &d.walls[i]; !w.exhausted {
			at = earliest(at, w.until)
		}
	}
	for _, p := range d.pools {
		if p.away.After(d.clock) {
			at = earliest(at, p.away)
		}
	}
	return at
}

// strandHeld returns every node that does not run.
func (d *Drive) strandHeld() {
	busy := d.stop == "" && slices.ContainsFunc(d.queue, func(n *driveNode) bool { return n.run != nil })
	for _, n := range slices.Clone(d.queue) {
		if n.run == nil && (!n.late || !busy) {
			d.strand(n, contract.Stranding{Cause: contract.StrandHeld, Reason: d.heldBecause()})
		}
	}
}

func (d *Drive) heldBecause() string {
	switch {
	case d.stop != "":
		return "the run stopped this drive"
	case d.drained:
		return "the drive had ended"
	}
	return "the drive has had its last attempt; the node goes to a new one"
}

// trim withdraws tickets of pools that may run less than they were asked for, the youngest first.
func (d *Drive) trim() {
	for _, p := range d.pools {
		for i := len(d.queue) - 1; i >= 0 && p.waiting > 0 && d.room(p) < 0; i-- {
			d.withdrawWhere(d.queue[i], func(t *driveTicket) bool { return t.pool == p })
		}
	}
}

// placement is the search for pools of one decision.
type placement struct {
	d     *Drive
	now   time.Time
	views []PoolView
	freed bool // a ticket was dropped: nodes passed over may have its slot
	wake  time.Time
}

// place decides for every node that does not run, in the order of their turns,
// until no ticket moves any more: every move is to a better pool, so rounds
// beyond the number of nodes have nothing to do.
func (d *Drive) place(now time.Time) (wake time.Time) {
	pass := &placement{d: d, now: now, views: d.views()}
	for range len(d.queue) + 1 {
		pass.freed, pass.wake = false, time.Time{}
		for _, n := range slices.Clone(d.queue) {
			pass.turn(n)
		}
		if !pass.freed {
			break
		}
	}
	for _, n := range d.queue {
		if len(n.tickets) > 0 && n.claim == nil {
			pass.hedge(n)
		}
	}
	return pass.wake
}

// turn decides for one node.
func (pass *placement) turn(n *driveNode) {
	switch {
	case n.run != nil || n.claim != nil:
	case n.notBefore.After(pass.now):
		pass.wake = earliest(pass.wake, n.notBefore)
	case n.broke:
		pass.d.strand(n, contract.Stranding{Cause: contract.StrandBudgetExhausted, Reason: "the account's budget is used up"})
	default:
		pass.node(n)
	}
}

// node finds the pool of one node.
func (pass *placement) node(n *driveNode) {
	s := newSelection(n.view(), pass.views, pass.d.spill(), pass.now)
	pass.drop(n, func(t *driveTicket) bool {
		return !slices.ContainsFunc(s.order, func(p *PoolView) bool { return p.ID == t.pool.def.ID })
	})
	if len(s.order) == 0 {
		if s.offered == nil { // else somebody may claim it
			pass.strand(n, s)
		}
		return
	}
	best := s.best()
	if best == nil {
		return
	}
	if len(n.tickets) > 0 && !s.waitsAt(best) {
		if held := slices.IndexFunc(s.order, s.waitsAt); s.worth(best, s.order[held]) < 0 {
			pass.drop(n, func(*driveTicket) bool { return true })
		}
	}
	if len(n.tickets) == 0 {
		pass.reserve(n, s, best)
	}
}

// hedge asks another idle pool as well when the wait has become long.
func (pass *placement) hedge(n *driveNode) {
	for {
		s := newSelection(n.view(), pass.views, pass.d.spill(), pass.now)
		idle := slices.IndexFunc(s.order, func(p *PoolView) bool { return p.Free > 0 && !s.waitsAt(p) })
		if idle < 0 {
			return
		}
		had := len(n.tickets)
		if due := n.tickets[had-1].at.Add(hedgeAfter); due.After(pass.now) {
			pass.wake = earliest(pass.wake, due)
			return
		}
		if pass.reserve(n, s, s.order[idle]); len(n.tickets) == had {
			return
		}
	}
}

// reserve asks for a slot, if the lease allows it.
func (pass *placement) reserve(n *driveNode, s *selection, view *PoolView) {
	d := pass.d
	if d.launches+d.pending(n) >= MaxAttempts {
		return
	}
	p := d.pool(view.ID)
	spend := d.allowance(n, p)
	if d.lease.capped() && !d.lease.covers(d.committed(n).plus(spend)) {
		pass.unaffordable(n)
		return
	}
	if s.relaxed != "" {
		d.friction(contract.FrictionTierRelaxed, n.Node, severityInfo,
			"no pool of tier "+string(s.node.Tier)+" or above is live: the node ran on tier "+string(p.def.Tier))
	}
	t := driveTicket{id: d.ticketID(n), pool: p, first: s.order[0].ID, at: pass.now, spend: spend}
	n.tickets = append(n.tickets, t)
	n.asked++
	p.took(spend, 1, 0)
	view.Free--
	view.InFlight += spend.Tokens
	m := d.to(p.def.Account)
	m.next.Reserve = append(m.next.Reserve, contract.Reservation{
		Ticket: t.id, Pool: p.def.ID, Model: p.def.Model, Cap: p.slots(),
		Tokens: spend.Tokens,
	})
}

// unaffordable strands a node for which nothing is left, once nothing runs any
// more that could give something back.
func (pass *placement) unaffordable(n *driveNode) {
	d := pass.d
	if len(n.tickets) > 0 || slices.ContainsFunc(d.queue, func(m *driveNode) bool { return m.run != nil || len(m.tickets) > 0 }) {
		return
	}
	d.strand(n, contract.Stranding{Cause: contract.StrandBudgetExhausted, Reason: "the next attempt does not fit into the budget"})
}

// drop withdraws tickets of a node and gives their slots back to this pass.
func (pass *placement) drop(n *driveNode, unwanted func(*driveTicket) bool) {
	pass.d.withdrawWhere(n, func(t *driveTicket) bool {
		if !unwanted(t) {
			return false
		}
		if at := slices.Index(pass.d.pools, t.pool); at >= 0 {
			pass.views[at].Free++
			pass.views[at].InFlight -= t.spend.Tokens
		}
		pass.freed = true
		return true
	})
}

// strand returns a node that no pool can take, unless a limit that only this
// drive saw is among the reasons: the broker's word comes within moments.
func (pass *placement) strand(n *driveNode, s *selection) {
	cause, notBefore := s.cause()
	if cause != contract.StrandNoCapablePool {
		if guess := pass.d.guessing(n, pass.now); !guess.IsZero() {
			pass.wake = earliest(pass.wake, guess)
			return
		}
	}
	pass.d.strand(n, contract.Stranding{
		Cause: cause, NotBefore: notBefore, Reason: strandReason(cause, notBefore), Passed: s.passed(""),
	})
}

func strandReason(cause contract.StrandCause, notBefore *time.Time) string {
	switch {
	case notBefore != nil:
		return "every pool that could take it is paused, the first until " + notBefore.UTC().Format(time.RFC3339)
	case cause == contract.StrandUnserved:
		return "no host takes attempts from the queue of a pool that could take it: start a worker that serves it"
	case cause == contract.StrandEmptyPool:
		return "every pool that could take it is exhausted; reopen one"
	}
	return "no pool can take it, and waiting will not help: add a pool, or one with more context"
}

// guessing is until when a wall is unconfirmed that could matter to the node; zero when none is.
func (d *Drive) guessing(n *driveNode, now time.Time) time.Time {
	var at time.Time
	for i := range d.walls {
		w := &d.walls[i]
		matters := slices.ContainsFunc(d.pools, func(p *drivePool) bool {
			return w.over(p) && !p.excluded && !slices.Contains(n.Refused, p.def.ID)
		})
		if matters && w.guess.After(now) {
			at = later(at, w.guess)
		}
	}
	return at
}

// ticketID is the workflow id of the node's next attempt. A further reservation
// of the same attempt gets a suffix: a grant of the earlier one may be under way.
func (d *Drive) ticketID(n *driveNode) string {
	id := contract.NodeID(d.in.Run, d.in.Drive, n.Node, n.NextAttempt)
	if n.asked == 0 {
		return id
	}
	return id + "~" + itoa(n.asked+1)
}

// pending counts the attempts that other nodes' tickets may still become.
func (d *Drive) pending(but *driveNode) int {
	count := 0
	for _, n := range d.queue {
		if n != but && len(n.tickets) > 0 {
			count++
		}
	}
	return count
}

// withdraw takes back every waiting ticket of a node.
func (d *Drive) withdraw(n *driveNode) {
	d.withdrawWhere(n, func(*driveTicket) bool { return true })
}

func (d *Drive) withdrawWhere(n *driveNode, unwanted func(*driveTicket) bool) {
	n.tickets = slices.DeleteFunc(n.tickets, func(t driveTicket) bool {
		if !unwanted(&t) {
			return false
		}
		t.pool.took(t.spend, -1, 0)
		d.giveBack(t.pool.def.Account, t.id)
		return true
	})
}

// giveBack tells the broker that a ticket is not wanted. One that was never sent is only forgotten.
func (d *Drive) giveBack(account, ticket string) {
	m := d.to(account)
	unsent := slices.IndexFunc(m.next.Reserve, func(r contract.Reservation) bool { return r.Ticket == ticket })
	if unsent >= 0 {
		m.next.Reserve = slices.Delete(m.next.Reserve, unsent, unsent+1)
		return
	}
	m.next.Withdraw = append(m.next.Withdraw, ticket)
}

// allowance is what the next attempt of a node on a pool reserves.
func (d *Drive) allowance(n *driveNode, p *drivePool) Spend {
	tokens := Allowance(d.in.Policy.AttemptTokens, plan.Tier(n.Tier), p.seen)
	return Spend{Tokens: tokens, USDMicros: Price(p.def.Cost, tokens)}
}

// committed is what the drive spent and has promised, except to this node: of
// several tickets of one node the dearest counts.
func (d *Drive) committed(but *driveNode) Spend {
	sum := d.spent
	for _, n := range d.queue {
		if n == but {
			continue
		}
		var most Spend
		for _, t := range n.tickets {
			most = Spend{Tokens: max(most.Tokens, t.spend.Tokens), USDMicros: max(most.USDMicros, t.spend.USDMicros)}
		}
		if n.run != nil {
			most = n.run.spend
		}
		sum = sum.plus(most)
	}
	return sum
}
