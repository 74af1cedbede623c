package contract

import "time"

// NodeRow is one line of `starter nodes --json` (interface.md).
type NodeRow struct {
	ID        string       `json:"id"`
	Level     int          `json:"level"` // depth in the dependency graph, from 0
	State     NodeState    `json:"state"`
	Opening   int          `json:"opening"`
	Attempts  []AttemptRow `json:"attempts"`             // oldest first
	NotBefore *time.Time   `json:"not_before,omitempty"` // stranded: when it is tried again
	Cause     StrandCause  `json:"cause,omitempty"`      // stranded: why
	Reason    string       `json:"reason,omitempty"`
}

// AttemptRow is one launch in a NodeRow.
type AttemptRow struct {
	K          int       `json:"k"`       // attempt number of the node in this run, from 1
	Opening    int       `json:"opening"` // the opening that it worked for
	Charged    bool      `json:"charged"` // false: a limit or an interruption, counts against no bound
	Pool       string    `json:"pool,omitempty"`
	Outcome    Outcome   `json:"outcome"`
	Cause      Cause     `json:"cause,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	Seconds    int       `json:"seconds"`
	Commit     string    `json:"commit,omitempty"`
	VerifiedOn string    `json:"verified_on,omitempty"`
	LandedOn   string    `json:"landed_on,omitempty"`
	Unverified bool      `json:"unverified,omitempty"` // landed without verify commands
	Delivered  bool      `json:"delivered,omitempty"`  // the worker ended with something to judge
	Salvage    string    `json:"salvage,omitempty"`
	Log        string    `json:"log,omitempty"` // artifact key of the transcript
	Usage      Usage     `json:"usage,omitzero"`
}

// Charged reports whether an attempt with this outcome counts against the
// node's bounds: a limit or an interruption says nothing about its work.
func (o Outcome) Charged() bool { return !o.Limit() && o != OutcomeInterrupted }

// Row is the attempt as the node table shows it.
func (r AttemptResult) Row() AttemptRow {
	row := AttemptRow{
		K: r.Attempt, Opening: r.Opening, Charged: r.Outcome.Charged(), Pool: r.Pool,
		Outcome: r.Outcome, Cause: r.Cause, Reason: r.Reason, StartedAt: r.StartedAt,
		Commit: r.Commit, VerifiedOn: r.VerifiedOn, LandedOn: r.LandedOn, Unverified: r.Unverified,
		Delivered: r.Delivered, Salvage: r.Salvage, Usage: r.Usage,
	}
	if !r.StartedAt.IsZero() && r.EndedAt.After(r.StartedAt) {
		row.Seconds = int(r.EndedAt.Sub(r.StartedAt) / time.Second)
	}
	if r.Log != nil {
		row.Log = r.Log.URI
	}
	return row
}

// ItemRow is a finding with its status in the run.
type ItemRow struct {
	Finding  string     `json:"finding"`
	Node     string     `json:"node"`
	Status   ItemStatus `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Question string     `json:"question,omitempty"` // of needs_clarification
	Answer   string     `json:"answer,omitempty"`   // an operator's clarification
	Deferred bool       `json:"deferred,omitempty"` // an operator put the question off: nobody is asked again
	Attempt  int        `json:"attempt,omitempty"`  // attempt whose answer the status is; 0: none
}

// Progress counts a run's nodes and items.
type Progress struct {
	Total int         `json:"total"`           // nodes
	Nodes []NodeCount `json:"nodes"`           // every NodeState, in the order of the vocabulary, zeros included
	Items []ItemCount `json:"items"`           // every ItemStatus, likewise
	Level int         `json:"level"`           // deepest level with a running node, from 0; 0 when none runs
	Phase int         `json:"phase,omitempty"` // open phase
}

// NodeCount is the number of nodes in a state.
type NodeCount struct {
	State NodeState `json:"state"`
	N     int       `json:"n"`
}

// ItemCount is the number of items with a status.
type ItemCount struct {
	Status ItemStatus `json:"status"`
	N      int        `json:"n"`
}

// NodeMap is the form that RunView carries: per state without zeros, and total.
func (p Progress) NodeMap() map[string]int {
	m := map[string]int{"total": p.Total}
	for _, c := range p.Nodes {
		if c.N > 0 {
			m[string(c.State)] = c.N
		}
	}
	return m
}

// ItemMap is the form that RunView carries: per status without zeros.
func (p Progress) ItemMap() map[string]int {
	m := map[string]int{}
	for _, c := range p.Items {
		if c.N > 0 {
			m[string(c.Status)] = c.N
		}
	}
	return m
}

// NodeView answers the explain query for one node as far as the run knows:
// why it does not run, and what the drives said about pools.
type NodeView struct {
	NodeRow
	Items     []ItemRow    `json:"items"`
	Waits     []string     `json:"waits,omitempty"`     // what it waits for, as sentences
	Conflicts []string     `json:"conflicts,omitempty"` // nodes whose scope overlaps, at most 20, by id
	Overtaken int          `json:"overtaken,omitempty"` // how often conflicting nodes went first since it may run
	Charged   Charged      `json:"charged,omitzero"`
	Refused   []string     `json:"refused,omitempty"` // pools that refused it for its size
	Passed    []PoolReason `json:"passed,omitempty"`  // why each pool was passed over, last known
}
