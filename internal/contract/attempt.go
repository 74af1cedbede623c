package contract

import "time"

// Artifact refers to a blob in the artifact store. Histories hold these, never the contents.
type Artifact struct {
	URI    string `json:"uri"` // key inside the deployment's store
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Tail   string `json:"tail,omitempty"` // at most 4 KiB
}

// Usage is what an attempt used. Known false means that the program told
// nothing usable: the reservation is then charged in full.
type Usage struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	USDMicros    int64 `json:"usd_micros,omitempty"` // millionths of a dollar
	Known        bool  `json:"known,omitempty"`
}

// Limit is what a finished launch said about its provider's limits.
type Limit struct {
	ResetAt   *time.Time `json:"reset_at,omitempty"`   // absolute, as stated
	ReopensAt *time.Time `json:"reopens_at,omitempty"` // when we try again: reset + margin + jitter
	Scope     string     `json:"scope,omitempty"`      // account | model | none
	Hard      bool       `json:"hard,omitempty"`
	Rule      string     `json:"rule,omitempty"`     // which rule of the classifier decided
	Evidence  string     `json:"evidence,omitempty"` // scrubbed, at most 2000 characters
}

// ItemResult is what an attempt did for one finding.
type ItemResult struct {
	Finding  string     `json:"finding"`
	Status   ItemStatus `json:"status"`
	Reason   string     `json:"reason,omitempty"`   // at most 500 characters
	Question string     `json:"question,omitempty"` // at most 1000 characters
	Omitted  bool       `json:"omitted,omitempty"`  // the worker's result left it out
}

// Charged counts the charged attempts of a node per cause, in its current opening and over the whole run.
type Charged struct {
	Work     int `json:"work,omitempty"`
	Conflict int `json:"conflict,omitempty"`
	Provider int `json:"provider,omitempty"`
	Host     int `json:"host,omitempty"`
}

// Kept names a worktree that an earlier attempt left for continuation.
type Kept struct {
	Attempt int    `json:"attempt"`
	Host    string `json:"host"`
	Pool    string `json:"pool"`
	Session string `json:"session,omitempty"`
	Step    string `json:"step,omitempty"`  // where the attempt stopped
	Head    string `json:"head,omitempty"`  // facts that a resume checks
	Facts   string `json:"facts,omitempty"` // digest of the tree's status
}

// Admission hands a node to a drive of a level.
type Admission struct {
	Node        string   `json:"node"`
	Opening     int      `json:"opening"`
	NextAttempt int      `json:"next_attempt"` // first unused attempt number of the node in this run
	Tier        string   `json:"tier,omitempty"`
	Tokens      int      `json:"tokens,omitempty"`   // estimate of prompt and files
	Findings    []string `json:"findings,omitempty"` // open ones; empty: all of the node
	Charged     Charged  `json:"charged,omitzero"`
	Refused     []string `json:"refused,omitempty"` // pools that refused the node for its size
	FirstPool   string   `json:"first_pool,omitempty"`
	Limited     []Streak `json:"limited,omitempty"` // consecutive limits of this node per pool
	Kept        *Kept    `json:"kept,omitempty"`
	Tail        string   `json:"tail,omitempty"`    // tail of the last failure, at most 2 KiB
	Salvage     string   `json:"salvage,omitempty"` // salvage ref of the last failure
	// Clarified are operators' answers about the open findings.
	Clarified []Clarification `json:"clarified,omitempty"`
}

// Streak counts the consecutive limits of a node on a pool, and how many
// attempts of other nodes succeeded there since it began.
type Streak struct {
	Pool      string `json:"pool"`
	Count     int    `json:"count"`
	Successes int    `json:"successes"`
}

// NodeInput starts one attempt.
type NodeInput struct {
	Run     string   `json:"run"`
	Drive   int      `json:"drive"`
	Config  Artifact `json:"config"` // the run's RunConfig
	Node    string   `json:"node"`
	Opening int      `json:"opening"`
	Attempt int      `json:"attempt"`
	Pool    string   `json:"pool"`
	// Definition is the pool as it was when the attempt was granted; nil: as the run's configuration has it.
	Definition *Pool    `json:"definition,omitempty"`
	Findings   []string `json:"findings,omitempty"`
	Kept       *Kept    `json:"kept,omitempty"`
	Tail       string   `json:"tail,omitempty"`
	Salvage    string   `json:"salvage,omitempty"`
	Tokens     int      `json:"tokens,omitempty"` // cap handed to the program; 0: none
	Limits     Limits   `json:"limits"`
	// Clarified are operators' answers about the findings, for the prompt.
	Clarified []Clarification `json:"clarified,omitempty"`
	// Capped: an attempt of the node ended at our own cap before; the next is charged for that.
	Capped bool `json:"capped,omitempty"`
	// Claim is set when somebody works on the node instead of a program.
	Claim *Claim `json:"claim,omitempty"`
}

// Limits bounds the activities of an attempt, in minutes (from the plan's policy).
type Limits struct {
	Worker int `json:"worker"` // setup and worker
	Land   int `json:"land"`   // verification and landing
}

// AttemptResult is how one attempt ended. It travels Node → Level → Remediation.
type AttemptResult struct {
	Node       string       `json:"node"`
	Opening    int          `json:"opening"`
	Attempt    int          `json:"attempt"`
	Pool       string       `json:"pool,omitempty"`
	Host       string       `json:"host,omitempty"`
	Outcome    Outcome      `json:"outcome"`
	Cause      Cause        `json:"cause,omitempty"`
	Reason     string       `json:"reason,omitempty"` // one line, at most 500 characters
	State      NodeState    `json:"state,omitempty"`  // of a success: landed, partial, no_change; of none resolved: blocked
	Items      []ItemResult `json:"items,omitempty"`
	Commit     string       `json:"commit,omitempty"`
	VerifiedOn string       `json:"verified_on,omitempty"`
	LandedOn   string       `json:"landed_on,omitempty"`
	Unverified bool         `json:"unverified,omitempty"` // the node has no verify commands
	Delivered  bool         `json:"delivered,omitempty"`  // the worker ended with something to judge
	Paths      []string     `json:"paths,omitempty"`      // changed paths, at most 20
	Salvage    string       `json:"salvage,omitempty"`
	Kept       *Kept        `json:"kept,omitempty"`
	Limit      *Limit       `json:"limit,omitempty"`
	Windows    []Window     `json:"windows,omitempty"`
	Usage      Usage        `json:"usage,omitzero"`
	Log        *Artifact    `json:"log,omitempty"`
	Tail       string       `json:"tail,omitempty"` // of a failure, for the next attempt's prompt, at most 2 KiB
	StartedAt  time.Time    `json:"started_at,omitzero"`
	EndedAt    time.Time    `json:"ended_at,omitzero"`
	Friction   []Friction   `json:"friction,omitempty"`
	// Recovery says that the run must be recovered before anything goes on (control.md): branch_moved.
	Recovery string `json:"recovery,omitempty"`
	// Unserved: nobody took the attempt from its pool's queue; it never began.
	Unserved bool `json:"unserved,omitempty"`
	// Stopping: the host was being stopped; the tree that it kept is best continued there, in a moment.
	Stopping bool `json:"stopping,omitempty"`
	// Unproven is what of the attempt may still be alive; nil: nothing.
	Unproven *Unproven `json:"unproven,omitempty"`
}
