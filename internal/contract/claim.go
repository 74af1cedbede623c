package contract

import "time"

// Messages about nodes that people and attended agents work on. The operator
// commands are those of control.md; the others travel between our workflows.
const (
	CommandNodeClaim   = "node-claim"
	CommandNodeAccept  = "node-accept"
	CommandNodeRelease = "node-release"
	// SignalHandOver tells an attended attempt what its holder decided: run → node.
	SignalHandOver = "hand-over"
	// QueryClaims lists the claims of a run, open and closed.
	QueryClaims = "claims"
	// QueryDesk says where an attended attempt is worked on.
	QueryDesk = "desk"
)

// DefaultQuiet is how long a claim may be quiet when its pool does not say (option `quiet`).
const DefaultQuiet = 15 * time.Minute

// OptionQuiet is the option of host pools that bounds how long a claim may be quiet.
const OptionQuiet = "quiet"

// Claim asks for a node on behalf of a person or an attended agent.
type Claim struct {
	ID    string `json:"id"`
	Pool  string `json:"pool"`
	Node  string `json:"node,omitempty"` // empty: the next that waits
	Host  string `json:"host,omitempty"` // where the tree is wanted; empty: any host that serves the pool
	By    string `json:"by,omitempty"`
	Quiet int    `json:"quiet_seconds"` // without a sign of life for so long the claim is taken back
}

// ClaimOrder tells a drive to give a node to a claim, or that the claim is withdrawn.
type ClaimOrder struct {
	Claim
	Withdraw bool `json:"withdraw,omitempty"`
}

// ClaimState is where a claim stands.
type ClaimState string

// Claim states.
const (
	ClaimAsked    ClaimState = "asked"    // a drive looks for a node
	ClaimGiven    ClaimState = "given"    // its attempt runs
	ClaimDeclined ClaimState = "declined" // there was nothing to give
	ClaimEnded    ClaimState = "ended"    // its attempt is over
)

// Open reports whether the claim still wants or has a node.
func (s ClaimState) Open() bool { return s == ClaimAsked || s == ClaimGiven }

// ClaimReport says what became of a claim in a drive.
type ClaimReport struct {
	ID      string     `json:"id"`
	Node    string     `json:"node,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	State   ClaimState `json:"state"`
	Outcome Outcome    `json:"outcome,omitempty"`    // of an ended one
	Became  NodeState  `json:"node_state,omitempty"` // of a successful one: landed, partial, no_change, blocked
	Commit  string     `json:"commit,omitempty"`
	Salvage string     `json:"salvage,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

// ClaimRow is a claim as the run knows it; `starter node claim --json` prints it with its desk.
type ClaimRow struct {
	Claim              // Node is the given one as soon as there is one
	State   ClaimState `json:"state"`
	Since   time.Time  `json:"since"`
	Drive   int        `json:"drive,omitempty"` // that has the claim
	Tried   []int      `json:"tried,omitempty"` // drives that had nothing to give
	Attempt int        `json:"attempt,omitempty"`
	Outcome Outcome    `json:"outcome,omitempty"` // of an ended one
	Became  NodeState  `json:"node_state,omitempty"`
	Commit  string     `json:"commit,omitempty"`
	Salvage string     `json:"salvage,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

// HandOver is what the holder of an attended attempt decided.
type HandOver struct {
	Claim  string     `json:"claim"`
	Do     HandOverDo `json:"do"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Result *Artifact  `json:"result,omitempty"` // accept: the result file, when it is not in its place already
}

// HandOverDo is a decision about an attended attempt.
type HandOverDo string

// Decisions about an attended attempt.
const (
	HandOverAccept  HandOverDo = "accept"  // to be landed
	HandOverRelease HandOverDo = "release" // put aside; the node goes back
	HandOverRenew   HandOverDo = "renew"   // a sign of life
)

// Desk is where an attended attempt is worked on.
type Desk struct {
	Claim      string     `json:"claim"`
	By         string     `json:"by,omitempty"`
	Run        string     `json:"run"`
	Node       string     `json:"node"`
	Attempt    int        `json:"attempt"`
	Pool       string     `json:"pool"`
	Step       string     `json:"step"` // worker: being prepared; attended: at work; then landing, release
	Host       string     `json:"host,omitempty"`
	Worktree   string     `json:"worktree,omitempty"`
	PromptFile string     `json:"prompt_file,omitempty"`
	ResultFile string     `json:"result_file,omitempty"`
	Prompt     *Artifact  `json:"prompt,omitempty"`
	QuietUntil *time.Time `json:"quiet_until,omitempty"` // it is taken back then unless there is a sign of life
}

// HandOverInput ends the work of an attended attempt on its host.
type HandOverInput struct {
	NodeInput
	Result *Artifact `json:"result,omitempty"`
}

// SignOfLife is what a host sees of an attended attempt's tree.
type SignOfLife struct {
	LastChange time.Time `json:"last_change,omitzero"` // zero: none since the attempt began
}
