package admission

import (
	"fmt"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// Hold places an operator's hold on a run: in the queue here, else the run is told.
func (m *Scheduler) Hold(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	r, refusal := m.named(order)
	switch {
	case refusal != nil:
		return *refusal
	case r.Begun:
		return m.pass(r, contract.CommandPause, order, "%s is told to pause")
	case r.Held != nil:
		return m.answer(r.Run + " is held already")
	}
	reason := clip(order.Reason)
	if reason == "" {
		reason = "held by an operator"
	}
	r.Held = &contract.Hold{Kind: contract.HoldOperator, Reason: reason, By: clip(order.By), Since: now, Lift: "starter scheduler release " + r.Run}
	r.Status = contract.RunPaused
	m.event(now, "%s is held in the queue: %s", r.Run, reason)
	m.settle(now)
	return m.answer(r.Run + " is held in the queue")
}

// Release lifts an operator's hold. A run that was held in the queue keeps its
// arrival, and goes before those that were never admitted.
func (m *Scheduler) Release(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	r, refusal := m.named(order)
	switch {
	case refusal != nil:
		return *refusal
	case r.Begun:
		return m.pass(r, contract.CommandResume, order, "%s is told to resume")
	case r.Held == nil:
		return m.answer(r.Run + " is not held")
	}
	r.Held, r.Resumption, r.Status = nil, true, contract.RunQueued
	m.event(now, "%s is released", r.Run)
	m.settle(now)
	if r.Begun {
		return m.answer(r.Run + " is released and starts")
	}
	return m.answer(fmt.Sprintf("%s is released: %s", r.Run, r.Reason))
}

// Cancel ends a run: at once in the queue, or when nobody is there to be told.
func (m *Scheduler) Cancel(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	r, refusal := m.named(order)
	switch {
	case refusal != nil:
		return *refusal
	case r.Begun && !r.Gone:
		if !run.CanCancel(r.Status) {
			return m.refuse([]string{r.Run}, "%s is %s: it ends by itself", r.Run, r.Status)
		}
		return m.pass(r, contract.CommandCancel, order, "%s is told to cancel")
	}
	reason := order.Reason
	if reason == "" {
		reason = "cancelled by an operator"
	}
	m.close(r, contract.RunCancelled, reason, now)
	m.settle(now)
	return m.answer(r.Run + " is cancelled")
}

// Prioritize changes a run's place among those that wait; lower goes first.
func (m *Scheduler) Prioritize(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	r, refusal := m.named(order)
	switch {
	case refusal != nil:
		return *refusal
	case order.Priority == nil:
		return m.refuse(nil, "name the priority: a number, lower goes first")
	}
	r.Priority = *order.Priority
	m.settle(now)
	return m.answer(fmt.Sprintf("%s has priority %d", r.Run, r.Priority))
}

// named finds the run that an order is about.
func (m *Scheduler) named(order contract.SchedulerOrder) (*record, *contract.SchedulerAnswer) {
	if order.Run == "" {
		refusal := m.refuse(nil, "name the run: {\"run\": \"…\"}")
		return nil, &refusal
	}
	r := m.find(order.Run)
	if r == nil {
		refusal := m.refuse(nil, "%s: %v", clip(order.Run), ErrUnknownRun)
		return nil, &refusal
	}
	return r, nil
}

// pass hands an operator's command on to a run that has begun.
func (m *Scheduler) pass(r *record, command string, order contract.SchedulerOrder, done string) contract.SchedulerAnswer {
	if r.Gone {
		return m.refuse([]string{r.Run}, "%s cannot be told: its workflow was terminated or lost; `starter cancel %s` gives it up", r.Run, r.Run)
	}
	m.tell(r, contract.RunCommand{Name: command, Order: contract.Operator{
		RequestID: order.RequestID, By: order.By, Reason: order.Reason, Finish: order.Finish, Now: order.Now,
	}})
	return m.answer(fmt.Sprintf(done, r.Run))
}
