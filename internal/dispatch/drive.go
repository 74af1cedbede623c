package dispatch

import (
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// MaxAttempts is how many attempts a drive takes; then it seals itself and the
// nodes that are left go to a new drive (dispatch.md, Levels and eligibility).
const MaxAttempts = 200

// Patience of a drive.
const (
	// hedgeAfter is how long a node waits for a slot before it also asks the
	// next pool that seems idle: then other runs hold the first one's slots.
	hedgeAfter = 5 * time.Second
	// confirmWithin is how long the drive waits for the broker's word on a limit
	// that it saw itself before it strands nodes on its own guess.
	confirmWithin = 3 * time.Second
	// escalateAt is the limit in a row of one node on one pool that escalates,
	// if others succeeded there in between.
	escalateAt = 4
	// restAfter is the number of interruptions in a row that a node may have
	// without a rest.
	restAfter = 3
)

// Drive is the state machine of one drive of a level: it decides where the nodes
// that it was handed run, and what becomes of them when an attempt ends. The
// Level workflow hosts it: it feeds in what happens, calls Decide after every
// batch of events and at Wake, and carries the decisions out.
//
// Slots belong to the brokers. A drive asks for as many as its pools have (its
// own cap and ramp), never more, so that a node is bound to a pool only when a
// slot there is likely; what has no ticket is decided anew at every call. A
// ticket that stays unanswered is no promise: a better pool replaces it, and
// after some seconds an equally allowed idle one is asked as well; the first
// grant wins and the other is withdrawn.
//
// A kept tree ties its node to the pool that keeps it while that pool is open,
// busy or not. When the pool is closed (paused, exhausted, excluded, too small)
// and another may take the node, the node starts fresh there at once, however
// short the pause, and Launch.Leaves names the tree to salvage. Otherwise the
// node is stranded with its tree.
//
// Instants are arguments and must not go back. It is not safe for concurrent use.
type Drive struct {
	in       contract.LevelInput
	pools    []*drivePool // in the order of the composition; those removed last
	walls    []driveWall  // by account and model
	queue    []*driveNode // nodes neither settled nor stranded, in the order of their turns
	clock    time.Time    // the last instant that the drive was told
	sealed   bool
	stop     contract.StopMode
	launches int
	returned bool // nodes were stranded since the last admission
	drained  bool
	lease    Lease
	spent    Spend
	accounts []*driveAccount // by account: messages to and from brokers
	report   contract.DriveReport
	reports  int
	known    map[string]bool // friction told, by type and discriminator
}

// driveNode is a node that the drive was handed.
type driveNode struct {
	contract.Admission
	tickets   []driveTicket // reservations that wait
	run       *driveRun     // the attempt under way
	asked     int           // reservations of the next attempt so far
	notBefore time.Time     // a charged retry backs off
	attempts  []contract.AttemptResult
	rests     int  // interruptions in a row
	late      bool // admitted after the drive sealed itself
	over      bool // ended at our own cap before
	broke     bool // a broker refused it for want of budget
	streaks   []driveStreak
	claim     *contract.Claim // somebody works on it, or waits for its slot
}

// driveTicket is a reservation that waits for its grant.
type driveTicket struct {
	id    string
	pool  *drivePool
	first string // the pool that was first in order
	at    time.Time
	spend Spend
}

// driveRun is an attempt under way.
type driveRun struct {
	ticket  string
	pool    *drivePool
	attempt int
	at      time.Time
	spend   Spend
}

// driveStreak counts the limits in a row of a node on a pool, and the attempts
// of others that were launched after it began and succeeded there: what ran
// before a wall came up and ended well says nothing about the node.
type driveStreak struct {
	contract.Streak
	since time.Time
}

// NewDrive starts a drive. Pools that had no success in this run yet are ramped.
func NewDrive(in contract.LevelInput) *Drive {
	d := &Drive{in: in, known: map[string]bool{}}
	for _, def := range in.Pools {
		p := d.newPool(def)
		if slices.Contains(in.Settled, def.ID) {
			p.settled = "settled for this run"
		}
		d.pools = append(d.pools, p)
	}
	for _, p := range d.pools {
		p.told = d.poolState(p)
	}
	d.Admit(in.Nodes)
	d.in.Nodes = nil
	return d
}

// Admit hands further nodes to the drive, in the order of their turns. A node
// that it has already is left alone. A drive that is stopped or drained returns
// them as held at the next Decide; one that has had its last attempt does so when
// nothing runs any more, so that a run which has not noticed does not hand the
// same nodes back and forth.
func (d *Drive) Admit(nodes []contract.Admission) {
	for _, a := range nodes {
		if d.node(a.Node) != nil {
			continue
		}
		a.NextAttempt = max(a.NextAttempt, 1)
		n := &driveNode{Admission: a, late: d.launches >= MaxAttempts}
		for _, s := range a.Limited {
			n.streaks = append(n.streaks, driveStreak{Streak: s, since: d.clock})
		}
		d.queue = append(d.queue, n)
		d.returned = false
	}
}

// Seal says that no node follows: the drive ends when it is idle.
func (d *Drive) Seal() { d.sealed = true }

// Stop ends the drive early: what does not run comes back as held. The host
// stops the running attempts as the mode says and reports their ends. A later
// stop replaces an earlier one.
func (d *Drive) Stop(mode contract.StopMode) { d.stop = mode }

// Drained reports whether the drive is over: its last report was given out.
func (d *Drive) Drained() bool { return d.drained }

// SetPools changes the composition while the drive runs. Pools that are left
// out are excluded; their attempts go on. A pool whose definition changed
// continues no tree that was made under the old one.
func (d *Drive) SetPools(pools []contract.Pool) {
	old := d.pools
	d.pools = nil
	for _, def := range pools {
		at := slices.IndexFunc(old, func(p *drivePool) bool { return p.def.ID == def.ID })
		if at < 0 {
			d.pools = append(d.pools, d.newPool(def))
			continue
		}
		p := old[at]
		old = slices.Delete(old, at, at+1)
		d.pools = append(d.pools, d.redefine(p, def))
	}
	for _, p := range old {
		p.excluded = true
		d.pools = append(d.pools, p)
	}
}

// SetLease says how much the drive may spend in all since its start: what its
// ended attempts used, what its running ones have reserved, and what it still
// may reserve. The zero value caps nothing.
func (d *Drive) SetLease(l Lease) { d.lease = l }

// node finds a node of the drive.
func (d *Drive) node(id string) *driveNode {
	at := slices.IndexFunc(d.queue, func(n *driveNode) bool { return n.Node == id })
	if at < 0 {
		return nil
	}
	return d.queue[at]
}

// leave takes a node out of the drive.
func (d *Drive) leave(n *driveNode) {
	d.withdraw(n)
	d.queue = slices.DeleteFunc(d.queue, func(m *driveNode) bool { return m == n })
}

// first puts a node at the front of the queue.
func (d *Drive) first(n *driveNode) {
	d.queue = slices.DeleteFunc(d.queue, func(m *driveNode) bool { return m == n })
	d.queue = slices.Insert(d.queue, 0, n)
}

// closing reports whether nothing may start any more.
func (d *Drive) closing() bool { return d.stop != "" || d.launches >= MaxAttempts || d.drained }

// spill is the policy's, with its default.
func (d *Drive) spill() plan.Spill {
	if d.in.Policy.Spill == "" {
		return plan.SpillSameTier
	}
	return plan.Spill(d.in.Policy.Spill)
}

// view is the node as selection sees it.
func (n *driveNode) view() NodeView {
	v := NodeView{Tier: plan.Tier(n.Tier), Tokens: n.Tokens, Refused: n.Refused, FirstPool: n.FirstPool}
	if v.Tier == "" {
		v.Tier = plan.TierStandard
	}
	if n.Kept != nil {
		v.Kept = n.Kept.Pool
	}
	for _, t := range n.tickets {
		v.Tickets = append(v.Tickets, t.pool.def.ID)
	}
	return v
}

// friction records a surprise once per type and discriminator.
func (d *Drive) friction(kind contract.FrictionType, discriminator, severity, note string) {
	key := string(kind) + "\x00" + discriminator
	if d.known[key] {
		return
	}
	d.known[key] = true
	d.report.Friction = append(d.report.Friction, contract.Friction{
		Type: kind, Discriminator: discriminator, Severity: severity, Note: clip(note, noteBytes),
	})
}

// Severities of friction.
const (
	severityInfo    = "info"
	severityWarning = "warning"
)
