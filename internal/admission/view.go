package admission

import (
	"slices"

	"mendflow/internal/contract"
)

// pageSize is how many closed runs go into a page, and as many stay listed.
const pageSize = 50

// Status answers the status query.
func (m *Scheduler) Status() contract.SchedulerStatus {
	s := contract.SchedulerStatus{
		Mode: m.state.Mode, ChangedAt: m.state.ChangedAt, By: m.state.By, Reason: m.state.Reason, Finish: m.state.Finish,
		Drained: m.drained(), Limits: m.state.Limits, Running: m.slots(), Queued: len(m.names(waiting)),
		Closed: m.state.Paged + len(m.state.Closed), Pages: slices.Clone(m.state.Pages), Events: slices.Clone(m.state.Events),
	}
	s.Held = len(m.state.Records) - s.Running - s.Queued
	if m.state.Cap != (contract.Amount{}) {
		s.Budget = &contract.DeploymentBudget{Cap: m.state.Cap}
		for _, d := range dimensions {
			*d.of(&s.Budget.Settled), *d.of(&s.Budget.Reserved) = m.settled(d), m.reserved(d)
		}
	}
	return s
}

// Runs returns rows: those with a slot, then the queue in its order, then those
// that are held, then closed ones, newest first.
func (m *Scheduler) Runs(offset, limit int) []contract.SchedulerRun {
	rows := m.open()
	for _, row := range slices.Backward(m.state.Closed) {
		rows = append(rows, row)
	}
	from := min(max(offset, 0), len(rows))
	return rows[from:min(from+max(limit, 0), len(rows))]
}

func (m *Scheduler) open() []contract.SchedulerRun {
	rows := make([]contract.SchedulerRun, 0, len(m.state.Records))
	for _, r := range m.state.Records {
		if r.Slot {
			rows = append(rows, r.row())
		}
	}
	queue := m.queue()
	for i, r := range queue {
		row := r.row()
		row.Position = i + 1
		rows = append(rows, row)
	}
	for _, r := range m.state.Records {
		if !r.Slot && !slices.Contains(queue, r) {
			rows = append(rows, r.row())
		}
	}
	return rows
}

// Run returns the row of an open run or of one that closed lately. known reports
// whether the name was ever used.
func (m *Scheduler) Run(name string) (row contract.SchedulerRun, found, known bool) {
	if r := m.find(name); r != nil {
		row = r.row()
		row.Position = m.position(r)
		return row, true, true
	}
	for _, row := range m.state.Closed {
		if key(row.Run) == key(name) {
			return row, true, true
		}
	}
	return row, false, m.state.Used.has(key(name))
}

// Page returns the closed runs that are due to be stored away; none while too few are there.
func (m *Scheduler) Page() []contract.SchedulerRun {
	if len(m.state.Closed) < 2*pageSize {
		return nil
	}
	return slices.Clone(m.state.Closed[:pageSize])
}

// Paged says that the page that Page returned is stored.
func (m *Scheduler) Paged(page contract.Artifact) {
	n := min(pageSize, len(m.state.Closed))
	m.state.Closed = slices.Delete(m.state.Closed, 0, n)
	m.state.Paged += n
	m.state.Pages = append(m.state.Pages, page)
}
