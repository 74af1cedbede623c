package admission

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// ErrUnknownRun says that no open run has the name.
var ErrUnknownRun = errors.New("no open run has this name: `starter runs` lists them")

// Report takes what a run says of itself. A message that came before changes
// nothing; one that tells an impossible move is an error that names both statuses,
// and changes nothing either.
func (m *Scheduler) Report(s contract.RunState, now time.Time) error {
	if len(s.Path) == 0 {
		return fmt.Errorf("report %s: the message tells no status", s.Run)
	}
	r := m.find(s.Run)
	switch {
	case r != nil:
	case m.state.Used.has(key(s.Run)):
		return nil // it has closed: a late word
	case s.Repository == "":
		return fmt.Errorf("report %s: %w", s.Run, ErrUnknownRun)
	default:
		r = m.adopt(s, now)
	}
	// Continued as new; or reset to an earlier moment, or back after all: then what is, counts.
	renewed := r.Gone || r.Execution != "" && s.Execution != r.Execution
	if !renewed && s.Seq <= r.Seq {
		return nil
	}
	status, err := follow(r.Status, s.Path)
	switch {
	case err != nil && renewed:
		status = s.Path[len(s.Path)-1]
	case err != nil:
		return fmt.Errorf("report %s: %w", s.Run, err)
	}
	r.Status, r.Execution, r.Seq, r.Gone = status, s.Execution, s.Seq, false
	r.Holds, r.Used, r.Need, r.Least = slices.Clone(s.Holds), s.Used, s.Need, s.Least
	m.reportSlot(r, s, now)
	switch {
	case status.Closed():
		m.close(r, status, s.Reason, now)
	case renewed: // it may have lost what it was told
		m.tell(r)
	}
	m.settle(now)
	return nil
}

// adopt takes in a run that an earlier scheduler of this deployment started.
func (m *Scheduler) adopt(s contract.RunState, now time.Time) *record {
	m.state.Arrivals++
	r := &record{
		Run: s.Run, Plan: s.Plan, Repository: s.Repository, Base: s.Base, Parallel: true, Arrival: m.state.Arrivals,
		SubmittedAt: now, StartedAt: &now, Begun: true, Gone: true, Grant: s.Grant, Orders: s.Orders, Status: contract.RunRecovery,
	}
	m.state.Records = append(m.state.Records, r)
	m.state.Used.add(key(s.Run))
	m.event(now, "%s was started by an earlier scheduler", s.Run)
	return r
}

// follow walks the statuses that a run went through.
func follow(from contract.RunStatus, path []contract.RunStatus) (contract.RunStatus, error) {
	for _, to := range path {
		if err := run.CheckMove(from, to); err != nil {
			return from, err
		}
		from = to
	}
	return from, nil
}

// reportSlot takes what a run says about its slot. A run that gives one back
// names the grant, since the next may be on its way already.
func (m *Scheduler) reportSlot(r *record, s contract.RunState, now time.Time) {
	switch {
	case s.Slot && !r.Slot: // a run that was reset has an older grant: what is, counts
		r.Slot, r.Grant = true, max(r.Grant, s.Grant)
		m.state.Over = max(m.state.Over, m.slots()-m.state.Limits.MaxRunning)
		m.bar(r, now)
	case !s.Slot && s.Grant >= r.Grant:
		r.Slot = false
	}
	wanted := r.Want
	r.Want = s.Want && !r.Slot
	if r.Want && !wanted {
		r.Resumption = true
	}
	if !r.Want && !r.Slot {
		r.Resumption, r.Behind, r.Reason = false, "", ""
	}
}

// Vanished takes the word of the server that a run's workflow does not run any
// more, although the run never said that it closed. It reports whether that is news.
func (m *Scheduler) Vanished(name string, now time.Time) bool {
	r := m.find(name)
	if r == nil || !r.Begun || r.Gone {
		return false
	}
	r.Status, r.Gone, r.Slot, r.Want, r.Resumption = contract.RunRecovery, true, false, false, false
	r.Reason = "its workflow was terminated or lost"
	r.Holds = []contract.Hold{{
		Kind: contract.HoldRecovery, Since: now, Reason: contract.RecoveryRunVanished + ": " + r.Reason,
		Lift: "starter cancel " + r.Run + ", or `temporal workflow reset` brings it back",
	}}
	m.event(now, "%s vanished", r.Run)
	m.settle(now)
	return true
}

// StartFailed closes a run that could not be started.
func (m *Scheduler) StartFailed(name, reason string, now time.Time) {
	if r := m.find(name); r != nil {
		m.close(r, contract.RunFailed, "start run: "+reason, now)
		m.settle(now)
	}
}

// Begun returns the open runs that should have a workflow, in the order of their arrival.
func (m *Scheduler) Begun() []string {
	return m.names(func(r *record) bool { return r.Begun && !r.Gone })
}

// close ends a record; what is to be known of the run afterwards is its row.
func (m *Scheduler) close(r *record, status contract.RunStatus, reason string, now time.Time) {
	r.Status, r.Slot, r.Want, r.Held, r.Reason = status, false, false, nil, clip(reason)
	m.state.Spent.Tokens += r.Used.Tokens
	m.state.Spent.USDMicros += r.Used.USDMicros
	m.state.Records = slices.DeleteFunc(m.state.Records, func(o *record) bool { return o == r })
	m.actions.pending = slices.DeleteFunc(m.actions.pending, func(p pendingAction) bool { return p.record == r })
	row := r.row()
	row.Holds, row.ClosedAt = nil, &now
	m.state.Closed = append(m.state.Closed, row)
	m.event(now, "%s closed: %s %s", r.Run, status, row.Reason)
}
