package dispatch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// drivePool is a pool as the drive knows it.
type drivePool struct {
	def      contract.Pool
	used     bool   // had a success in this run
	excluded bool   // left out of the composition
	settled  string // not offered again in this run, and why
	demoted  bool   // declared free, but charged
	attended bool   // nodes go there by claims only
	ramp     ramp
	proven   time.Time // only launches after it say anything about limits
	away     time.Time // nobody took an attempt from its queue: not tried again before
	timeouts int       // in a row
	waiting  int       // tickets
	running  int       // attempts
	inFlight int64     // tokens of those
	tooLarge int       // a node of this estimate was refused; 0: none
	seen     []int64   // tokens of the last attempts, oldest first
	told     contract.PoolState
}

// newPool returns a pool as a drive begins with it: one attempt at once when the
// run has not had a success there yet. A command has no one to hammer.
func (d *Drive) newPool(def contract.Pool) *drivePool {
	p := &drivePool{def: def, used: slices.Contains(d.in.Used, def.ID)}
	p.attended = d.in.Attended && def.Provider == contract.ProviderHost
	if !p.used && !p.attended && def.Provider != contract.ProviderCommand {
		p.ramp.Allowed = 1
	}
	return p
}

// slots is how many attempts the account's broker may give the pool at once, to all drives.
func (p *drivePool) slots() int { return max(p.def.MaxConcurrent, 1) }

// most is how many attempts the pool may be given at once, as far as it has proven itself.
func (p *drivePool) most() int { return p.ramp.limit(p.slots()) }

// room is how many slots the drive may still ask for; negative when it asked for too many.
func (d *Drive) room(p *drivePool) int {
	room := p.slots() - p.waiting - p.running
	if !p.ramp.ramping() || p.attended {
		return room
	}
	counted := p.waiting
	for _, n := range d.queue {
		if n.run != nil && n.run.pool == p && p.ramp.counts(n.run.at) {
			counted++
		}
	}
	return min(room, p.most()-counted)
}

// took counts what a reservation or an attempt occupies.
func (p *drivePool) took(s Spend, waiting, running int) {
	p.waiting += waiting
	p.running += running
	p.inFlight += int64(waiting+running) * s.Tokens
}

// driveWall is a pause or an exhaustion as the drive knows it: told by the
// broker, or seen by itself and not yet confirmed.
type driveWall struct {
	account, model string
	exhausted      bool
	until          time.Time // of a pause
	reason         string
	guess          time.Time // set: not confirmed; strand nobody on it before
}

func (w *driveWall) over(p *drivePool) bool {
	return w.account == p.def.Account && (w.model == "" || w.model == p.def.Model)
}

func compareWalls(a, b driveWall) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.model, b.model))
}

// pool finds a pool by id.
func (d *Drive) pool(id string) *drivePool {
	at := slices.IndexFunc(d.pools, func(p *drivePool) bool { return p.def.ID == id })
	if at < 0 {
		return nil
	}
	return d.pools[at]
}

// wallOver is the wall that closes the pool; of several the one that lasts longest.
func (d *Drive) wallOver(p *drivePool) *driveWall {
	var worst *driveWall
	for i := range d.walls {
		w := &d.walls[i]
		if !w.over(p) {
			continue
		}
		if worst == nil || !worst.exhausted && (w.exhausted || w.until.After(worst.until)) {
			worst = w
		}
	}
	return worst
}

// raise puts a wall up, or replaces the one of the same key.
func (d *Drive) raise(w driveWall, now time.Time) {
	at, found := slices.BinarySearchFunc(d.walls, w, compareWalls)
	if !found {
		d.walls = slices.Insert(d.walls, at, w)
	}
	fresh := !found || d.walls[at].exhausted != w.exhausted || !d.walls[at].until.Equal(w.until)
	d.walls[at] = w
	for _, p := range d.pools {
		if !w.over(p) {
			continue
		}
		if fresh {
			p.proven = now
		}
		if w.exhausted {
			d.frictionSettled(p, w.reason)
		}
	}
}

// frictionSettled tells once that a pool is not offered again in this run.
func (d *Drive) frictionSettled(p *drivePool, reason string) {
	d.friction(contract.FrictionPoolSettled, p.def.ID, severityWarning, "not offered again in this run: "+reason)
}

// tell moves the drive's clock: pauses whose time has come are over.
func (d *Drive) tell(now time.Time) {
	d.clock = now
	d.takeDown(now, func(w *driveWall) bool { return !w.exhausted && !w.until.After(now) })
}

// takeDown removes walls; a pool that is open again begins with one attempt.
func (d *Drive) takeDown(now time.Time, gone func(*driveWall) bool) {
	var down []driveWall
	d.walls = slices.DeleteFunc(d.walls, func(w driveWall) bool {
		if !gone(&w) {
			return false
		}
		down = append(down, w)
		return true
	})
	for _, p := range d.pools {
		if slices.ContainsFunc(down, func(w driveWall) bool { return w.over(p) }) && d.wallOver(p) == nil {
			p.ramp.start(now)
			p.timeouts = 0
		}
	}
}

// phase says what the pool can do now.
func (d *Drive) phase(p *drivePool) (phase Phase, until time.Time, reason string) {
	if p.excluded {
		return PhaseExcluded, time.Time{}, "not in the run's composition"
	}
	if p.settled != "" {
		return PhaseSettled, time.Time{}, p.settled
	}
	if w := d.wallOver(p); w != nil {
		if w.exhausted {
			return PhaseSettled, time.Time{}, w.reason
		}
		return PhasePaused, w.until, w.reason
	}
	if p.away.After(d.clock) {
		return PhaseAway, p.away, "no host takes attempts from its queue"
	}
	if p.ramp.ramping() {
		return PhaseRamping, time.Time{}, ""
	}
	return PhaseLive, time.Time{}, ""
}

// views is the composition as selection sees it.
func (d *Drive) views() []PoolView {
	views := make([]PoolView, len(d.pools))
	for i, p := range d.pools {
		v := PoolView{Pool: p.def, Attended: p.attended, Demoted: p.demoted, InFlight: p.inFlight, TooLarge: p.tooLarge}
		v.Phase, v.Until, v.Reason = d.phase(p)
		v.Free = d.room(p)
		views[i] = v
	}
	return views
}

// redefine takes a pool's new definition and returns the pool as it is from now
// on. One that runs something else begins anew: what waits there is asked for
// again, what runs there ends under the old definition (and with its account's
// broker), and trees made there are not continued.
func (d *Drive) redefine(p *drivePool, def contract.Pool) *drivePool {
	if sameWorker(p.def, def) {
		p.excluded, p.def = false, def
		return p
	}
	for _, n := range d.queue {
		d.withdrawWhere(n, func(t *driveTicket) bool { return t.pool == p })
		if n.Kept != nil && n.Kept.Pool == def.ID {
			d.disown(n)
		}
	}
	next := d.newPool(def)
	next.told = p.told
	return next
}

// disown takes a node's kept tree from its pool, whose definition changed.
func (d *Drive) disown(n *driveNode) {
	d.friction(contract.FrictionCompositionChanged, n.Node+"/"+n.Kept.Pool, severityInfo,
		"the definition of pool "+n.Kept.Pool+" changed: node "+n.Node+" starts fresh")
	kept := *n.Kept
	kept.Pool = ""
	n.Kept = &kept
}

// sameWorker reports whether two definitions run the same thing: order, caps and prices do not matter.
func sameWorker(a, b contract.Pool) bool {
	a.Rank, a.MaxConcurrent, a.Cost, a.Tier = b.Rank, b.MaxConcurrent, b.Cost, b.Tier
	before, err := json.Marshal(a)
	after, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(before, after)
}
