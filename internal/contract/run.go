package contract

import (
	"time"

	"mendflow/internal/plan"
)

// RemediationInput starts or continues a run. Everything that can be large is
// an artifact; Carried is set by continue-as-new only.
type RemediationInput struct {
	Run         string    `json:"run"`
	Repository  string    `json:"repository"` // canonical hub
	Base        string    `json:"base,omitempty"`
	Plan        Artifact  `json:"plan"` // the validated plan (JSON)
	PoolsFile   Artifact  `json:"pools_file"`
	Pools       []Pool    `json:"pools"`
	Recomposed  bool      `json:"recomposed,omitempty"` // Pools changed since the start: PoolsFile says something else
	RequestedBy string    `json:"requested_by,omitempty"`
	RequestedAt time.Time `json:"requested_at,omitzero"`
	// Scheduler is the workflow id of the scheduler that started the run; empty: nobody admits it, it works at once.
	Scheduler string   `json:"scheduler,omitempty"`
	Carried   *Carried `json:"carried,omitempty"`

	AllowPartial bool `json:"allow_partial,omitempty"` // carry the closing action out although findings are left
}

// Carried is what a run takes through continue-as-new: inline when small, else by reference.
type Carried struct {
	Inline   []byte           `json:"inline,omitempty"`
	Parts    []Artifact       `json:"parts,omitempty"`
	Messages []CarriedMessage `json:"messages,omitempty"` // arrived and not yet taken, oldest first per signal
}

// CarriedMessage is a signal as it arrived.
type CarriedMessage struct {
	Signal   string            `json:"signal"`
	Metadata map[string][]byte `json:"metadata,omitempty"`
	Data     []byte            `json:"data,omitempty"`
}

// RemediationResult is how a run closed.
type RemediationResult struct {
	Run        string    `json:"run"`
	Status     RunStatus `json:"status"`
	Reason     string    `json:"reason,omitempty"`
	Branch     string    `json:"branch,omitempty"`
	HeadCommit string    `json:"head_commit,omitempty"`
	Report     *Artifact `json:"report,omitempty"`

	Publication *PublicationView `json:"publication,omitempty"`
}

// RunConfig is the run as its activities read it, stored once as an artifact
// when the run opens, so that no payload repeats it.
type RunConfig struct {
	Run           string         `json:"run"`
	Repository    string         `json:"repository"`
	BaseCommit    string         `json:"base_commit"`
	Plan          plan.Plan      `json:"plan"`
	Units         []plan.Unit    `json:"units"`
	Pools         []Pool         `json:"pools"`
	LimitPatterns []LimitPattern `json:"limit_patterns,omitempty"`
	Gate          []GateCommand  `json:"gate,omitempty"`
	GateSources   []string       `json:"gate_sources,omitempty"`  // files from which gate commands were read: protected
	GateResidual  []string       `json:"gate_residual,omitempty"` // surfaces that the gate says it does not cover
	FoldCase      bool           `json:"fold_case,omitempty"`
	BaseBranch    string         `json:"base_branch,omitempty"` // branch that the base names; empty: none, or nobody asks
	Dropped       []Disposition  `json:"dropped,omitempty"`     // findings that are not planned, and why
	OpenedAt      time.Time      `json:"opened_at"`
}

// GateCommand is one command of the final gate, with the folder it runs in.
type GateCommand struct {
	Command plan.Command `json:"command"`
	Dir     string       `json:"dir,omitempty"` // from the repository root; empty: the root
	Layer   string       `json:"layer"`         // build | check | test
}

// Hold is a reason why the run does not proceed.
type Hold struct {
	Kind   HoldKind   `json:"kind"`
	Reason string     `json:"reason"`
	By     string     `json:"by,omitempty"`
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty"`
	Lift   string     `json:"lift,omitempty"` // the exact command that lifts it
}

// RunView answers the status query of a run; `starter status --json` prints it.
type RunView struct {
	Run        string         `json:"run"`
	WorkflowID string         `json:"workflow_id"`
	PlanID     string         `json:"plan_id,omitempty"`
	Status     RunStatus      `json:"status"`
	Reason     string         `json:"reason,omitempty"`
	Position   int            `json:"position,omitempty"` // place in the scheduler's queue, from 1
	Holds      []Hold         `json:"holds"`
	Repository string         `json:"repository"`
	Branch     string         `json:"branch"`
	BaseCommit string         `json:"base_commit,omitempty"`
	HeadCommit string         `json:"head_commit,omitempty"`
	Level      int            `json:"level"` // deepest level with a drive under way, from 0
	Drives     []int          `json:"drives,omitempty"`
	Nodes      map[string]int `json:"nodes"` // total, and per NodeState
	Items      map[string]int `json:"items"` // per ItemStatus
	Pools      []PoolState    `json:"pools"`
	Gate       GateView       `json:"gate"`
	Usage      UsageView      `json:"usage"`
	Budget     *BudgetView    `json:"budget,omitempty"`   // nil until the run is open
	Unproven   []Unproven     `json:"unproven,omitempty"` // what keeps the run pausing: nothing proves that it has ended
	Friction   []Friction     `json:"friction,omitempty"`
	Events     []Event        `json:"events,omitempty"` // the last few, oldest first
	StartedAt  time.Time      `json:"started_at"`
	ClosedAt   *time.Time     `json:"closed_at,omitempty"`
	Report     *Artifact      `json:"report,omitempty"`

	Publication *PublicationView `json:"publication,omitempty"` // of a plan with a closing action, once the run closes

	Refs []string `json:"refs,omitempty"` // refs that the run keeps in the hub, the first 200; the report has all
}

// GateView is the gate's state in a status.
type GateView struct {
	Kind    string `json:"kind,omitempty"`    // executed | disabled
	Verdict string `json:"verdict,omitempty"` // green | red | flaky | running
	Detail  string `json:"detail,omitempty"`
	// Attributions are what red gates were attributed to, oldest first.
	Attributions []GateAttribution `json:"attributions,omitempty"`
}

// UsageView is the usage of a run in a status.
type UsageView struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Uncertain    int64   `json:"uncertain"` // tokens charged without a usable report
}

// BudgetView is a run's budget in a status.
type BudgetView struct {
	Cap       Amount             `json:"cap"`      // 0: no cap
	Settled   Amount             `json:"settled"`  // told by attempts, or reconciled
	Reserved  Amount             `json:"reserved"` // leased to drives and not charged yet
	Uncertain Amount             `json:"uncertain"`
	Attempts  []UncertainAttempt `json:"attempts,omitempty"` // the first of the uncertain ones
	More      int                `json:"more,omitempty"`     // uncertain ones beyond those listed
}

// Amount is an amount of both things that a budget caps.
type Amount struct {
	Tokens    int64 `json:"tokens"`
	USDMicros int64 `json:"usd_micros"` // millionths of a dollar
}

// UncertainAttempt was charged at its reservation because it told no usable usage.
type UncertainAttempt struct {
	Attempt string `json:"attempt"` // NODE/K
	Amount
}

// Event is one line of what happened last.
type Event struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// NodesQuery asks for rows of the node table from Offset, at most Limit.
type NodesQuery struct {
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// Operator is the payload of an operator command: lenient, additive.
type Operator struct {
	RequestID string    `json:"request_id,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Finish    bool      `json:"finish,omitempty"` // pause: let running attempts end
	Force     bool      `json:"force,omitempty"`  // quiesce: give up what does not end
	Now       bool      `json:"now,omitempty"`    // resume: end a quota wait; reopen: try the pauses only
	Budget    int64     `json:"budget,omitempty"` // resume: new token cap
	Tokens    *int64    `json:"tokens,omitempty"` // budget: new cap, 0: none; reconcile: what was used
	USDMicros *int64    `json:"usd_micros,omitempty"`
	Attempt   string    `json:"attempt,omitempty"` // reconcile: NODE/K; empty: all that is uncertain
	How       string    `json:"how,omitempty"`     // recover: continue | clean | abandon
	Pool      string    `json:"pool,omitempty"`    // reopen
	Model     string    `json:"model,omitempty"`
	Pools     []Pool    `json:"pools,omitempty"`  // pools: the new composition
	Node      string    `json:"node,omitempty"`   // node-claim, -accept, -release
	Claim     string    `json:"claim,omitempty"`  // node-claim: id of the claim; an open one of the id is renewed
	Host      string    `json:"host,omitempty"`   // node-claim: where the tree is wanted
	Result    *Artifact `json:"result,omitempty"` // node-accept: the result file

	Item   string `json:"item,omitempty"`   // triage, answer: finding; triage also node, or all
	Action string `json:"action,omitempty"` // triage: retry, ignore, halt; answer: clarified, reject, defer
	Text   string `json:"text,omitempty"`   // answer: what the worker is told; otherwise a reason
	Run    string `json:"run,omitempty"`    // triage, answer: refused by any other run; empty: not checked
	Asked  int    `json:"asked,omitempty"`  // triage, answer: attempt whose answer is meant; refused when a later one said something else; 0: not checked
}

// OperatorAnswer says what a command did.
type OperatorAnswer struct {
	Status RunStatus `json:"status,omitempty"`
	Done   []string  `json:"done,omitempty"`
	Holds  []Hold    `json:"holds,omitempty"` // what still holds the run
	Claim  *ClaimRow `json:"claim,omitempty"` // node-claim, -accept, -release: the claim, declined when nothing was done
}
