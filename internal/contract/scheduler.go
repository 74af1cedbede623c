package contract

import "time"

// SchedulerMode says what a scheduler lets happen (control.md).
type SchedulerMode string

// Modes of a scheduler.
const (
	ModeEnabled  SchedulerMode = "enabled"
	ModeDraining SchedulerMode = "draining" // admits, starts and resumes nothing; what works goes to its end
	ModeDisabled SchedulerMode = "disabled" // what works is paused with the hold scheduler
)

// Decision is the answer of a scheduler to a submission.
type Decision string

// Decisions.
const (
	DecisionStarted   Decision = "started"
	DecisionQueued    Decision = "queued"
	DecisionDuplicate Decision = "duplicate" // the same run is open already
	DecisionDeferred  Decision = "deferred"  // nothing was stored: ask again later
	DecisionRejected  Decision = "rejected"
)

// Causes of a decision that is neither started nor queued.
const (
	DeferredQueueCapacity  = "queue_capacity"
	DeferredNotAccepting   = "not_accepting"
	RejectedInvalidPlan    = "invalid_plan"
	RejectedIDInUse        = "id_in_use"
	RejectedGenerationUsed = "generation_used"
)

// RecoveryRunVanished is the recovery reason for a run whose workflow was terminated or lost.
const RecoveryRunVanished = "run_vanished"

// Names of the scheduler on the wire.
const (
	WorkflowScheduler = "Scheduler"
	// SchedulerID is the workflow id of a deployment's scheduler.
	SchedulerID = "scheduler"
)

// Operator commands of a scheduler, each a signal and an update of the same
// name, beside cancel and budget.
const (
	CommandSubmit   = "submit"
	CommandEnable   = "enable"
	CommandDrain    = "drain"
	CommandDisable  = "disable"
	CommandHold     = "hold"
	CommandRelease  = "release"
	CommandPriority = "priority"
	CommandLimits   = "limits"
)

// Internal signals and queries of a scheduler.
const (
	SignalState = "state" // run → scheduler: state, want-slot, usage
	SignalSlot  = "slot"  // scheduler → run: slot, hold, release
	QueryRun    = "run"
	QueryRuns   = "runs"
)

// StateLoading is what a query is told right after a scheduler continued as new:
// its state is on its way, and asking again helps.
const StateLoading = "the scheduler's state is being loaded: ask again"

// SchedulerInput starts or continues a scheduler.
type SchedulerInput struct {
	Carried *Carried `json:"carried,omitempty"` // set by continue-as-new only
}

// Submission asks a scheduler to admit a run. Its input lies in the artifact
// store, so that a long queue stays small.
type Submission struct {
	RequestID  string `json:"request_id,omitempty"`
	By         string `json:"by,omitempty"`
	Plan       string `json:"plan"`           // plan id
	Repository string `json:"repository"`     // canonical hub
	Base       string `json:"base,omitempty"` // branch or commit that the run starts from; with Repository what two runs exclude each other on
	ID         string `json:"id,omitempty"`   // a name of the user's own instead of a generation
	// Generation is the first one that may be taken; 0: from the first one on.
	Generation int      `json:"generation,omitempty"`
	Run        string   `json:"run,omitempty"`   // the id that the input was stored for; empty: any
	Again      bool     `json:"again,omitempty"` // take the next generation that was not admitted yet
	Parallel   bool     `json:"parallel,omitempty"`
	Priority   int      `json:"priority,omitempty"` // lower goes first
	Input      Artifact `json:"input"`              // a StoredRun
}

// StoredRun is what an admitted run is started with.
type StoredRun struct {
	Input RemediationInput `json:"input"`
	Plan  string           `json:"plan"`
	Goal  string           `json:"goal,omitempty"`
	Nodes int              `json:"nodes"`
}

// Submitted answers a submission.
type Submitted struct {
	Decision Decision  `json:"decision"`
	Cause    string    `json:"cause,omitempty"` // of deferred and rejected
	Run      string    `json:"run,omitempty"`
	Status   RunStatus `json:"status,omitempty"` // of a duplicate
	Behind   string    `json:"behind,omitempty"` // of queued: the run that works on the same repository and base
	Position int       `json:"position,omitempty"`
	Reason   string    `json:"reason,omitempty"` // one line: why, and what to do
}

// SchedulerOrder is the payload of an operator's command to a scheduler: lenient, additive.
type SchedulerOrder struct {
	RequestID  string `json:"request_id,omitempty"`
	By         string `json:"by,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Run        string `json:"run,omitempty"`          // hold, release, cancel, priority
	Finish     bool   `json:"finish,omitempty"`       // drain: runs that wait in a hold finish too; hold: running attempts end first
	OnlyIfIdle bool   `json:"only_if_idle,omitempty"` // disable
	Now        bool   `json:"now,omitempty"`          // release: end a quota wait as well
	Priority   *int   `json:"priority,omitempty"`
	MaxRunning *int   `json:"max_running,omitempty"`
	MaxQueued  *int   `json:"max_queued,omitempty"`
	Tokens     *int64 `json:"tokens,omitempty"` // budget: new cap, 0: none
	USDMicros  *int64 `json:"usd_micros,omitempty"`
}

// SchedulerAnswer says what a command did.
type SchedulerAnswer struct {
	Mode      SchedulerMode `json:"mode"`
	ChangedAt time.Time     `json:"changed_at"`
	Done      []string      `json:"done,omitempty"`
	Refused   string        `json:"refused,omitempty"`    // why nothing was done
	InTheWay  []string      `json:"in_the_way,omitempty"` // runs that a refusal names
	Pausing   []string      `json:"pausing,omitempty"`    // runs that are being paused
	Running   []string      `json:"running,omitempty"`    // runs that a drain waits for
}

// SchedulerLimits bound what a scheduler lets run and wait.
type SchedulerLimits struct {
	MaxRunning int `json:"max_running"`
	MaxQueued  int `json:"max_queued"`
}

// SchedulerStatus answers the status query of a scheduler.
type SchedulerStatus struct {
	Mode      SchedulerMode     `json:"mode"`
	ChangedAt time.Time         `json:"changed_at"`
	By        string            `json:"by,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Finish    bool              `json:"finish,omitempty"`  // draining: runs in holds finish too
	Drained   bool              `json:"drained,omitempty"` // draining or disabled, and nothing works any more
	Limits    SchedulerLimits   `json:"limits"`
	Running   int               `json:"running"` // slots in use
	Queued    int               `json:"queued"`  // waiting for a slot, held in the queue included
	Held      int               `json:"held"`    // begun, paused, and asking for nothing
	Closed    int               `json:"closed"`
	Budget    *DeploymentBudget `json:"budget,omitempty"`
	Pages     []Artifact        `json:"pages,omitempty"` // closed runs that are not listed any more, oldest first
	Friction  []Friction        `json:"friction,omitempty"`
	Events    []Event           `json:"events,omitempty"` // the last few, oldest first
}

// DeploymentBudget is the budget of all runs of a scheduler.
type DeploymentBudget struct {
	Cap      Amount `json:"cap"` // 0: no cap
	Settled  Amount `json:"settled"`
	Reserved Amount `json:"reserved"` // leased to runs and not used yet
}

// SchedulerRun is a run as its scheduler sees it.
type SchedulerRun struct {
	Run         string     `json:"run"`
	Status      RunStatus  `json:"status"`
	Plan        string     `json:"plan"`
	Repository  string     `json:"repository"`
	Base        string     `json:"base,omitempty"`
	Generation  int        `json:"generation,omitempty"` // 0: a name of the user's own
	Priority    int        `json:"priority,omitempty"`
	Position    int        `json:"position,omitempty"` // in the queue, from 1
	Resumption  bool       `json:"resumption,omitempty"`
	Slot        bool       `json:"slot,omitempty"`
	Begun       bool       `json:"begun,omitempty"` // its workflow was started
	Behind      string     `json:"behind,omitempty"`
	Reason      string     `json:"reason,omitempty"` // why it waits, or how it closed
	Holds       []Hold     `json:"holds,omitempty"`
	By          string     `json:"by,omitempty"`
	Used        *Amount    `json:"used,omitempty"`
	SubmittedAt time.Time  `json:"submitted_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	ClosedAt    *time.Time `json:"closed_at,omitempty"`
}

// RunsQuery asks for the rows of a scheduler from Offset, at most Limit: open
// runs in the order of their arrival, then those that closed last, newest first.
type RunsQuery struct {
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// RunState is the message of a run to its scheduler: what it is, whether it
// wants a slot, what it has used. It is the whole state; Path alone tells what
// happened since the message before.
type RunState struct {
	Run       string      `json:"run"`
	Execution string      `json:"execution"` // run id of the workflow; another one counts anew
	Seq       int         `json:"seq"`
	Path      []RunStatus `json:"path"`             // statuses since the last message; the last one, never missing, is the present
	Orders    int         `json:"orders,omitempty"` // last SlotOrder that it took
	Grant     int         `json:"grant,omitempty"`  // last grant that it took
	Slot      bool        `json:"slot,omitempty"`   // it holds that grant's slot
	Want      bool        `json:"want,omitempty"`
	Holds     []Hold      `json:"holds,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Used      Amount      `json:"used,omitzero"`
	Need      Amount      `json:"need,omitzero"`  // what it would like to have leased beyond what it used
	Least     Amount      `json:"least,omitzero"` // what its dearest attempt reserves: with less it may have to wait
	// Set when the scheduler may not know the run: it was started anew.
	Plan       string `json:"plan,omitempty"`
	Repository string `json:"repository,omitempty"`
	Base       string `json:"base,omitempty"`
}

// SlotOrder is the message of a scheduler to a run: whether it has a slot,
// whether the scheduler holds it, what it may spend, and what operators told the
// scheduler to tell it. It is the whole state but for Commands.
type SlotOrder struct {
	Seq      int          `json:"seq"`
	Grant    int          `json:"grant"`           // counts the slots granted to the run; a higher one than before is a slot
	Hold     *Hold        `json:"hold,omitempty"`  // the scheduler's
	Lease    *Lease       `json:"lease,omitempty"` // in all since its start; nil: no cap
	Commands []RunCommand `json:"commands,omitempty"`
}

// RunCommand is an operator's command that a scheduler passes on.
type RunCommand struct {
	Name  string   `json:"name"`
	Order Operator `json:"order"`
}

// StartRunInput starts an admitted run.
type StartRunInput struct {
	Run       string   `json:"run"`
	Scheduler string   `json:"scheduler"` // workflow id
	Input     Artifact `json:"input"`
}
