package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// A host pool is attended: a person or an attended agent claims nodes from it,
// and only then they go there. What waits in the queue is offered to it all the
// time, so there is one frontier; whoever takes a node first has it alone.

// Attend makes host pools attended from now on. Drives of builds that did not
// know them place nodes there as on any other pool, and keep to it when replayed.
func (d *Drive) Attend() {
	d.in.Attended = true
	for _, p := range d.pools {
		p.attended = p.def.Provider == contract.ProviderHost
	}
}

// Claim gives a waiting node to a claim: the named one, else the first in line.
// Whether it did is told by the next report.
func (d *Drive) Claim(c contract.Claim, now time.Time) {
	if d.claimed(c.ID) != nil {
		return
	}
	p := d.pool(c.Pool)
	switch {
	case d.closing():
		d.decline(c.ID, "nothing starts any more in this drive")
	case p == nil || p.excluded || !p.attended:
		d.decline(c.ID, "pool "+c.Pool+" is not an attended pool of the run")
	case d.launches+d.pending(nil) >= MaxAttempts:
		d.decline(c.ID, "the drive has had its last attempt")
	case p.slots()-p.waiting-p.running <= 0:
		d.decline(c.ID, fmt.Sprintf("pool %s has %d of %d nodes already", c.Pool, p.waiting+p.running, p.slots()))
	default:
		n, why := d.claimable(c)
		if n == nil {
			d.decline(c.ID, why)
			return
		}
		d.bind(n, p, c, now)
	}
}

// bind asks for the pool's slot. What the node waited for elsewhere is given back.
func (d *Drive) bind(n *driveNode, p *drivePool, c contract.Claim, now time.Time) {
	d.withdraw(n)
	n.claim = &c
	t := driveTicket{id: d.ticketID(n), pool: p, at: now}
	n.tickets = append(n.tickets, t)
	n.asked++
	p.took(t.spend, 1, 0)
	m := d.to(p.def.Account)
	m.next.Reserve = append(m.next.Reserve, contract.Reservation{
		Ticket: t.id, Pool: p.def.ID, Model: p.def.Model, Cap: p.slots(),
	})
}

// claimable is the node for a claim, or why there is none.
func (d *Drive) claimable(c contract.Claim) (n *driveNode, why string) {
	if c.Node == "" {
		at := slices.IndexFunc(d.queue, func(n *driveNode) bool { return n.run == nil && n.claim == nil })
		if at < 0 {
			return nil, "no node waits"
		}
		return d.queue[at], ""
	}
	switch n := d.node(c.Node); {
	case n == nil:
		return nil, "node " + c.Node + " does not wait in this drive"
	case n.run != nil:
		return nil, fmt.Sprintf("node %s is worked on by attempt %d on pool %s", c.Node, n.run.attempt, n.run.pool.def.ID)
	case n.claim != nil:
		return nil, "node " + c.Node + " is claimed by " + n.claim.By
	default:
		return n, ""
	}
}

// Unclaim takes back a claim whose attempt has not begun.
func (d *Drive) Unclaim(id string) {
	if n := d.claimed(id); n != nil && n.run == nil {
		d.withdraw(n)
		d.unbind(n, "withdrawn")
	}
}

// claimed finds the node of a claim.
func (d *Drive) claimed(id string) *driveNode {
	at := slices.IndexFunc(d.queue, func(n *driveNode) bool { return n.claim != nil && n.claim.ID == id })
	if at < 0 {
		return nil
	}
	return d.queue[at]
}

// dropClaims declines the claims whose slot was refused or taken back.
func (d *Drive) dropClaims() {
	for _, n := range d.queue {
		if n.claim != nil && n.run == nil && len(n.tickets) == 0 {
			d.unbind(n, "pool "+n.claim.Pool+" takes nothing more now")
		}
	}
}

// unbind ends a claim that got no attempt.
func (d *Drive) unbind(n *driveNode, why string) {
	d.decline(n.claim.ID, why)
	n.claim = nil
}

func (d *Drive) decline(id, why string) {
	d.report.Claims = append(d.report.Claims, contract.ClaimReport{ID: id, State: contract.ClaimDeclined, Reason: clip(why, reasonBytes)})
}

// tellGiven says that a claim's attempt begins.
func (d *Drive) tellGiven(n *driveNode) {
	if n.claim != nil {
		d.report.Claims = append(d.report.Claims, contract.ClaimReport{
			ID: n.claim.ID, Node: n.Node, Attempt: n.run.attempt, State: contract.ClaimGiven,
		})
	}
}

// endClaim says how a claim's attempt ended.
func (d *Drive) endClaim(n *driveNode, res *contract.AttemptResult) {
	if n.claim == nil {
		return
	}
	d.report.Claims = append(d.report.Claims, contract.ClaimReport{
		ID: n.claim.ID, Node: n.Node, Attempt: res.Attempt, State: contract.ClaimEnded,
		Outcome: res.Outcome, Became: res.State, Commit: res.Commit, Salvage: res.Salvage, Reason: clip(res.Reason, reasonBytes),
	})
	n.claim = nil
}
