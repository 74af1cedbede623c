package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// Limits of a new scheduler (control.md).
const (
	DefaultRunning = 1
	DefaultQueued  = 20
)

// eventsKept is how many lines of what happened last a status shows.
const eventsKept = 20

// Scheduler admits runs and decides which of them work. Its JSON form is its
// whole state; Actions have to be taken before it is written.
type Scheduler struct {
	state   state
	actions actions
}

type state struct {
	Mode      contract.SchedulerMode `json:"mode"`
	ChangedAt time.Time              `json:"changed_at"`
	By        string                 `json:"by,omitempty"`
	Reason    string                 `json:"reason,omitempty"`
	Finish    bool                   `json:"finish,omitempty"`

	Limits contract.SchedulerLimits `json:"limits"`
	// Over is how many slots beyond the limit were in use when it was lowered; it only shrinks.
	Over int `json:"over,omitempty"`

	Arrivals int       `json:"arrivals"`          // runs admitted so far
	Records  []*record `json:"records,omitempty"` // open runs in the order of arrival

	Cap   contract.Amount `json:"cap,omitzero"`   // deployment budget; 0: none
	Spent contract.Amount `json:"spent,omitzero"` // by runs that closed

	Closed []contract.SchedulerRun `json:"closed,omitempty"` // the last ones, oldest first
	Paged  int                     `json:"paged,omitempty"`  // closed runs in Pages
	Pages  []contract.Artifact     `json:"pages,omitempty"`
	Used   nameBook                `json:"used,omitempty"` // names of all runs ever admitted

	Events []contract.Event `json:"events,omitempty"`
}

// New returns an enabled scheduler that has seen no run.
func New(now time.Time) *Scheduler {
	return &Scheduler{state: state{
		Mode: contract.ModeEnabled, ChangedAt: now,
		Limits: contract.SchedulerLimits{MaxRunning: DefaultRunning, MaxQueued: DefaultQueued},
	}}
}

// MarshalJSON writes the state.
func (m *Scheduler) MarshalJSON() ([]byte, error) { return json.Marshal(m.state) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Scheduler) UnmarshalJSON(data []byte) error {
	m.state, m.actions = state{}, actions{}
	return json.Unmarshal(data, &m.state)
}

// Enable lets runs be admitted, started and resumed, and lifts the scheduler's
// holds. It is refused while runs are pausing: what they leave must be known first.
func (m *Scheduler) Enable(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	if pausing := m.names(pausing); len(pausing) > 0 {
		return m.refuse(pausing, "cannot enable while runs are pausing: %s; enable again when they are paused", list(pausing))
	}
	if m.state.Mode == contract.ModeEnabled {
		return m.answer("the scheduler is enabled already")
	}
	m.setMode(contract.ModeEnabled, order, now)
	lifted := 0
	for _, r := range m.state.Records {
		if r.Barred != nil {
			r.Barred = nil
			m.tell(r)
			lifted++
		}
	}
	m.settle(now)
	answer := m.answer("enabled: runs are admitted, started and resumed")
	if lifted > 0 {
		answer.Done = append(answer.Done, fmt.Sprintf("lifted the hold scheduler of %d runs", lifted))
	}
	return answer
}

// Drain lets what works go to its end and starts nothing more; with Finish, runs
// that wait in a hold may still go on when it ends.
func (m *Scheduler) Drain(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	done := "draining: nothing is admitted, started or resumed"
	switch {
	case m.state.Mode != contract.ModeDraining:
		m.setMode(contract.ModeDraining, order, now)
		m.state.Finish = order.Finish
	case m.state.Finish != order.Finish:
		m.state.Finish = order.Finish
		m.event(now, "drain: runs that wait in a hold finish too: %t", order.Finish)
	default:
		done = "the scheduler is draining already"
	}
	m.settle(now)
	answer := m.answer(done)
	if m.state.Finish {
		answer.Done = append(answer.Done, "runs that wait in a hold go on when it ends")
	}
	if m.drained() {
		answer.Done = append(answer.Done, "drained: nothing works any more")
	}
	answer.Running = m.names(working)
	return answer
}

// Disable pauses everything that works. With OnlyIfIdle it is refused while runs
// implement.
func (m *Scheduler) Disable(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	if busy := m.names(implementing); order.OnlyIfIdle && len(busy) > 0 {
		return m.refuse(busy, "not idle: %s", list(busy))
	}
	done := "the scheduler is disabled already"
	if m.state.Mode != contract.ModeDisabled {
		done = "disabled: runs that work are paused, their work is kept"
		m.setMode(contract.ModeDisabled, order, now)
		for _, r := range m.state.Records {
			m.bar(r, now)
		}
	}
	answer := m.answer(done)
	answer.Pausing = m.names(pausing)
	return answer
}

// bar places the scheduler's hold on a run that has a slot, while nothing may work.
func (m *Scheduler) bar(r *record, now time.Time) {
	if !r.Slot || r.Barred != nil || m.state.Mode != contract.ModeDisabled {
		return
	}
	reason := m.state.Reason
	if reason == "" {
		reason = "the scheduler is disabled"
	}
	r.Barred = &contract.Hold{Kind: contract.HoldScheduler, Reason: reason, By: m.state.By, Since: now}
	m.tell(r)
}

func (m *Scheduler) setMode(mode contract.SchedulerMode, order contract.SchedulerOrder, now time.Time) {
	m.state.Mode, m.state.ChangedAt, m.state.By, m.state.Reason = mode, now, clip(order.By), clip(order.Reason)
	m.state.Finish = false
	m.event(now, "%s %s", mode, order.Reason)
}

// SetLimits changes how many runs work and wait at most. What works goes on.
func (m *Scheduler) SetLimits(order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer {
	next := m.state.Limits
	if order.MaxRunning != nil {
		next.MaxRunning = *order.MaxRunning
	}
	if order.MaxQueued != nil {
		next.MaxQueued = *order.MaxQueued
	}
	switch {
	case order.MaxRunning == nil && order.MaxQueued == nil:
		return m.answer(fmt.Sprintf("unchanged: max_running %d, max_queued %d", next.MaxRunning, next.MaxQueued))
	case next.MaxRunning < 1:
		return m.refuse(nil, "max_running must be at least 1: `starter scheduler drain` starts nothing")
	case next.MaxQueued < 0:
		return m.refuse(nil, "max_queued must not be negative")
	}
	m.state.Limits = next
	m.state.Over = max(m.slots()-next.MaxRunning, 0)
	m.event(now, "limits: max_running %d, max_queued %d", next.MaxRunning, next.MaxQueued)
	m.settle(now)
	answer := m.answer(fmt.Sprintf("max_running is %d, max_queued %d", next.MaxRunning, next.MaxQueued))
	if m.state.Over > 0 {
		answer.Done = append(answer.Done, fmt.Sprintf("%d runs more than that work now and go on", m.state.Over))
	}
	return answer
}

// slots counts the runs that have one.
func (m *Scheduler) slots() int { return len(m.names(working)) }

// drained reports that nothing works, and nothing that a finishing drain waits for is left.
func (m *Scheduler) drained() bool {
	if m.state.Mode == contract.ModeEnabled || m.slots() > 0 {
		return false
	}
	return !m.state.Finish || !slices.ContainsFunc(m.state.Records, func(r *record) bool { return r.Begun })
}

// names returns the runs of a kind in the order of their arrival.
func (m *Scheduler) names(is func(*record) bool) []string {
	var names []string
	for _, r := range m.state.Records {
		if is(r) {
			names = append(names, r.Run)
		}
	}
	return names
}

func (m *Scheduler) answer(done ...string) contract.SchedulerAnswer {
	return contract.SchedulerAnswer{Mode: m.state.Mode, ChangedAt: m.state.ChangedAt, Done: done}
}

func (m *Scheduler) refuse(inTheWay []string, format string, args ...any) contract.SchedulerAnswer {
	answer := m.answer()
	answer.Refused, answer.InTheWay = fmt.Sprintf(format, args...), inTheWay
	return answer
}

func (m *Scheduler) event(now time.Time, format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	m.state.Events = append(m.state.Events, contract.Event{At: now, Text: clip(text)})
	m.state.Events = slices.Delete(m.state.Events, 0, max(0, len(m.state.Events)-eventsKept))
}

// Note adds a line to what happened last.
func (m *Scheduler) Note(now time.Time, format string, args ...any) { m.event(now, format, args...) }

// list names runs in a sentence, a bounded number of them.
func list(runs []string) string {
	const named = 10
	if len(runs) > named {
		return fmt.Sprintf("%s and %d more", strings.Join(runs[:named], ", "), len(runs)-named)
	}
	return strings.Join(runs, ", ")
}

// textLimit bounds what operators and runs say, in bytes.
const textLimit = 300

// clip cuts a text to one bounded line.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= textLimit {
		return text
	}
	return strings.ToValidUTF8(text[:textLimit-len("…")], "") + "…"
}
