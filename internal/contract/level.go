package contract

import "time"

// LevelInput starts one drive of a level.
type LevelInput struct {
	Run    string   `json:"run"`
	Drive  int      `json:"drive"`
	Depth  int      `json:"depth"`
	Config Artifact `json:"config"`
	Pools  []Pool   `json:"pools"`
	// Recomposed: Pools are not what Config says; attempts carry their pool's definition.
	Recomposed bool        `json:"recomposed,omitempty"`
	Policy     LevelPolicy `json:"policy"`
	Settled    []string    `json:"settled_pools,omitempty"` // pools settled for this run already
	Used       []string    `json:"used_pools,omitempty"`    // pools that had a success in this run: not ramped
	Nodes      []Admission `json:"nodes,omitempty"`
	Sealed     bool        `json:"sealed,omitempty"` // no node follows these
	Priority   int         `json:"priority,omitempty"`
	Lease      *Lease      `json:"lease,omitempty"` // nil: the run has no budget
	// Attended: nodes go to host pools by claims only. The drive's workflow sets it.
	Attended bool `json:"-"`
}

// Lease is what a drive may spend in all since its start; nil fields are not capped.
type Lease struct {
	Tokens    *int64 `json:"tokens,omitempty"`
	USDMicros *int64 `json:"usd_micros,omitempty"` // millionths of a dollar
}

// LevelPolicy is the part of a plan's policy that dispatch needs.
type LevelPolicy struct {
	Spill         string `json:"spill"`
	AttemptTokens int    `json:"attempt_tokens,omitempty"`
	Limits        Limits `json:"limits"`
}

// DriveOrder is a message of the run to a drive. Seq counts them from 1, so
// that a repeated one does no harm and a drained report says which it had seen.
type DriveOrder struct {
	Seq   int         `json:"seq"`
	Nodes []Admission `json:"nodes,omitempty"` // admit these
	Seal  bool        `json:"seal,omitempty"`  // none will follow
	Stop  StopMode    `json:"stop,omitempty"`  // end early: what does not settle comes back stranded as held
	Pools []Pool      `json:"pools,omitempty"` // the new composition
	Lease *Lease      `json:"lease,omitempty"` // the new limit
	// Claims are given nodes, or withdrawn.
	Claims []ClaimOrder `json:"claims,omitempty"`
}

// StopMode says how running attempts end.
type StopMode string

// Stop modes.
const (
	StopInterrupt StopMode = "interrupt" // programs are stopped, work is kept
	StopFinish    StopMode = "finish"    // running attempts go to their end, nothing starts or is retried
	StopCancel    StopMode = "cancel"    // as interrupt, and nothing is kept for continuation
)

// Settlement reports a node that needs no further attempt in this drive.
type Settlement struct {
	Node        string          `json:"node"`
	Opening     int             `json:"opening"`
	State       NodeState       `json:"state"` // landed, partial, no_change, blocked
	Reason      string          `json:"reason,omitempty"`
	NextAttempt int             `json:"next_attempt"`
	Charged     Charged         `json:"charged,omitzero"`
	Attempts    []AttemptResult `json:"attempts"` // those of this drive, oldest first
}

// Stranding returns a node that no pool can take now.
type Stranding struct {
	Node        string          `json:"node"`
	Opening     int             `json:"opening"`
	Cause       StrandCause     `json:"cause"`
	NotBefore   *time.Time      `json:"not_before,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	NextAttempt int             `json:"next_attempt"`
	Charged     Charged         `json:"charged,omitzero"`
	Refused     []string        `json:"refused,omitempty"`
	FirstPool   string          `json:"first_pool,omitempty"`
	Limited     []Streak        `json:"limited,omitempty"`
	Kept        *Kept           `json:"kept,omitempty"`
	Tail        string          `json:"tail,omitempty"`
	Salvage     string          `json:"salvage,omitempty"`
	Attempts    []AttemptResult `json:"attempts,omitempty"`
	Passed      []PoolReason    `json:"passed,omitempty"` // why each pool did not take it
}

// PoolReason says why a pool was passed over for a node.
type PoolReason struct {
	Pool   string `json:"pool"`
	Reason string `json:"reason"`
}

// DriveReport says what happened in a drive since its last report. Seq counts a
// drive's reports from 1; Orders is the Seq of the last order it had seen: a
// drained report that missed one is not the last.
type DriveReport struct {
	Drive    int           `json:"drive"`
	Seq      int           `json:"seq"`
	Orders   int           `json:"orders"`
	Settled  []Settlement  `json:"settled,omitempty"`
	Stranded []Stranding   `json:"stranded,omitempty"`
	Friction []Friction    `json:"friction,omitempty"`
	Pools    []PoolState   `json:"pools,omitempty"`  // changed ones
	Claims   []ClaimReport `json:"claims,omitempty"` // changed ones
	Drained  bool          `json:"drained,omitempty"`
}

// PoolState is what is known about a pool.
type PoolState struct {
	ID      string     `json:"id"`
	Account string     `json:"account,omitempty"`
	Model   string     `json:"model,omitempty"`
	State   string     `json:"state"` // live | ramping | paused | away | exhausted | settled | excluded
	Reason  string     `json:"reason,omitempty"`
	Until   *time.Time `json:"until,omitempty"`
	Running int        `json:"running"`
	Max     int        `json:"max"`
	Used    bool       `json:"used,omitempty"` // had a success in this run
}

// LevelStatus answers the status query of a drive.
type LevelStatus struct {
	Drive   int           `json:"drive"`
	Depth   int           `json:"depth"`
	Sealed  bool          `json:"sealed"`
	Running []RunningNode `json:"running,omitempty"`
	Waiting []string      `json:"waiting,omitempty"`
	Pools   []PoolState   `json:"pools,omitempty"`
}

// RunningNode is an attempt under way.
type RunningNode struct {
	Node      string    `json:"node"`
	Attempt   int       `json:"attempt"`
	Pool      string    `json:"pool"`
	StartedAt time.Time `json:"started_at"`
}
