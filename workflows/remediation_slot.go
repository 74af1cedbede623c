package workflows

import (
	"bytes"
	"encoding/json"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// scheduling is what ties a run to the scheduler that started it: the slot
// without which nothing of it works, and what the two told each other. It is
// carried as it is; a run that nobody admitted has none.
type scheduling struct {
	Seq    int                  `json:"seq,omitempty"`    // messages to the scheduler so far
	Told   *contract.RunState   `json:"told,omitempty"`   // the last one
	Path   []contract.RunStatus `json:"path,omitempty"`   // statuses since
	Orders int                  `json:"orders,omitempty"` // last order taken
	Grant  int                  `json:"grant,omitempty"`
	Slot   bool                 `json:"slot,omitempty"`
	Lease  *contract.Lease      `json:"lease,omitempty"` // of the deployment's budget
	Own    *plan.Budget         `json:"own,omitempty"`   // the run's own caps, while a lease may be smaller
	Most   dispatch.Spend       `json:"most,omitzero"`   // what the dearest attempt of the run reserves

	box *outbox[contract.RunState]
}

// newScheduling ties a run to its scheduler; nil without one.
func newScheduling(in contract.RemediationInput) *scheduling {
	if in.Scheduler == "" {
		return nil
	}
	return &scheduling{Path: []contract.RunStatus{contract.RunStarting}}
}

// admitted connects the run with its scheduler.
func (r *remediation) admitted(ctx workflow.Context) {
	if r.scheduling == nil {
		return
	}
	r.inbox.on(ctx, contract.SignalSlot, func(p *commonpb.Payload) { r.takeSlotOrder(ctx, p) })
	r.scheduling.box = &outbox[contract.RunState]{
		target: r.in.Scheduler, signal: contract.SignalState, merge: mergeRunStates, lost: r.schedulerLost,
	}
}

// restoreScheduling takes over what the execution before this one carried.
func (r *remediation) restoreScheduling(carried *scheduling) {
	if r.scheduling != nil && carried != nil {
		carried.box = r.scheduling.box
		r.scheduling = carried
	}
}

// mayWork reports whether the run may begin anything: without a scheduler always.
func (r *remediation) mayWork() bool { return r.scheduling == nil || r.scheduling.Slot }

// mergeRunStates joins two states: the newer one tells all but the way there.
func mergeRunStates(older, newer contract.RunState) (contract.RunState, bool) {
	newer.Path = append(slices.Clone(older.Path), newer.Path...)
	return newer, fits(newer)
}

// schedulerLost starts the scheduler anew when it is not there: it learns of the
// run by the next message.
func (r *remediation) schedulerLost(ctx workflow.Context, state contract.RunState, err error) {
	workflow.GetLogger(ctx).Warn("tell scheduler", "error", err)
	if err := workflow.ExecuteActivity(withStartOptions(ctx, "start the scheduler"), service.EnsureScheduler, r.in.Scheduler).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("start scheduler", "error", err)
		return
	}
	state.Plan, state.Repository, state.Base = r.opened.PlanID, r.in.Repository, r.in.Base
	state.Path = state.Path[len(state.Path)-1:]
	r.scheduling.box.queue = slices.Insert(r.scheduling.box.queue, 0, state)
}

// takeSlotOrder obeys the scheduler: holds and commands first, then a slot.
func (r *remediation) takeSlotOrder(ctx workflow.Context, payload *commonpb.Payload) {
	order, err := decode[contract.SlotOrder](payload)
	s := r.scheduling
	if err != nil || order.Seq <= s.Orders {
		workflow.GetLogger(ctx).Info("ignore message", "signal", contract.SignalSlot, "seq", order.Seq, "error", err)
		return
	}
	s.Orders = order.Seq
	switch {
	case order.Hold != nil && !r.holds.Has(contract.HoldScheduler):
		r.hold(ctx, contract.HoldScheduler, order.Hold.Reason, order.Hold.By, nil)
	case order.Hold == nil && r.holds.Lift(run.LiftedByScheduler):
		r.lifted(ctx, contract.HoldScheduler)
	}
	for _, c := range order.Commands {
		if take, ok := r.commands[c.Name]; ok {
			take(c.Order)
		}
	}
	if order.Grant > s.Grant {
		s.Grant, s.Slot = order.Grant, true
	}
	s.Lease = order.Lease
	r.capByLease(ctx)
	r.dirty = true
}

// awaitsSlot reports whether a scheduled run has nothing to do until its
// scheduler says so. A run that is held gives its slot back once nothing of it is
// alive, and asks for one when its last hold was lifted.
func (r *remediation) awaitsSlot(ctx workflow.Context) bool {
	s := r.scheduling
	if s == nil || r.verdict != "" {
		return false
	}
	if r.status == contract.RunPausing { // whatever was lifted meanwhile: it proves first that it stopped
		if !r.quiet() {
			return true
		}
		r.setStatus(contract.RunPaused)
	}
	switch {
	case r.held() && r.quiet():
		r.standStill(ctx)
		s.Slot = s.Slot && r.status == contract.RunPausing // something may be alive
		return true
	case r.held(), s.Slot: // what is not quiet ends as the hold wants it
		return false
	case s.Grant > 0 || r.status != contract.RunStarting:
		r.setStatus(contract.RunQueued)
	}
	return true
}

// stopMode is how what works is to be stopped while the run is held; nil lets it go on.
func (r *remediation) stopMode() *contract.StopMode {
	if r.holds.Has(contract.HoldScheduler) {
		mode := contract.StopInterrupt
		return &mode
	}
	return r.pause
}

// tellScheduler sends what changed since the last message.
func (r *remediation) tellScheduler(ctx workflow.Context) {
	s := r.scheduling
	if s == nil {
		return
	}
	slot := s.Slot && r.verdict == ""
	state := contract.RunState{
		Run: r.in.Run, Execution: workflow.GetInfo(ctx).WorkflowExecution.RunID, Orders: s.Orders, Grant: s.Grant, Slot: slot,
		Want: !slot && !r.held() && r.verdict == "" && !r.ending(), Holds: r.holdRows(),
	}
	if r.verdict != "" {
		state.Reason = clip(r.reason, 300)
	}
	state.Used = r.spent()
	state.Need, state.Least = r.needs()
	if !s.news(state) {
		return
	}
	s.Seq++
	state.Seq, state.Path = s.Seq, s.Path
	if n := len(state.Path); n == 0 || state.Path[n-1] != r.status {
		state.Path = append(slices.Clone(state.Path), r.status)
	}
	s.Told, s.Path = &state, nil
	s.box.send(ctx, state)
}

// news reports whether a state tells the scheduler something that it needs to
// know. What was used is told along, and by itself only when a lease runs out:
// every message is paid for with events in two histories.
func (s *scheduling) news(state contract.RunState) bool {
	if s.Told == nil || len(s.Path) > 0 {
		return true
	}
	told := *s.Told
	told.Seq, told.Path, told.Plan, told.Repository, told.Base = 0, nil, "", "", ""
	if told.Used != state.Used && (s.short(state.Used.Tokens, state.Need.Tokens, leaseTokens(s.Lease)) ||
		s.short(state.Used.USDMicros, state.Need.USDMicros, leaseUSDMicros(s.Lease))) {
		return true
	}
	told.Used, told.Need, state.Used, state.Need = contract.Amount{}, contract.Amount{}, contract.Amount{}, contract.Amount{} // Least tells when leases begin
	return !sameJSON(told, state)
}

// sameJSON reports whether two plain values are told alike.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// short reports whether less than half of what is needed is left of a lease.
func (s *scheduling) short(used, need int64, lease *int64) bool {
	return lease != nil && 2*(*lease-used) < need
}

func leaseTokens(l *contract.Lease) *int64 {
	if l == nil {
		return nil
	}
	return l.Tokens
}

func leaseUSDMicros(l *contract.Lease) *int64 {
	if l == nil {
		return nil
	}
	return l.USDMicros
}

// told reports whether the scheduler has acknowledged everything.
func (r *remediation) toldScheduler() bool { return r.scheduling == nil || r.scheduling.box.idle() }

// spent is what counts against the deployment's budget.
func (r *remediation) spent() contract.Amount {
	sum := r.budget.Unsure()
	return contract.Amount{Tokens: r.budget.Settled.Tokens + sum.Tokens, USDMicros: r.budget.Settled.USDMicros + sum.USDMicros}
}

// needs is what the run would like to have leased, what its slots may reserve
// twice over, and the least that is of use to it: what one attempt reserves.
func (r *remediation) needs() (need, least contract.Amount) {
	s := r.scheduling
	if s.Lease == nil || r.front == nil || r.verdict != "" {
		return need, least
	}
	n := int64(leasedAttempts * max(r.pools.slots(), 1))
	return contract.Amount{Tokens: n * s.Most.Tokens, USDMicros: n * s.Most.USDMicros}, contract.Amount(s.Most)
}

// openedUnderLease keeps what leases are measured by once the plan is known.
func (r *remediation) openedUnderLease(ctx workflow.Context) {
	if r.scheduling == nil {
		return
	}
	most := &r.scheduling.Most
	for _, u := range r.units {
		spend := r.reservation(u.ID, "")
		most.Tokens, most.USDMicros = max(most.Tokens, spend.Tokens), max(most.USDMicros, spend.USDMicros)
	}
	r.capByLease(ctx)
}

// ownCaps are the run's own caps, whatever it is leased.
func (r *remediation) ownCaps() plan.Budget {
	if r.scheduling != nil && r.scheduling.Own != nil {
		return *r.scheduling.Own
	}
	return r.budget.Cap
}

// setOwnCaps changes the run's own caps; a smaller lease goes on to bound it.
func (r *remediation) setOwnCaps(ctx workflow.Context, limit plan.Budget) {
	r.budget.Cap = limit
	if r.scheduling != nil && r.scheduling.Own != nil {
		r.scheduling.Own = &limit
		r.capByLease(ctx)
	}
}

// capByLease keeps the run within the smaller of its own caps and its lease.
func (r *remediation) capByLease(ctx workflow.Context) {
	s := r.scheduling
	if s == nil || r.front == nil || s.Lease == nil && s.Own == nil {
		return
	}
	if s.Own == nil {
		own := r.budget.Cap
		s.Own = &own
	}
	limit := plan.Budget{
		Tokens:    smaller(s.Own.Tokens, leaseTokens(s.Lease)),
		USDMicros: smaller(s.Own.USDMicros, leaseUSDMicros(s.Lease)),
	}
	if s.Lease == nil {
		s.Own = nil
	}
	if limit != r.budget.Cap {
		r.budget.Cap = limit
		r.spendAgain(ctx)
	}
}

// leaseBinds reports whether the deployment's budget leaves the run less than its own caps do.
func (r *remediation) leaseBinds() bool {
	return r.scheduling != nil && r.scheduling.Own != nil && *r.scheduling.Own != r.budget.Cap
}

// smaller is the smaller of a cap, where 0 is none, and a lease, where nil is none.
// A lease of nothing is a cap of one: 0 would be none.
func smaller(limit int64, lease *int64) int64 {
	switch {
	case lease == nil:
		return limit
	case limit == 0:
		return max(*lease, 1)
	}
	return max(min(limit, *lease), 1)
}
