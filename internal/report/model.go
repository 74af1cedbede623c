package report

import (
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

// Version is the version of the JSON form (schema.json). Fields are added
// without raising it; it is raised when one changes its meaning.
const Version = 1

// Model is everything that a reader of a report needs. Lists are in a defined
// order: items by severity and id, nodes by level and id, the rest as stated.
type Model struct {
	Version    int        `json:"version"`
	Run        string     `json:"run"`
	PlanID     string     `json:"plan_id"`
	Goal       string     `json:"goal,omitempty"`
	Repository string     `json:"repository"`
	Branch     string     `json:"branch"`
	BaseCommit string     `json:"base_commit,omitempty"`
	HeadCommit string     `json:"head_commit,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	ClosedAt   *time.Time `json:"closed_at,omitempty"` // absent: the report is interim

	Verdict Verdict `json:"verdict"`
	Next    []Step  `json:"next"` // what to do now, most important first

	Items        []Item               `json:"items"`
	ItemCounts   []contract.ItemCount `json:"item_counts"`  // statuses that occur, in the order of the vocabulary
	Dispositions []Disposition        `json:"dispositions"` // every input finding exactly once, in the plan's order
	Nodes        []Node               `json:"nodes"`
	NodeCounts   []contract.NodeCount `json:"node_counts"` // states that occur, in the order of the vocabulary

	Baseline *Gate               `json:"baseline,omitempty"`
	Accepted bool                `json:"baseline_accepted,omitempty"` // the plan accepts a red base: only new failures count
	Gates    []Gate              `json:"gates"`                       // phase gates and final gates, oldest first
	Residual []string            `json:"runtime_residual"`            // what no gate of this run covers
	Friction []contract.Friction `json:"friction"`                    // as recorded
	Holds    []contract.Hold     `json:"holds,omitempty"`             // those that hold an open run

	Salvage            []Salvage       `json:"salvage"`              // by node and attempt
	Refs               []string        `json:"refs"`                 // that the run keeps in the hub
	Protected          []ProtectedPath `json:"protected_paths"`      // by path
	Unverified         []string        `json:"unverified_nodes"`     // landed without verify commands
	NoChangeUnverified []string        `json:"no_change_unverified"` // findings closed as needing no change, on the worker's word
	Publication        *Publication    `json:"publication,omitempty"`
	Notes              []string        `json:"notes,omitempty"` // what could not be done on the side, e.g. the convenience branch

	Usage Usage       `json:"usage"`
	Pools []PoolUsage `json:"pools"` // by id
}

// Verdict is how the run stands, in one word and one sentence.
type Verdict struct {
	Status   contract.RunStatus `json:"status"`
	Ungated  bool               `json:"ungated,omitempty"` // completed with the gate switched off by the plan
	Green    bool               `json:"green"`
	Sentence string             `json:"sentence"`
	Reason   string             `json:"reason,omitempty"` // what the run itself says
}

// Label is the status as the report's title says it.
func (v Verdict) Label() string {
	if v.Ungated {
		return string(v.Status) + ", ungated"
	}
	return string(v.Status)
}

// Step is one thing to do, with the exact command where there is one.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// Item is a finding that the run worked on.
type Item struct {
	Finding            string              `json:"finding"`
	Title              string              `json:"title"`
	Severity           plan.Severity       `json:"severity,omitempty"`
	Lens               plan.Lens           `json:"lens,omitempty"`
	Summary            string              `json:"summary,omitempty"`
	Files              []plan.Location     `json:"files,omitempty"`
	Node               string              `json:"node,omitempty"`
	Status             contract.ItemStatus `json:"status"`
	Reason             string              `json:"reason,omitempty"`
	Question           string              `json:"question,omitempty"`
	Answer             string              `json:"answer,omitempty"`
	Attempt            int                 `json:"attempt,omitempty"`
	Commit             string              `json:"commit,omitempty"` // of a resolved one: where it landed
	NoChangeUnverified bool                `json:"no_change_unverified,omitempty"`
	Evidence           []Evidence          `json:"evidence,omitempty"` // what the status rests on, as the worker or Mendflow showed it
}

// Evidence is a command with its end, or a text.
type Evidence struct {
	Command  string `json:"command,omitempty"`
	ExitCode int    `json:"exit_code,omitempty"`
	Tail     string `json:"output_tail,omitempty"`
	Text     string `json:"text,omitempty"`
	Ran      bool   `json:"ran,omitempty"` // Mendflow ran the command itself
}

// Disposition is what became of one input finding.
type Disposition struct {
	contract.Disposition
	Title    string          `json:"title,omitempty"`
	Severity plan.Severity   `json:"severity,omitempty"`
	Lens     plan.Lens       `json:"lens,omitempty"`
	Files    []plan.Location `json:"files,omitempty"`
}

// States of a disposition.
const (
	Planned             = "planned"
	DroppedByIntent     = "dropped_by_intent"
	DroppedMissingFiles = "dropped_missing_files"
	DroppedNoEvidence   = "dropped_no_evidence"
	Folded              = "folded"
)

// Node is a node with its attempts and what it used.
type Node struct {
	contract.NodeRow
	Findings []string `json:"findings"`
	Usage    Usage    `json:"usage"`
}

// Purposes of a gate.
const (
	PurposeBaseline = "baseline"
	PurposePhase    = "phase"
	PurposeFinal    = "final"
)

// Gate is one gate that ran, or the statement that it is disabled.
type Gate struct {
	Purpose string `json:"purpose"`
	Round   int    `json:"round,omitempty"` // counts the gates of the run from 1
	gate.Result
	Attribution *Attribution `json:"attribution,omitempty"` // of a red one
}

// Attribution is what a red gate was attributed to.
type Attribution struct {
	Verdict  string   `json:"verdict"` // culprit | interaction | unattributable
	Nodes    []string `json:"nodes,omitempty"`
	Reverted []string `json:"reverted,omitempty"`
	Runs     int      `json:"runs,omitempty"`
	Detail   string   `json:"detail,omitempty"`
}

// Salvage is work that did not land and was kept.
type Salvage struct {
	Ref     string `json:"ref"`
	Node    string `json:"node"`
	Attempt int    `json:"attempt"`
}

// ProtectedPath is a protected file that the run changed, as the plan allowed.
type ProtectedPath struct {
	Path   string `json:"path"`
	Node   string `json:"node"`
	Commit string `json:"commit,omitempty"`
}

// Publication is the closing action and how far it came.
type Publication struct {
	Action   plan.CloseAction `json:"action"`
	State    string           `json:"state"` // pending, in_flight, uncertain, retryable, exhausted, failed, succeeded, skipped
	Branch   string           `json:"branch,omitempty"`
	URL      string           `json:"url,omitempty"`
	Commit   string           `json:"commit,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	Detail   string           `json:"detail,omitempty"`
}

// Usage sums attempts. Uncertain counts those that told nothing usable: their
// tokens are missing from the sums.
type Usage struct {
	Attempts     int     `json:"attempts"`
	Seconds      int     `json:"seconds"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Uncertain    int     `json:"uncertain_attempts"`
}

// PoolUsage is what the run used of a pool.
type PoolUsage struct {
	Pool string `json:"pool"`
	Usage
	Outcomes []OutcomeCount `json:"outcomes"` // those that occur, by name
}

// OutcomeCount is the number of attempts with an outcome.
type OutcomeCount struct {
	Outcome contract.Outcome `json:"outcome"`
	N       int              `json:"n"`
}
