package contract

import (
	"time"

	"mendflow/internal/plan"
)

// OpenRunInput opens a run: mirror, base, truth, gate discovery, stored configuration.
type OpenRunInput struct {
	Run        string   `json:"run"`
	Repository string   `json:"repository"`
	Base       string   `json:"base,omitempty"`
	Plan       Artifact `json:"plan"`
	PoolsFile  Artifact `json:"pools_file"`
}

// OpenRunResult is what the workflow needs of an opened run.
type OpenRunResult struct {
	Config     Artifact  `json:"config"`
	PlanID     string    `json:"plan_id"`
	Goal       string    `json:"goal,omitempty"`
	BaseCommit string    `json:"base_commit"`
	Truth      string    `json:"truth"`
	Units      int       `json:"units"`
	FoldCase   bool      `json:"fold_case,omitempty"`
	Gate       int       `json:"gate"` // number of gate commands; 0: disabled
	GateOnRed  string    `json:"gate_on_red,omitempty"`
	Baseline   string    `json:"baseline,omitempty"`
	Policy     RunPolicy `json:"policy"`
	Attributes []string  `json:"attributes,omitempty"` // registered search attributes of ours
	// Notify is what each receiver of the plan's notifications wants to hear, in the plan's order.
	Notify [][]plan.NotifyOn `json:"notify,omitempty"`
}

// RunPolicy is the part of the plan that the run's own decisions need.
type RunPolicy struct {
	Spill         string      `json:"spill"`
	AttemptTokens int         `json:"attempt_tokens,omitempty"`
	Unattended    bool        `json:"unattended,omitempty"`
	Budget        plan.Budget `json:"budget,omitzero"`
	GateMinutes   int         `json:"gate_minutes"` // for the whole gate
	Limits        Limits      `json:"limits"`
	Close         string      `json:"close,omitempty"`
}

// Disposition says what became of an input finding before the run.
type Disposition struct {
	Finding string `json:"finding"`
	State   string `json:"state"` // planned | dropped_by_intent | dropped_missing_files | dropped_no_evidence | folded
	Reason  string `json:"reason,omitempty"`
}

// LoadUnitsInput asks for a page of the run's units.
type LoadUnitsInput struct {
	Config Artifact `json:"config"`
	Offset int      `json:"offset"`
}

// LoadUnitsResult is one page, at most 48 KiB of JSON; Next is 0 after the last.
type LoadUnitsResult struct {
	Units []plan.Unit `json:"units"`
	Next  int         `json:"next,omitempty"`
}

// WorkerEnd is the result of RunWorker: how the launch ended, before landing.
type WorkerEnd struct {
	Host      string     `json:"host"`
	Landed    string     `json:"landed,omitempty"`   // commit: the opening was landed already, nothing ran
	Resolved  []string   `json:"resolved,omitempty"` // findings that the landed commit names as repaired
	Outcome   Outcome    `json:"outcome"`            // success: go on with LandWork
	Cause     Cause      `json:"cause,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Delivered bool       `json:"delivered,omitempty"` // a valid result file is there
	ExitCode  int        `json:"exit_code,omitempty"`
	Kept      *Kept      `json:"kept,omitempty"`
	Limit     *Limit     `json:"limit,omitempty"`
	Windows   []Window   `json:"windows,omitempty"` // what the program told about the account's quota windows
	Usage     Usage      `json:"usage,omitzero"`
	Log       *Artifact  `json:"log,omitempty"`
	Tail      string     `json:"tail,omitempty"`
	Alive     string     `json:"alive,omitempty"`    // what of it could not be ended; empty: nothing
	Stopping  bool       `json:"stopping,omitempty"` // its host is being stopped
	StartedAt time.Time  `json:"started_at,omitzero"`
	EndedAt   time.Time  `json:"ended_at,omitzero"`
	Friction  []Friction `json:"friction,omitempty"`
	Desk      *Desk      `json:"desk,omitempty"` // of an attended attempt: where it is worked on
}

// LandInput is the input of LandWork; the worker's record lies on the host.
type LandInput struct {
	NodeInput
	Delivered bool `json:"delivered,omitempty"`
	ExitCode  int  `json:"exit_code,omitempty"`
}

// LandEnd is the result of LandWork.
type LandEnd struct {
	Outcome    Outcome      `json:"outcome"`
	Cause      Cause        `json:"cause,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	State      NodeState    `json:"state,omitempty"`
	Items      []ItemResult `json:"items,omitempty"`
	Commit     string       `json:"commit,omitempty"`
	VerifiedOn string       `json:"verified_on,omitempty"`
	LandedOn   string       `json:"landed_on,omitempty"`
	Unverified bool         `json:"unverified,omitempty"`
	Paths      []string     `json:"paths,omitempty"`
	Salvage    string       `json:"salvage,omitempty"`
	Verify     *Artifact    `json:"verify,omitempty"`
	Tail       string       `json:"tail,omitempty"`
	Alive      string       `json:"alive,omitempty"`    // what of it could not be ended; empty: nothing
	Stopping   bool         `json:"stopping,omitempty"` // its host is being stopped
	Friction   []Friction   `json:"friction,omitempty"`
	// Released: the tree was given up with the landing; no ReleaseWorktree follows.
	Released bool   `json:"released,omitempty"`
	Left     string `json:"left,omitempty"` // what of the tree could not be removed, and why
}

// ReleaseInput ends an attempt's tree. Discard false keeps it for continuation (salvaged as well).
type ReleaseInput struct {
	NodeInput
	Landed bool   `json:"landed,omitempty"` // nothing to salvage
	Keep   bool   `json:"keep,omitempty"`
	Step   string `json:"step,omitempty"`
}

// ReleaseEnd says what is left of an attempt.
type ReleaseEnd struct {
	Salvage string `json:"salvage,omitempty"`
	Kept    *Kept  `json:"kept,omitempty"`
	Left    string `json:"left,omitempty"` // what could not be removed, and why
}

// GateInput runs the gate's commands on a commit.
type GateInput struct {
	Run      string   `json:"run"`
	Config   Artifact `json:"config"`
	Commit   string   `json:"commit,omitempty"` // empty: the truth
	Purpose  string   `json:"purpose"`          // baseline | final | phase
	Round    int      `json:"round"`
	Baseline string   `json:"baseline,omitempty"` // require | accept
	Base     *GateEnd `json:"base,omitempty"`     // the baseline's result, for accept
}

// GateEnd is the result of a gate; details are the artifact.
type GateEnd struct {
	Kind     string     `json:"kind"`    // executed | disabled
	Verdict  string     `json:"verdict"` // green | red | flaky | disabled
	Commit   string     `json:"commit,omitempty"`
	Failing  string     `json:"failing,omitempty"` // first failing command
	Detail   string     `json:"detail,omitempty"`  // one line
	Tail     string     `json:"tail,omitempty"`    // at most 2 KiB
	Residual []string   `json:"residual,omitempty"`
	Result   *Artifact  `json:"result,omitempty"`
	Seconds  int        `json:"seconds,omitempty"`
	Friction []Friction `json:"friction,omitempty"`
}

// ReportInput writes the report pair of a run.
type ReportInput struct {
	Run    string     `json:"run"`
	Config Artifact   `json:"config"`
	State  []Artifact `json:"state"` // parts of the RunRecord, stored by SaveState
}

// RunRecord is what the report needs beside the configuration; the workflow stores it in parts.
type RunRecord struct {
	View     RunView   `json:"view"`
	Nodes    []NodeRow `json:"nodes"`
	Items    []ItemRow `json:"items"`
	Baseline *GateEnd  `json:"baseline,omitempty"`
	Gate     *GateEnd  `json:"gate,omitempty"` // the last one
	// Gates are all gates of the run, where there were several or one was attributed.
	Gates []GateRound `json:"gates,omitempty"`
}

// ReportEnd refers to the rendered report.
type ReportEnd struct {
	Markdown Artifact `json:"markdown"`
	JSON     Artifact `json:"json"`
	Head     string   `json:"head,omitempty"`
	Refs     []string `json:"refs,omitempty"` // at most 200
	Note     string   `json:"note,omitempty"` // e.g. why the convenience branch was left alone
}

// StateInput stores a part of a run's state; the key is made of run, name and content.
type StateInput struct {
	Run  string `json:"run"`
	Name string `json:"name"`
	Data []byte `json:"data"` // at most 48 KiB
}

// Beat is the heartbeat of a long activity: enough to go on after its host died.
type Beat struct {
	Host    string `json:"host"`
	Step    string `json:"step"`
	Tree    bool   `json:"tree,omitempty"` // a worktree of the attempt exists
	Session string `json:"session,omitempty"`
	Note    string `json:"note,omitempty"`
}
