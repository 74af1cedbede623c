package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// bound is how many charged attempts a node may have per cause and opening (landing.md, LandWork).
func bound(cause contract.Cause) int {
	switch cause {
	case contract.CauseWork:
		return 2
	case contract.CauseConflict:
		return 3
	case contract.CauseProvider, contract.CauseHost:
	}
	return 5
}

// ending is the end of one attempt under way through the table of dispatch.md.
type ending struct {
	d       *Drive
	n       *driveNode
	p       *drivePool
	res     *contract.AttemptResult
	started time.Time
	now     time.Time
}

// Ended takes the end of an attempt. It reports whether the attempt was under
// way: an end that was told before, or of an attempt that this drive did not
// launch, changes nothing.
func (d *Drive) Ended(res contract.AttemptResult, now time.Time) bool {
	n := d.node(res.Node)
	if n == nil || n.run == nil || n.run.attempt != res.Attempt {
		return false
	}
	d.tell(now)
	run := n.run
	n.run = nil
	run.pool.took(run.spend, 0, -1)
	if res.Pool == "" {
		res.Pool = run.pool.def.ID
	}
	n.attempts = append(n.attempts, res)
	d.endClaim(n, &res)
	d.charge(run, &res)
	m := d.to(run.pool.def.Account)
	m.next.Settle = append(m.next.Settle, contract.TicketEnd{
		Ticket: run.ticket, Outcome: res.Outcome, StartedAt: res.StartedAt, Limit: res.Limit, Windows: res.Windows, Usage: res.Usage,
	})
	e := &ending{d: d, n: n, p: run.pool, res: &res, started: later(res.StartedAt, run.at), now: now}
	e.apply()
	return true
}

// charge counts what the attempt spent and learns what attempts on the pool use.
func (d *Drive) charge(run *driveRun, res *contract.AttemptResult) {
	if res.StartedAt.IsZero() && !res.Usage.Known {
		return // never started
	}
	spend, uncertain := Charge(run.spend, res.Usage)
	d.spent = d.spent.plus(spend)
	if uncertain && d.lease.capped() && !run.pool.attended {
		d.friction(contract.FrictionUsageUncertain, run.pool.def.ID, severityInfo,
			"attempts on pool "+run.pool.def.ID+" tell no usable usage and are charged at their reservation")
	}
	if !uncertain && res.Outcome == contract.OutcomeSuccess {
		p := run.pool
		p.seen = append(p.seen, spend.Tokens)
		p.seen = p.seen[max(0, len(p.seen)-allowanceSeen):]
	}
}

func (e *ending) apply() {
	if !e.res.Outcome.Limit() && e.res.Outcome != contract.OutcomeInterrupted {
		*e.streak() = driveStreak{Streak: contract.Streak{Pool: e.p.def.ID}}
	}
	if e.res.Outcome != contract.OutcomeInterrupted {
		e.n.rests = 0
	}
	switch e.res.Outcome {
	case contract.OutcomeSuccess:
		e.success()
	case contract.OutcomeTimeout:
		e.timeout()
	case contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeQuotaUnclassified:
		e.limited()
	case contract.OutcomeCreditExhausted, contract.OutcomeAuthFailed:
		e.exhausted()
	case contract.OutcomeModelUnavailable:
		e.unavailable()
	case contract.OutcomePacketTooLarge:
		e.tooLarge()
	case contract.OutcomeInterrupted:
		e.interrupted()
	default:
		e.failed(e.res.Cause)
	}
}

// success settles the node by its items, and lets the pool do more.
func (e *ending) success() {
	p := e.p
	p.used = true
	p.timeouts = 0
	e.d.succeeded(p, e.started)
	p.ramp.success(e.started, p.slots())
	if p.def.Cost.Free() && e.res.Usage.USDMicros > 0 && !p.demoted {
		p.demoted = true
		e.d.friction(contract.FrictionDeclaredCostDrift, p.def.ID, severityWarning,
			fmt.Sprintf("pool %s is declared free, but an attempt cost %d millionths of a dollar", p.def.ID, e.res.Usage.USDMicros))
	}
	state := e.res.State
	if state == "" {
		state = contract.NodeNoChange
		if e.res.Commit != "" {
			state = contract.NodeLanded
		}
	}
	e.d.settle(e.n, state, e.res.Reason)
}

// timeout is charged as a fault of the host; two in a row slow the pool down.
func (e *ending) timeout() {
	if e.p.timeouts++; e.p.timeouts >= 2 {
		e.p.timeouts = 0
		e.p.ramp.down(e.p.slots(), e.now)
	}
	e.failed(contract.CauseHost)
}

// failed charges the node and retries it within the bound of the cause.
func (e *ending) failed(cause contract.Cause) {
	n := e.n
	n.Kept, n.Tail, n.Salvage = nil, e.res.Tail, e.res.Salvage
	count := e.chargeNode(&cause)
	transient := cause == contract.CauseProvider || cause == contract.CauseHost
	if transient && e.res.Outcome != contract.OutcomeTimeout {
		e.p.ramp.down(e.p.slots(), e.now)
	}
	if count >= bound(cause) {
		e.d.settle(n, contract.NodeBlocked, fmt.Sprintf("%d failed attempts (%s): %s", count, cause, e.res.Reason))
		return
	}
	if transient {
		n.notBefore = e.now.Add(doubled(retryBase, count, retryLimit))
	}
}

// chargeNode counts a failure; one without a known cause is the work's.
func (e *ending) chargeNode(cause *contract.Cause) int {
	c := &e.n.Charged
	switch *cause {
	case contract.CauseConflict:
		c.Conflict++
		return c.Conflict
	case contract.CauseProvider:
		c.Provider++
		return c.Provider
	case contract.CauseHost:
		c.Host++
		return c.Host
	case contract.CauseWork:
	}
	*cause = contract.CauseWork
	c.Work++
	return c.Work
}

// back returns the node to the front of the queue, not charged, with its tree.
func (e *ending) back(kept *contract.Kept) {
	e.n.Kept = kept
	if kept != nil && kept.Pool == e.p.def.ID && e.d.pool(kept.Pool) != e.p {
		e.d.disown(e.n)
	}
	if e.res.Salvage != "" {
		e.n.Salvage = e.res.Salvage
	}
	e.d.first(e.n)
}

// limited pauses the pool, if the launch is evidence, and returns the node; a
// node that alone is limited again and again escalates.
func (e *ending) limited() {
	e.back(e.res.Kept)
	if e.res.Outcome == contract.OutcomeQuotaUnclassified {
		e.d.friction(contract.FrictionQuotaUnclassified, e.p.def.ID, severityWarning, e.text())
	}
	if e.fresh() {
		until, _ := reopening(e.res.Outcome, e.res.Limit, 1, e.now)
		if until.After(e.now) {
			e.wall(driveWall{model: limitModel(e.res.Outcome, e.res.Limit, e.p.def.Model), until: until})
		} else {
			e.p.ramp.start(e.now)
		}
	}
	s := e.streak()
	if s.Count == 0 {
		s.since = e.now
	}
	if s.Count++; s.Count < escalateAt || s.Successes == 0 {
		return
	}
	note := fmt.Sprintf("node %s was limited on pool %s %d times in a row while others succeeded there", e.n.Node, e.p.def.ID, s.Count)
	e.d.friction(contract.FrictionQuotaEscalation, e.n.Node+"/"+e.p.def.ID, severityWarning, note)
	e.d.strand(e.n, contract.Stranding{Cause: contract.StrandEscalated, Reason: note})
}

// fresh reports whether the launch says anything about limits: it began after
// the last pause of the pool did.
func (e *ending) fresh() bool { return e.p.proven.IsZero() || e.started.After(e.p.proven) }

// wall closes what the limit concerns until the broker says more.
func (e *ending) wall(w driveWall) {
	w.account, w.reason, w.guess = e.p.def.Account, wallReason(e.res.Outcome, evidence(e.res.Limit)), e.now.Add(confirmWithin)
	if over := e.d.wallOver(e.p); over != nil && (over.exhausted || !w.exhausted && !over.until.Before(w.until)) {
		return
	}
	e.d.raise(w, e.now)
}

// wallReason is what operators read about a closed pool.
func wallReason(outcome contract.Outcome, text string) string {
	return strings.TrimSuffix(string(outcome)+": "+text, ": ")
}

// exhausted closes the pool until an operator reopens it.
func (e *ending) exhausted() {
	e.back(e.res.Kept)
	kind := contract.FrictionCreditExhausted
	if e.res.Outcome == contract.OutcomeAuthFailed {
		kind = contract.FrictionAuthFailed
	}
	model, key := "", e.p.def.Account
	if e.res.Limit != nil && e.res.Limit.Scope == scopeModel {
		model = e.p.def.Model
		key += "/" + model
	}
	e.d.friction(kind, key, severityWarning, e.text())
	if !e.fresh() && e.d.wallOver(e.p) == nil {
		return
	}
	e.wall(driveWall{model: model, exhausted: true})
}

// unavailable settles the pool for this run: its model is not there.
func (e *ending) unavailable() {
	e.back(nil)
	e.p.settled = wallReason(e.res.Outcome, e.text())
	e.d.friction(contract.FrictionModelUnavailable, e.p.def.ID, severityWarning, e.text())
	e.d.frictionSettled(e.p, e.p.settled)
}

// tooLarge keeps this node away from the pool, and larger ones too when the
// pool's context is not declared. The pool itself goes on.
func (e *ending) tooLarge() {
	e.back(nil)
	if !slices.Contains(e.n.Refused, e.p.def.ID) {
		e.n.Refused = append(slices.Clip(e.n.Refused), e.p.def.ID)
	}
	if e.n.Tokens > 0 && (e.p.tooLarge == 0 || e.n.Tokens < e.p.tooLarge) {
		e.p.tooLarge = e.n.Tokens
	}
	e.d.friction(contract.FrictionPacketTooLarge, e.n.Node+"/"+e.p.def.ID, severityInfo, e.text())
}

// awayFor is how long a pool from whose queue nobody took an attempt is passed
// over: the run notices hosts that come back, and this is for pools beside others.
const awayFor = 10 * time.Minute

// stopRest is what a restart of a host's worker takes.
const stopRest = 15 * time.Second

// interrupted returns the node, not charged. Ending at our own cap a second
// time is a failure; many interruptions in a row are given a rest.
func (e *ending) interrupted() {
	capped := slices.ContainsFunc(e.res.Friction, func(f contract.Friction) bool { return f.Type == contract.FrictionOverAllowance })
	if capped && e.n.over {
		e.failed(contract.CauseWork)
		return
	}
	e.n.over = e.n.over || capped
	e.back(e.res.Kept)
	if e.res.Unserved { // other pools may have hosts; without any the node goes back to the run
		e.p.away = e.now.Add(awayFor)
		return
	}
	if e.p.attended { // people come and go
		return
	}
	if e.res.Stopping && e.n.Kept != nil { // its host is best for it, if it comes back soon
		e.n.rests++
		e.n.notBefore = e.now.Add(doubled(stopRest, e.n.rests, retryLimit))
		return
	}
	if e.n.rests++; e.n.rests > restAfter {
		e.n.notBefore = e.now.Add(doubled(retryBase, e.n.rests-restAfter, retryLimit))
	}
}

// text is the scrubbed text of the end.
func (e *ending) text() string {
	if e.res.Limit != nil && e.res.Limit.Evidence != "" {
		return e.res.Limit.Evidence
	}
	return e.res.Reason
}

// streak is the node's limits in a row on the pool.
func (e *ending) streak() *driveStreak {
	id := e.p.def.ID
	at := slices.IndexFunc(e.n.streaks, func(s driveStreak) bool { return s.Pool == id })
	if at < 0 {
		at = len(e.n.streaks)
		e.n.streaks = append(e.n.streaks, driveStreak{Streak: contract.Streak{Pool: id}})
	}
	return &e.n.streaks[at]
}

// succeeded counts a success on a pool for the nodes that are limited there.
func (d *Drive) succeeded(p *drivePool, started time.Time) {
	for _, n := range d.queue {
		for i := range n.streaks {
			if s := &n.streaks[i]; s.Pool == p.def.ID && s.Count > 0 && started.After(s.since) {
				s.Successes++
			}
		}
	}
}
