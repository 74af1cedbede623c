package admission

import (
	"fmt"
	"time"

	"mendflow/internal/contract"
)

// settle brings everything up to date after a command: what may work starts at
// once, what waits says why.
func (m *Scheduler) settle(now time.Time) {
	m.state.Over = min(m.state.Over, max(m.slots()-m.state.Limits.MaxRunning, 0))
	m.lease()
	for _, r := range m.queue() {
		r.Behind, r.Reason = m.inTheWay(r)
		if r.Reason == "" {
			m.grant(r, now)
		}
	}
	for _, r := range m.state.Records {
		if r.Held != nil {
			r.Behind, r.Reason = "", "held in the queue: "+r.Held.Reason
		}
	}
}

// inTheWay says why a run that wants a slot cannot have one; empty when it can.
func (m *Scheduler) inTheWay(r *record) (behind, reason string) {
	switch {
	case m.state.Mode == contract.ModeDisabled:
		return "", "the scheduler is disabled: `starter scheduler enable`"
	case m.state.Mode == contract.ModeDraining && (!m.state.Finish || !r.Begun):
		return "", "the scheduler is draining: `starter scheduler enable`"
	}
	if other := m.rival(r); other != nil {
		return other.Run, fmt.Sprintf("behind %s, which works on the same repository and base", other.Run)
	}
	if !m.affords(r) {
		return "", "the deployment's budget is used up or leased: `starter scheduler budget` shows and raises it"
	}
	if n := m.slots(); n >= m.state.Limits.MaxRunning {
		return "", fmt.Sprintf("waits for a slot: %d of %d are in use", n, m.state.Limits.MaxRunning)
	}
	return "", ""
}

// rival is the run that keeps a new one from beginning: it works on the same
// repository and base, and neither was meant to work beside others.
func (m *Scheduler) rival(r *record) *record {
	if r.Begun || r.Parallel {
		return nil
	}
	for _, other := range m.state.Records {
		if other != r && other.Begun && other.Repository == r.Repository && other.Base == r.Base {
			return other
		}
	}
	return nil
}

// grant gives a run its slot; a new one begins with it.
func (m *Scheduler) grant(r *record, now time.Time) {
	if !r.Begun {
		r.Begun, r.StartedAt, r.Status = true, &now, contract.RunStarting
		m.actions.start(r)
		m.event(now, "%s starts", r.Run)
	} else {
		m.event(now, "%s goes on", r.Run)
	}
	r.Slot, r.Want, r.Resumption = true, false, false
	r.Grant++
	m.leaseTo(r)
	m.tell(r)
}

// tell has an order sent to a run that has begun.
func (m *Scheduler) tell(r *record, commands ...contract.RunCommand) {
	if r.Begun && !r.Gone {
		m.actions.order(r, commands...)
	}
}

// Action is something to be done for a run: to start it, or to send it an order.
type Action struct {
	Run   string
	Start *contract.Artifact // the StoredRun to start it with
	Order *contract.SlotOrder
}

// actions collects what commands bring about.
type actions struct {
	pending []pendingAction
}

type pendingAction struct {
	record   *record
	start    bool
	order    bool
	commands []contract.RunCommand
}

func (a *actions) of(r *record) *pendingAction {
	for i := range a.pending {
		if a.pending[i].record == r {
			return &a.pending[i]
		}
	}
	a.pending = append(a.pending, pendingAction{record: r})
	return &a.pending[len(a.pending)-1]
}

func (a *actions) start(r *record) { a.of(r).start = true }

func (a *actions) order(r *record, commands ...contract.RunCommand) {
	p := a.of(r)
	p.order = true
	p.commands = append(p.commands, commands...)
}

// Actions returns what is to be done since the last call, in the order in which
// it came up; starting a run comes before its orders.
func (m *Scheduler) Actions() []Action {
	var todo []Action
	for _, p := range m.actions.pending {
		r := p.record
		if p.start {
			input := r.Input
			todo = append(todo, Action{Run: r.Run, Start: &input})
		}
		if p.order {
			r.Orders++
			order := contract.SlotOrder{Seq: r.Orders, Grant: r.Grant, Hold: r.Barred, Lease: m.leaseOf(r), Commands: p.commands}
			todo = append(todo, Action{Run: r.Run, Order: &order})
		}
	}
	m.actions = actions{}
	return todo
}
