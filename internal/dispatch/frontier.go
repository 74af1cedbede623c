package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Frontier is the state machine of a run's nodes and items: what may be admitted
// to a level now, what settled, what is stranded and why, and what can never
// start. Remediation hosts it: it feeds reports of drives and operators' answers
// in and carries the decisions out.
//
// It is a value: marshalling it and reading it back at any moment changes
// nothing that follows. It is not safe for concurrent use. Reports of a drive
// are taken once by the host (DriveReport.Seq); on top of that the Frontier
// ignores, and says so, whatever belongs to an older opening or to a node that
// is not running.
type Frontier struct {
	s  frontierState
	ix frontierIndex
}

// FrontierOptions are facts about the run that never change.
type FrontierOptions struct {
	FoldCase bool // paths that differ only in case are one file (core.ignorecase)
}

// frontierState is all that is carried; the index is computed from it.
type frontierState struct {
	Units    []plan.Unit `json:"units"`
	FoldCase bool        `json:"fold_case,omitempty"`
	Phase    int         `json:"phase,omitempty"`   // the open phase; lower ones are over
	Tickets  int         `json:"tickets,omitempty"` // last one given
	Nodes    []nodeState `json:"nodes"`             // as Units
	Items    []itemState `json:"items"`             // findings of the first unit, of the second, …
	Touched  []string    `json:"touched,omitempty"` // folders that the run changed, in order
}

// nodeState is a node in the run.
type nodeState struct {
	State     contract.NodeState   `json:"s"`
	Opening   int                  `json:"o"`
	Next      int                  `json:"k"` // first unused attempt number
	Charged   contract.Charged     `json:"c,omitzero"`
	Ticket    int                  `json:"t,omitempty"`  // place in line since it may run; 0: none yet
	Overtaken int                  `json:"v,omitempty"`  // later conflicting nodes that went first
	Returned  bool                 `json:"r,omitempty"`  // was stranded: goes to the front
	DeadEnd   bool                 `json:"de,omitempty"` // blocked because of another node or phase
	Landed    bool                 `json:"l,omitempty"`  // a commit of the current opening is on the truth
	Given     []string             `json:"g,omitempty"`  // running: findings handed out
	Cause     contract.StrandCause `json:"ca,omitempty"` // stranded
	NotBefore *time.Time           `json:"nb,omitempty"` // stranded
	Reason    string               `json:"re,omitempty"`
	Refused   []string             `json:"rf,omitempty"`
	FirstPool string               `json:"fp,omitempty"`
	Limited   []contract.Streak    `json:"li,omitempty"`
	Kept      *contract.Kept       `json:"kt,omitempty"`
	Tail      string               `json:"ta,omitempty"`
	Salvage   string               `json:"sa,omitempty"`
	Again     string               `json:"ag,omitempty"` // truth on which its blocked items were last verified again

	Passed   []contract.PoolReason `json:"pa,omitempty"`
	Attempts []contract.AttemptRow `json:"at,omitempty"`
}

// itemState is a finding in the run.
type itemState struct {
	Status   contract.ItemStatus `json:"s"`
	Reason   string              `json:"re,omitempty"`
	Question string              `json:"q,omitempty"`
	Answer   string              `json:"an,omitempty"`
	Omitted  int                 `json:"om,omitempty"` // times that a result left it out
	Attempt  int                 `json:"at,omitempty"` // whose answer the status is
	Said     bool                `json:"sd,omitempty"` // blocked: a worker called it so, or its no_change was refused
	Deferred bool                `json:"df,omitempty"` // blocked: an operator put the question off, and is not asked again
}

// NewFrontier starts a run over its selected units, all pending in opening 1,
// with the lowest phase open. Units come valid from package plan; a dependency
// that is not among them can never be satisfied and makes a dead end.
func NewFrontier(units []plan.Unit, opts FrontierOptions) *Frontier {
	f := &Frontier{s: frontierState{Units: slices.Clone(units), FoldCase: opts.FoldCase}}
	for i, u := range units {
		f.s.Nodes = append(f.s.Nodes, nodeState{State: contract.NodePending, Opening: 1, Next: 1})
		for range u.Findings {
			f.s.Items = append(f.s.Items, itemState{Status: contract.ItemPending})
		}
		if i == 0 || u.Phase < f.s.Phase {
			f.s.Phase = u.Phase
		}
	}
	f.ix = buildIndex(&f.s)
	return f
}

// MarshalJSON writes the carried state.
func (f *Frontier) MarshalJSON() ([]byte, error) { return json.Marshal(&f.s) }

// UnmarshalJSON reads what MarshalJSON wrote and computes the index anew.
func (f *Frontier) UnmarshalJSON(data []byte) error {
	var s frontierState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("read frontier: %w", err)
	}
	items := 0
	for _, u := range s.Units {
		items += len(u.Findings)
	}
	if len(s.Nodes) != len(s.Units) || len(s.Items) != items {
		return fmt.Errorf("read frontier: %d units need %d nodes and %d items, found %d and %d",
			len(s.Units), len(s.Units), items, len(s.Nodes), len(s.Items))
	}
	f.s, f.ix = s, buildIndex(&s)
	return nil
}

// Changes says what an event did.
type Changes struct {
	Ignored string             // why nothing changed; empty: it was taken
	Node    string             // the node that the event was about
	State   contract.NodeState // where it stands now
	Items   []contract.ItemRow // items whose status changed, in plan order
	Opened  []string           // nodes that began their next opening, in plan order
	Freed   []string           // dead ends that may run after all, in plan order
	Halt    bool               // triage asked to close the run at once
}

// Running lists the nodes that are admitted and neither settled nor stranded, in plan order.
func (f *Frontier) Running() []string {
	var ids []string
	for i := range f.s.Nodes {
		if f.s.Nodes[i].State == contract.NodeRunning {
			ids = append(ids, f.s.Units[i].ID)
		}
	}
	return ids
}

// under reports whether a node in this state is under way: it runs, waits or may
// still start. In any other state its drive is done with it.
func under(s contract.NodeState) bool {
	return s == contract.NodePending || s == contract.NodeRunning || s == contract.NodeStranded
}

// itemRange returns the indexes of a node's items.
func (f *Frontier) itemRange(n int) (from, to int) {
	from = f.ix.firstItem[n]
	return from, from + len(f.s.Units[n].Findings)
}

// every reports whether all items of a node satisfy the condition.
func (f *Frontier) every(n int, is func(contract.ItemStatus) bool) bool {
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		if !is(f.s.Items[i].Status) {
			return false
		}
	}
	return true
}

// any reports whether an item of a node has the status.
func (f *Frontier) any(n int, status contract.ItemStatus) bool {
	return !f.every(n, func(s contract.ItemStatus) bool { return s != status })
}

// itemRow is an item as others see it.
func (f *Frontier) itemRow(n, i int) contract.ItemRow {
	it := &f.s.Items[i]
	return contract.ItemRow{
		Finding: f.s.Units[n].Findings[i-f.ix.firstItem[n]], Node: f.s.Units[n].ID, Status: it.Status,
		Reason: it.Reason, Question: it.Question, Answer: it.Answer, Deferred: it.Deferred, Attempt: it.Attempt,
	}
}

// snapshot remembers the statuses of a node's items, so that changes can be told.
func (f *Frontier) snapshot(n int) []contract.ItemStatus {
	from, to := f.itemRange(n)
	statuses := make([]contract.ItemStatus, 0, to-from)
	for i := from; i < to; i++ {
		statuses = append(statuses, f.s.Items[i].Status)
	}
	return statuses
}

// changed lists the items of a node whose status differs from the snapshot.
func (f *Frontier) changed(n int, before []contract.ItemStatus) []contract.ItemRow {
	from, to := f.itemRange(n)
	var rows []contract.ItemRow
	for i := from; i < to; i++ {
		if f.s.Items[i].Status != before[i-from] {
			rows = append(rows, f.itemRow(n, i))
		}
	}
	return rows
}
