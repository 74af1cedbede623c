// Package plan is the model of a plan: findings grouped into nodes with write
// scopes, dependencies and verification. Everything that can be said about a plan
// without running it is said here:
//
//   - Parse reads a plan file strictly, applies the defaults and reports all faults
//     at once, each with its place; Schema describes the file for editors.
//   - Facts are what a caller found in a repository; ValidateAgainst checks a plan
//     against them (missing files, no gate, files that only a sibling makes).
//   - Select filters by intent and gives every finding its disposition. A node of
//     which nothing is left disappears, and its dependants keep the order that went
//     through it.
//   - Depths, Levels and Cycles are the dependency graph, with phases as barriers.
//   - Scope compares globs: conservatively, so that two nodes which might share a
//     path never run at once, and independently of case and Unicode normal form
//     where the file system is.
//   - Skeleton is the plan as workflows carry it, one Unit per node, in pages.
//   - Show is the overview for people, as a value and as text.
//
// It is pure: it reads bytes and values that callers hand in. It knows neither
// git nor Temporal, opens no file and has no clock.
package plan

import "time"

// Version is the only plan version that this build reads and writes.
const Version = 1

// Plan is one remediation plan, normalised: defaults applied, one node at
// least per finding, ids unique ignoring case. Its JSON form is the stored plan.
type Plan struct {
	Version        int            `json:"version"`
	ID             string         `json:"id"`
	Goal           string         `json:"goal,omitempty"`
	Base           string         `json:"base,omitempty"` // any revision; empty: the hub's default branch
	Findings       []Finding      `json:"findings"`
	Nodes          []Node         `json:"nodes"`
	Setup          []Command      `json:"setup,omitempty"`
	Env            []string       `json:"env,omitempty"` // names passed through to setup, verify and gate
	Git            Git            `json:"git"`
	Link           []string       `json:"link,omitempty"`
	Keep           []string       `json:"keep,omitempty"`
	Gate           Gate           `json:"gate"`
	Intent         Intent         `json:"intent"`
	AllowProtected bool           `json:"allow_protected,omitempty"`
	Policy         Policy         `json:"policy"`
	Budget         Budget         `json:"budget"`
	Close          Close          `json:"close"`
	Notify         []Notification `json:"notify,omitempty"`
}

// Severity orders findings; its zero value is not a severity.
type Severity string

// Severities, worst first.
const (
	SeverityCritical Severity = "critical"
	SeverityHigh     Severity = "high"
	SeverityMedium   Severity = "medium"
	SeverityLow      Severity = "low"
	SeverityInfo     Severity = "info"
)

// Confidence says how sure the audit was.
type Confidence string

// Confidences, surest first.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Lens is the view under which a finding was made.
type Lens string

// Finding is one thing to repair.
type Finding struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Severity   Severity   `json:"severity"`
	Lens       Lens       `json:"lens,omitempty"`
	Confidence Confidence `json:"confidence,omitempty"`
	Package    string     `json:"package,omitempty"` // for filters; default: first folder of the first file
	Themes     []string   `json:"themes,omitempty"`
	Files      []Location `json:"files,omitempty"`
	Summary    string     `json:"summary,omitempty"`
	Evidence   []string   `json:"evidence,omitempty"`
	Folded     []string   `json:"folded,omitempty"` // ids of duplicates that an importer folded into this one
}

// Location is a place in the repository; lines are one-based, 0 means the whole file.
type Location struct {
	Path      string `json:"path"`
	LineStart int    `json:"line_start,omitempty"`
	LineEnd   int    `json:"line_end,omitempty"`
}

// Tier is the class of worker that a node asks for.
type Tier string

// Tiers, lowest first.
const (
	TierSmall    Tier = "small"
	TierStandard Tier = "standard"
	TierDeep     Tier = "deep"
)

// Rank orders tiers: small 0, standard 1, deep 2; unknown tiers rank as standard.
func (t Tier) Rank() int {
	switch t {
	case TierSmall:
		return 0
	case TierDeep:
		return 2
	default:
		return 1
	}
}

// Node is a unit of work for one worker.
type Node struct {
	ID             string    `json:"id"`
	Findings       []string  `json:"findings"`
	DependsOn      []string  `json:"depends_on,omitempty"`
	Write          []string  `json:"write,omitempty"` // globs from the repository root; empty: exclusive
	Read           []string  `json:"read,omitempty"`
	Verify         []Command `json:"verify,omitempty"`
	Tier           Tier      `json:"tier,omitempty"`
	Phase          int       `json:"phase,omitempty"`
	SharedAppend   bool      `json:"shared_append,omitempty"`
	EstimateTokens int       `json:"estimate_tokens,omitempty"` // 0: estimated from the prompt and the files
	Instructions   string    `json:"instructions,omitempty"`
}

// Command is an argv, or a line for the shell; exactly one of the two is set.
// In files it is written as a list or as a string.
type Command struct {
	Argv  []string
	Shell string
}

// Git holds how the run talks git.
type Git struct {
	Author           string `json:"author"`
	UserConfig       bool   `json:"user_config,omitempty"`
	CredentialHelper string `json:"credential_helper,omitempty"`
	LFS              bool   `json:"lfs,omitempty"`
	Sign             bool   `json:"sign,omitempty"`
	Sparse           bool   `json:"sparse,omitempty"`
}

// Baseline says what a gate that is red at the base means.
type Baseline string

// Baseline policies.
const (
	BaselineRequire Baseline = "require"
	BaselineAccept  Baseline = "accept"
)

// OnRed says what a red gate does.
type OnRed string

// Answers to a red gate.
const (
	OnRedAttribute OnRed = "attribute"
	OnRedReblock   OnRed = "reblock"
	OnRedPause     OnRed = "pause"
)

// Gate is the final gate. Disabled is the explicit `commands: none`; no
// commands and not disabled means that they are discovered at the base.
type Gate struct {
	Commands []Command `json:"commands,omitempty"`
	Disabled bool      `json:"disabled,omitempty"`
	Baseline Baseline  `json:"baseline"`
	OnRed    OnRed     `json:"on_red"`
}

// Intent filters the findings; empty filters let everything pass.
type Intent struct {
	Severities   []Severity `json:"severities,omitempty"`
	Lenses       []Lens     `json:"lenses,omitempty"`
	Packages     []string   `json:"packages,omitempty"`
	Themes       []string   `json:"themes,omitempty"`
	Excluded     []string   `json:"excluded,omitempty"`
	MustNotTouch []string   `json:"must_not_touch,omitempty"`
}

// Landing says when a merged tree must be verified again.
type Landing string

// Landing policies.
const (
	LandingOptimistic Landing = "optimistic"
	LandingStrict     Landing = "strict"
)

// ScopePolicy says what happens to undeclared paths.
type ScopePolicy string

// Scope policies.
const (
	ScopeStrict ScopePolicy = "strict"
	ScopeWiden  ScopePolicy = "widen"
)

// Spill says which pools a node may use beyond its first choice.
type Spill string

// Spill policies.
const (
	SpillSameTier  Spill = "same_tier"
	SpillAllowPaid Spill = "allow_paid"
	SpillNever     Spill = "never"
)

// Policy holds the limits of the run. Minutes and tokens are whole numbers as
// written in the file; tokens 0 means no cap of the operator's.
type Policy struct {
	Landing        Landing     `json:"landing"`
	Scope          ScopePolicy `json:"scope"`
	Spill          Spill       `json:"spill"`
	AttemptMinutes int         `json:"attempt_minutes"`
	IdleMinutes    int         `json:"idle_minutes"`
	AttemptTokens  int         `json:"attempt_tokens,omitempty"`
	SetupMinutes   int         `json:"setup_minutes"`
	VerifyMinutes  int         `json:"verify_minutes"`
	GateMinutes    int         `json:"gate_minutes"`
	Unattended     bool        `json:"unattended,omitempty"`
	ResumeMargin   Duration    `json:"resume_margin"`
	ResumeJitter   Duration    `json:"resume_jitter"`
}

// Duration is written as Go duration text ("5s") in files and JSON.
type Duration time.Duration

// Budget caps a run; 0 means no cap. USDMicros are millionths of a dollar, so
// that no ordering ever depends on a float.
type Budget struct {
	Tokens    int64 `json:"tokens,omitempty"`
	USDMicros int64 `json:"usd_micros,omitempty"`
}

// CloseAction is what a green run does at its end.
type CloseAction string

// Closing actions.
const (
	CloseNone        CloseAction = "none"
	CloseMerge       CloseAction = "merge"
	ClosePush        CloseAction = "push"
	ClosePullRequest CloseAction = "pull-request"
)

// Forge is a service that has pull requests (merge requests on GitLab).
type Forge string

// Forges.
const (
	ForgeGitHub Forge = "github"
	ForgeGitLab Forge = "gitlab"
)

// Close is the closing action of a green run. Everything but the action has a
// default that is found where the run is: the hub, its remotes, the host's name.
type Close struct {
	Action CloseAction `json:"action"`
	// Into is the branch that is merged into, or that the pull request is for; empty: the branch that the base names.
	Into string `json:"into,omitempty"`
	// Remote is where the branch is pushed: a remote of the hub by name, a URL or a path; empty: a hub
	// by URL itself, the remote origin of a hub by path.
	Remote string `json:"remote,omitempty"`
	Branch string `json:"branch,omitempty"` // name of the pushed branch; empty: mendflow/<run>
	Forge  Forge  `json:"forge,omitempty"`  // empty: told by the remote's host
	// Project is owner/name, on GitLab with all groups; empty: the path of the remote's URL.
	Project  string `json:"project,omitempty"`
	API      string `json:"api,omitempty"`       // base URL of the forge's API; empty: the one of the remote's host
	TokenEnv string `json:"token_env,omitempty"` // variable of the worker that holds the token; empty: the forge's usual ones
	Title    string `json:"title,omitempty"`     // of the pull request; empty: the plan's goal
	Draft    bool   `json:"draft,omitempty"`
}

// NotifyOn is a state change that a notification tells.
type NotifyOn string

// State changes that can be notified.
const (
	NotifyStarted  NotifyOn = "started"
	NotifyPaused   NotifyOn = "paused"
	NotifyQuestion NotifyOn = "question"
	NotifyClosed   NotifyOn = "closed"
)

// Notification tells a state change by a command or a signed webhook.
type Notification struct {
	On        []NotifyOn `json:"on"`
	Command   *Command   `json:"command,omitempty"`
	Webhook   string     `json:"webhook,omitempty"`
	SecretEnv string     `json:"secret_env,omitempty"`
}
