package admission

import (
	"fmt"

	"mendflow/internal/contract"
)

// Check returns what of the scheduler's invariants does not hold; nil always,
// unless there is a mistake in this package.
func (m *Scheduler) Check() error {
	names, arrival := map[string]bool{}, 0
	for _, r := range m.state.Records {
		if names[key(r.Run)] || r.Arrival <= arrival || r.Arrival > m.state.Arrivals {
			return fmt.Errorf("check scheduler: %s (arrival %d) is not unique or out of order", r.Run, r.Arrival)
		}
		names[key(r.Run)], arrival = true, r.Arrival
		if err := m.checkRecord(r); err != nil {
			return fmt.Errorf("check scheduler: %s: %w", r.Run, err)
		}
	}
	for _, row := range m.state.Closed {
		if names[key(row.Run)] || !row.Status.Closed() {
			return fmt.Errorf("check scheduler: %s closed as %s and is there again", row.Run, row.Status)
		}
		names[key(row.Run)] = true
	}
	if n := m.slots(); n > m.state.Limits.MaxRunning+m.state.Over {
		return fmt.Errorf("check scheduler: %d slots of %d (and %d) are in use", n, m.state.Limits.MaxRunning, m.state.Over)
	}
	for _, d := range dimensions {
		limit, reserved := *d.of(&m.state.Cap), m.reserved(d)
		if limit == 0 && reserved > 0 || limit > 0 && reserved > 0 && m.settled(d)+reserved > limit {
			return fmt.Errorf("check scheduler: settled %d and reserved %d exceed the cap %d", m.settled(d), reserved, limit)
		}
	}
	return m.checkQueue()
}

func (m *Scheduler) checkRecord(r *record) error {
	switch {
	case r.Status.Closed():
		return fmt.Errorf("is %s and open", r.Status)
	case !m.state.Used.has(key(r.Run)):
		return fmt.Errorf("its name is not remembered")
	case r.Slot && !r.Begun || r.Want && !r.Begun || r.Slot && r.Want:
		return fmt.Errorf("begun %t, slot %t, want %t", r.Begun, r.Slot, r.Want)
	case m.state.Mode == contract.ModeDisabled && implementing(r):
		return fmt.Errorf("works while the scheduler is disabled")
	case m.state.Mode == contract.ModeEnabled && r.Barred != nil:
		return fmt.Errorf("has the hold scheduler while the scheduler is enabled")
	case r.Held != nil && (r.Begun || r.Held.Kind != contract.HoldOperator || r.Status != contract.RunPaused):
		return fmt.Errorf("is held in the queue: begun %t, %s", r.Begun, r.Status)
	case r.Held == nil && !r.Begun && r.Status != contract.RunQueued:
		return fmt.Errorf("has not begun and is %s", r.Status)
	case r.Gone && (r.Slot || r.Status != contract.RunRecovery):
		return fmt.Errorf("vanished and is %s", r.Status)
	}
	return nil
}

// checkQueue makes sure that nothing waits that could work, and that no two runs
// work on the same repository and base unless they are meant to.
func (m *Scheduler) checkQueue() error {
	for _, r := range m.queue() {
		if _, reason := m.inTheWay(r); reason == "" {
			return fmt.Errorf("check scheduler: %s waits for nothing", r.Run)
		}
	}
	alone := map[[2]string]string{}
	for _, r := range m.state.Records {
		if !r.Begun || r.Parallel {
			continue
		}
		at := [2]string{r.Repository, r.Base}
		if other := alone[at]; other != "" {
			return fmt.Errorf("check scheduler: %s and %s work on the same repository and base", r.Run, other)
		}
		alone[at] = r.Run
	}
	return nil
}
