package admission

import (
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// A slab is what a run is leased before it has told what it needs: enough for a
// dear attempt.
const (
	slabTokens    = 1_500_000
	slabUSDMicros = 10_000_000
)

// dimension is one of the two things that a budget caps.
type dimension struct {
	of   func(*contract.Amount) *int64
	slab int64
}

var dimensions = []dimension{
	{func(a *contract.Amount) *int64 { return &a.Tokens }, slabTokens},
	{func(a *contract.Amount) *int64 { return &a.USDMicros }, slabUSDMicros},
}

// SetBudget changes the deployment's caps; what is not given stays. 0 removes a cap.
func (m *Scheduler) SetBudget(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	next := m.state.Cap
	if order.Tokens != nil {
		next.Tokens = *order.Tokens
	}
	if order.USDMicros != nil {
		next.USDMicros = *order.USDMicros
	}
	if next.Tokens < 0 || next.USDMicros < 0 {
		return m.refuse(nil, "a cap must not be negative; 0 removes it")
	}
	if next != m.state.Cap {
		m.state.Cap = next
		m.event(now, "budget: %d tokens, %d millionths of a dollar", next.Tokens, next.USDMicros)
		for _, r := range m.state.Records {
			m.tell(r)
		}
		m.settle(now)
	}
	return m.answer(fmt.Sprintf("the deployment may use %s tokens and %s millionths of a dollar in all", capText(next.Tokens), capText(next.USDMicros)))
}

func capText(n int64) string {
	if n == 0 {
		return "any number of"
	}
	return fmt.Sprint(n)
}

// settled is what all runs ever used.
func (m *Scheduler) settled(d dimension) int64 {
	sum := *d.of(&m.state.Spent)
	for _, r := range m.state.Records {
		sum += *d.of(&r.Used)
	}
	return sum
}

// reserved is what runs may still use of what they were leased.
func (m *Scheduler) reserved(d dimension) int64 {
	var sum int64
	for _, r := range m.state.Records {
		sum += r.open(d)
	}
	return sum
}

// open is what the run may still use of its lease; never negative.
func (r *record) open(d dimension) int64 { return max(*d.of(&r.Lease)-*d.of(&r.Used), 0) }

// left is what nobody has been promised; not positive when all of it is.
func (m *Scheduler) left(d dimension) int64 {
	return *d.of(&m.state.Cap) - m.settled(d) - m.reserved(d)
}

// lease gives runs with a slot the slabs that they need, takes back what runs
// without one do not use, and cuts leases that the caps do not cover any more.
func (m *Scheduler) lease() {
	for _, d := range dimensions {
		if *d.of(&m.state.Cap) == 0 {
			for _, r := range m.state.Records {
				*d.of(&r.Lease) = 0
			}
			continue
		}
		for _, r := range m.state.Records {
			if !r.Slot && r.open(d) > 0 && (!r.outOfBudget() || !m.affords(r)) {
				*d.of(&r.Lease) = *d.of(&r.Used)
			}
		}
		m.cut(d)
	}
	for _, r := range m.state.Records {
		if r.Slot || r.outOfBudget() && m.affords(r) {
			if m.leaseTo(r) {
				m.tell(r)
			}
		}
	}
}

// outOfBudget reports whether a run waits because its lease is too small.
func (r *record) outOfBudget() bool {
	return r.Begun && r.Least != (contract.Amount{}) &&
		slices.ContainsFunc(r.Holds, func(h contract.Hold) bool { return h.Kind == contract.HoldBudget })
}

// cut takes back what is leased beyond the cap, from the runs that came last.
func (m *Scheduler) cut(d dimension) {
	excess := m.settled(d) + m.reserved(d) - *d.of(&m.state.Cap)
	for _, r := range slices.Backward(m.state.Records) {
		open := r.open(d)
		if excess <= 0 {
			return
		}
		if open > 0 {
			*d.of(&r.Lease) -= min(open, excess)
			excess -= min(open, excess)
			m.tell(r)
		}
	}
}

// affords reports whether the caps leave something for a run to go on with.
func (m *Scheduler) affords(r *record) bool {
	for _, d := range dimensions {
		if *d.of(&m.state.Cap) > 0 && r.open(d)+m.left(d) < max(*d.of(&r.Least), 1) {
			return false
		}
	}
	return true
}

// leaseTo tops a run's lease up when half of a slab is used, as far as something
// is left, and reports whether it changed.
func (m *Scheduler) leaseTo(r *record) bool {
	changed := false
	for _, d := range dimensions {
		if *d.of(&m.state.Cap) == 0 {
			continue
		}
		want, open := m.slab(r, d), r.open(d)
		more := min(want-open, m.left(d))
		if 2*open < want && more > 0 {
			*d.of(&r.Lease) = *d.of(&r.Used) + open + more
			changed = true
		}
	}
	return changed
}

// slab is how much a run should have open: what it needs, but no more than its
// share beside the others, and at least what one attempt of it reserves.
func (m *Scheduler) slab(r *record, d dimension) int64 {
	sharers := min(len(m.state.Records), m.state.Limits.MaxRunning)
	share := (*d.of(&m.state.Cap) - m.settled(d)) / int64(max(sharers, 1))
	if r.Least == (contract.Amount{}) {
		return max(min(d.slab, share), 1)
	}
	return max(*d.of(&r.Least), min(*d.of(&r.Need), share))
}

// leaseOf is a run's lease as it is told; nil when nothing is capped.
func (m *Scheduler) leaseOf(r *record) *contract.Lease {
	if m.state.Cap == (contract.Amount{}) {
		return nil
	}
	told := &contract.Lease{}
	if m.state.Cap.Tokens > 0 {
		n := max(r.Lease.Tokens, r.Used.Tokens)
		told.Tokens = &n
	}
	if m.state.Cap.USDMicros > 0 {
		n := max(r.Lease.USDMicros, r.Used.USDMicros)
		told.USDMicros = &n
	}
	return told
}
