package admission

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// record is an open run.
type record struct {
	Run         string            `json:"run"`
	Plan        string            `json:"plan"`
	Repository  string            `json:"repository"`
	Base        string            `json:"base,omitempty"`
	Generation  int               `json:"generation,omitempty"`
	Parallel    bool              `json:"parallel,omitempty"`
	Arrival     int               `json:"arrival"`
	Priority    int               `json:"priority,omitempty"`
	By          string            `json:"by,omitempty"`
	Input       contract.Artifact `json:"input"`
	SubmittedAt time.Time         `json:"submitted_at"`

	// In the queue.
	Resumption bool           `json:"resumption,omitempty"`
	Held       *contract.Hold `json:"held,omitempty"` // an operator's, placed before the run began
	Reason     string         `json:"reason,omitempty"`
	Behind     string         `json:"behind,omitempty"`

	// Since it began.
	Begun     bool               `json:"begun,omitempty"`
	StartedAt *time.Time         `json:"started_at,omitempty"`
	Slot      bool               `json:"slot,omitempty"`
	Grant     int                `json:"grant,omitempty"`  // slots granted so far
	Orders    int                `json:"orders,omitempty"` // orders sent so far
	Barred    *contract.Hold     `json:"barred,omitempty"` // the scheduler's hold
	Gone      bool               `json:"gone,omitempty"`   // the server knows no open workflow of it
	Status    contract.RunStatus `json:"status"`           // as the run told it, or as it is here before it begins
	Execution string             `json:"execution,omitempty"`
	Seq       int                `json:"seq,omitempty"`
	Want      bool               `json:"want,omitempty"`
	Holds     []contract.Hold    `json:"holds,omitempty"`
	Used      contract.Amount    `json:"used,omitzero"`
	Need      contract.Amount    `json:"need,omitzero"`
	Least     contract.Amount    `json:"least,omitzero"`
	Lease     contract.Amount    `json:"lease,omitzero"` // in all since its start
}

// key is a run's name as it is compared: file systems may ignore case.
func key(run string) string { return strings.ToLower(run) }

// find returns the open run of a name; nil without one.
func (m *Scheduler) find(run string) *record {
	i := slices.IndexFunc(m.state.Records, func(r *record) bool { return key(r.Run) == key(run) })
	if i < 0 {
		return nil
	}
	return m.state.Records[i]
}

// working reports whether a run occupies a slot.
func working(r *record) bool { return r.Slot }

// pausing reports whether a run with a slot is on its way to being paused.
func pausing(r *record) bool {
	return r.Slot && (r.Barred != nil || r.Status == contract.RunPausing)
}

// implementing reports whether a run works and is not pausing.
func implementing(r *record) bool { return r.Slot && !pausing(r) }

// waiting reports whether a run stands in the queue, held there or not.
func waiting(r *record) bool { return !r.Begun || r.Want }

// status is where a run stands as far as its scheduler can tell: what it was
// just told to do counts, although it has not said so yet.
func (r *record) status() contract.RunStatus {
	switch {
	case pausing(r):
		return contract.RunPausing
	case !r.Slot:
		return r.Status
	}
	switch r.Status {
	case contract.RunQueued, contract.RunPaused, contract.RunRecovery:
		return contract.RunStarting // granted, on its way
	default:
		return r.Status
	}
}

// row shows the run.
func (r *record) row() contract.SchedulerRun {
	row := contract.SchedulerRun{
		Run: r.Run, Status: r.status(), Plan: r.Plan, Repository: r.Repository, Base: r.Base, Generation: r.Generation,
		Priority: r.Priority, Resumption: r.Resumption, Slot: r.Slot, Begun: r.Begun, Behind: r.Behind, Reason: r.Reason,
		By: r.By, SubmittedAt: r.SubmittedAt, StartedAt: r.StartedAt, Holds: slices.Clone(r.Holds),
	}
	if r.Used != (contract.Amount{}) {
		used := r.Used
		row.Used = &used
	}
	if r.Held != nil {
		row.Holds = append(row.Holds, *r.Held)
	}
	return row
}

// inOrder compares two runs that wait: resumptions first, then priority, then arrival.
func inOrder(a, b *record) int {
	if a.Resumption != b.Resumption {
		if a.Resumption {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Arrival, b.Arrival))
}

// queue returns the runs that wait for a slot and are not held, in their order.
func (m *Scheduler) queue() []*record {
	var queue []*record
	for _, r := range m.state.Records {
		if waiting(r) && r.Held == nil {
			queue = append(queue, r)
		}
	}
	slices.SortStableFunc(queue, inOrder)
	return queue
}
