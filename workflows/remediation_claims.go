package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// keptClaims is how many closed claims a run remembers, so that their holders learn what became of them.
const keptClaims = 20

// claim is one request of a person or an attended agent for a node.
type claim struct {
	contract.ClaimRow
	Withdrawn bool                       `json:"withdrawn,omitempty"`
	box       *outbox[contract.HandOver] // to the attempt; nil until something was said
}

// claimBook holds the claims of a run, oldest first.
type claimBook struct {
	Made   int      `json:"made,omitempty"` // ids given out
	Claims []*claim `json:"claims,omitempty"`
}

// find returns the newest claim that is as wanted.
func (b *claimBook) find(is func(*claim) bool) *claim {
	for _, c := range slices.Backward(b.Claims) {
		if is(c) {
			return c
		}
	}
	return nil
}

// holding counts the open claims on a pool.
func (b *claimBook) holding(pool string) int {
	n := 0
	for _, c := range b.Claims {
		if c.State.Open() && c.Pool == pool {
			n++
		}
	}
	return n
}

// add remembers a claim and forgets the oldest closed ones.
func (b *claimBook) add(c *claim) {
	b.Claims = append(b.Claims, c)
	closed := 0
	for _, c := range b.Claims {
		if !c.State.Open() {
			closed++
		}
	}
	b.Claims = slices.DeleteFunc(b.Claims, func(c *claim) bool {
		if closed <= keptClaims || c.State.Open() {
			return false
		}
		closed--
		return true
	})
}

// idle reports whether everything said to attempts was acknowledged.
func (b *claimBook) idle() bool {
	return !slices.ContainsFunc(b.Claims, func(c *claim) bool { return c.box != nil && !c.box.idle() })
}

func (b *claimBook) rows() []contract.ClaimRow {
	rows := make([]contract.ClaimRow, 0, len(b.Claims))
	for _, c := range b.Claims {
		rows = append(rows, c.ClaimRow)
	}
	return rows
}

// orderClaim gives a node to who asks for one. Who names a claim, or a node that
// is given to him already, keeps it alive.
func (r *remediation) orderClaim(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	if open := r.claims.find(func(c *claim) bool {
		return order.Claim != "" && c.ID == order.Claim ||
			order.Node != "" && c.Node == order.Node && c.By == order.By && c.State == contract.ClaimGiven
	}); open != nil {
		if open.State == contract.ClaimGiven {
			r.handOver(ctx, open, contract.HandOver{Do: contract.HandOverRenew, By: order.By})
		}
		return r.claimAnswer(open, "the claim is "+string(open.State))
	}
	c := &claim{ClaimRow: contract.ClaimRow{
		Claim: contract.Claim{ID: order.Claim, Node: order.Node, Host: order.Host, By: order.By},
		State: contract.ClaimAsked, Since: workflow.Now(ctx),
	}}
	if why := r.attended(c, order.Pool); why != "" {
		return r.declined(c, why)
	}
	if c.ID == "" {
		r.claims.Made++
		c.ID = fmt.Sprintf("claim-%d", r.claims.Made)
	}
	r.claims.add(c)
	r.place(ctx, c)
	r.dirty = true
	return r.claimAnswer(c, "asked for a node")
}

// attended finds the host pool of a claim and says why it cannot have a node now; empty when it may.
func (r *remediation) attended(c *claim, pool string) (why string) {
	if r.front == nil || !r.attendable() {
		return "nothing may start in the run now: see `starter status`"
	}
	var ids []string
	for _, p := range r.pools.pools {
		if p.Provider != contract.ProviderHost || pool != "" && p.ID != pool {
			continue
		}
		ids = append(ids, p.ID)
		c.Pool, c.Quiet = p.ID, int(quietOf(p)/time.Second)
		if taken := r.claims.holding(p.ID); taken >= p.MaxConcurrent {
			why = fmt.Sprintf("pool %s has %d of %d nodes already", p.ID, taken, p.MaxConcurrent)
		}
	}
	switch len(ids) {
	case 0:
		return "the run has no such pool of provider host: give it one with `starter pools set`"
	case 1:
		return why
	}
	return "the run has several pools of provider host: name one of " + strings.Join(ids, ", ")
}

// quietOf is how long claims on a pool may be quiet.
func quietOf(p contract.Pool) time.Duration {
	if d, err := time.ParseDuration(p.Options[contract.OptionQuiet]); err == nil && d >= time.Second {
		return d
	}
	return contract.DefaultQuiet
}

// place looks for a node: with the drives first, where the next ones wait, then
// among those that no drive has.
func (r *remediation) place(ctx workflow.Context, c *claim) {
	for _, d := range r.drives {
		mine := c.Node == "" && len(d.Nodes) > 0 || d.has(c.Node)
		if mine && d.Stop == "" && !d.Ended && !slices.Contains(c.Tried, d.Number) {
			r.askDrive(ctx, d, c)
			return
		}
	}
	a, why, ok := r.front.Pick(c.Node, workflow.Now(ctx))
	if !ok {
		c.close(contract.ClaimDeclined, why)
		return
	}
	c.Node = a.Admission.Node
	d := r.driveFor(a.Depth)
	if d == nil {
		d = r.newDrive(ctx, a.Depth)
		d.Nodes = append(d.Nodes, a.Admission)
		r.startDrive(ctx, d)
	} else {
		d.Nodes = append(d.Nodes, a.Admission)
		r.order(ctx, d, contract.DriveOrder{Nodes: []contract.Admission{a.Admission}})
	}
	r.askDrive(ctx, d, c)
}

func (r *remediation) askDrive(ctx workflow.Context, d *drive, c *claim) {
	c.Drive = d.Number
	c.Tried = append(c.Tried, d.Number)
	r.order(ctx, d, contract.DriveOrder{Claims: []contract.ClaimOrder{{Claim: c.Claim}}})
}

func (d *drive) has(node string) bool {
	return slices.ContainsFunc(d.Nodes, func(a contract.Admission) bool { return a.Node == node })
}

func (c *claim) close(state contract.ClaimState, why string) { c.State, c.Reason = state, why }

// takeClaims follows what a drive says about claims. One that had nothing to
// give is not the end: the next is asked.
func (r *remediation) takeClaims(ctx workflow.Context, d *drive, reports []contract.ClaimReport) {
	for _, report := range reports {
		c := r.claims.find(func(c *claim) bool { return c.ID == report.ID && c.Drive == d.Number && c.State.Open() })
		if c == nil {
			continue
		}
		switch report.State {
		case contract.ClaimGiven:
			c.State, c.Node, c.Attempt = contract.ClaimGiven, report.Node, report.Attempt
			r.event(ctx, "%s is claimed by %s on %s", c.Node, c.By, c.Pool)
			if c.Withdrawn { // too late for the drive
				r.handOver(ctx, c, contract.HandOver{Do: contract.HandOverRelease, Reason: "withdrawn"})
			}
		case contract.ClaimEnded:
			c.close(contract.ClaimEnded, report.Reason)
			c.Outcome, c.Became, c.Commit, c.Salvage = report.Outcome, report.Became, report.Commit, report.Salvage
			r.event(ctx, "%s came back from %s: %s", c.Node, c.By, strings.TrimSuffix(string(c.Outcome)+": "+c.Reason, ": "))
		case contract.ClaimDeclined, contract.ClaimAsked:
			if c.Node == "" && !c.Withdrawn && r.attendable() {
				r.place(ctx, c)
				continue
			}
			c.close(contract.ClaimDeclined, report.Reason)
		}
	}
}

// attendable reports whether a claim may still find a node.
func (r *remediation) attendable() bool {
	return r.stage == stageImplement && !r.held() && !r.cancel
}

// dropClaims follows the loss of a drive: what it had given is over, what it was
// still asked for is asked elsewhere.
func (r *remediation) dropClaims(ctx workflow.Context, d *drive) {
	for _, c := range r.claims.Claims {
		switch {
		case !c.State.Open() || c.Drive != d.Number:
		case c.State == contract.ClaimAsked && !c.Withdrawn && r.attendable():
			r.place(ctx, c)
		default:
			c.close(contract.ClaimEnded, "the drive that had the node is gone")
		}
	}
}

// orderAccept hands what was done for a claimed node over for landing.
func (r *remediation) orderAccept(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	c := r.claims.find(func(c *claim) bool { return c.State == contract.ClaimGiven && c.Node == order.Node })
	if c == nil {
		return r.declined(&claim{}, r.notHeld(order.Node))
	}
	r.handOver(ctx, c, contract.HandOver{Do: contract.HandOverAccept, By: order.By, Result: order.Result})
	return r.claimAnswer(c, "handed over: it is verified and landed now")
}

// orderRelease gives a claimed node back; a claim that waits is withdrawn.
func (r *remediation) orderRelease(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	c := r.claims.find(func(c *claim) bool {
		return c.State.Open() && (c.ID == order.Claim && order.Claim != "" || c.Node == order.Node && order.Node != "")
	})
	switch {
	case c == nil:
		return r.declined(&claim{}, r.notHeld(order.Node))
	case c.State == contract.ClaimGiven:
		r.handOver(ctx, c, contract.HandOver{Do: contract.HandOverRelease, By: order.By, Reason: order.Reason})
		return r.claimAnswer(c, "released: the work is put aside and the node goes back")
	}
	c.Withdrawn = true
	for _, d := range r.drives {
		if d.Number == c.Drive {
			r.order(ctx, d, contract.DriveOrder{Claims: []contract.ClaimOrder{{Claim: c.Claim, Withdraw: true}}})
		}
	}
	return r.claimAnswer(c, "withdrawn")
}

// notHeld says why nobody can hand a node over.
func (r *remediation) notHeld(node string) string {
	last := r.claims.find(func(c *claim) bool { return c.Node == node })
	if node == "" || last == nil {
		return fmt.Sprintf("nobody has claimed node %q", node)
	}
	return fmt.Sprintf("the claim of node %s by %s is %s: %s", node, last.By, last.State, last.Reason)
}

// handOver tells an attempt what its holder decided. Where the attempt is over
// already, its end is on the way.
func (r *remediation) handOver(ctx workflow.Context, c *claim, message contract.HandOver) {
	message.Claim = c.ID
	if c.box == nil {
		c.box = &outbox[contract.HandOver]{
			target: contract.NodeID(r.in.Run, c.Drive, c.Node, c.Attempt), signal: contract.SignalHandOver,
			merge: func(older, newer contract.HandOver) (contract.HandOver, bool) {
				return newer, older.Do == contract.HandOverRenew
			},
			lost: func(ctx workflow.Context, m contract.HandOver, err error) {
				workflow.GetLogger(ctx).Warn("hand over", "node", c.Node, "do", m.Do, "error", err)
			},
		}
	}
	c.box.send(ctx, message)
}

// claimAnswer tells a claim as it stands.
func (r *remediation) claimAnswer(c *claim, done string) contract.OperatorAnswer {
	answer := r.answer(done)
	if c.State == contract.ClaimDeclined {
		answer.Done = []string{"nothing was given: " + c.Reason}
	}
	row := c.ClaimRow
	answer.Claim = &row
	return answer
}

// declined answers a request that changed nothing.
func (r *remediation) declined(c *claim, why string) contract.OperatorAnswer {
	c.close(contract.ClaimDeclined, why)
	return r.claimAnswer(c, "")
}
