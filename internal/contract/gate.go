package contract

// GateRound is one gate of a run and what followed from it; the report shows all.
type GateRound struct {
	Purpose     string           `json:"purpose"` // phase | final
	Round       int              `json:"round"`   // counts the gates of the run from 1
	End         GateEnd          `json:"end"`     // without tail and friction: the stored result has them
	Attribution *GateAttribution `json:"attribution,omitempty"`
}

// GateAttribution is what a red gate was attributed to and what was done about it.
type GateAttribution struct {
	Verdict  string   `json:"verdict"`            // culprit | interaction | unattributable
	Culprit  string   `json:"culprit,omitempty"`  // the node that was taken back; of an interaction the later one
	Partner  string   `json:"partner,omitempty"`  // of an interaction the earlier one
	Runs     int      `json:"runs"`               // runs of the failing command that the search took
	Reverted []string `json:"reverted,omitempty"` // nodes whose commits were taken back, the first 20
	Commit   string   `json:"commit,omitempty"`   // the commit that takes them back
	Detail   string   `json:"detail,omitempty"`   // one line: what followed, and why
}

// SuspectsInput asks for a page of the commits that may have turned a gate red:
// those that landed after the last green gate and hold at the red one's truth.
type SuspectsInput struct {
	Run    string   `json:"run"`
	Config Artifact `json:"config"`
	Green  string   `json:"green,omitempty"` // truth of the last green gate; empty: the run's base
	Truth  string   `json:"truth"`           // truth of the red gate
	Offset int      `json:"offset"`
}

// SuspectsResult is one page, at most 300 commits; Next is 0 after the last.
type SuspectsResult struct {
	Commits []Suspect `json:"commits"` // in the order of landing
	Next    int       `json:"next,omitempty"`
}

// Suspect is a landed commit.
type Suspect struct {
	Node   string `json:"node"`
	Commit string `json:"commit"`
}

// TrialInput runs the failing command of a red gate on the last green truth with
// some of the suspects on it.
type TrialInput struct {
	Run      string   `json:"run"`
	Config   Artifact `json:"config"`
	Gate     Artifact `json:"gate"` // full result of the red gate
	Green    string   `json:"green,omitempty"`
	Truth    string   `json:"truth"`
	Commits  []int    `json:"commits"`          // positions of suspects, ascending
	Prefix   bool     `json:"prefix,omitempty"` // they are the first ones in the order of landing
	Baseline string   `json:"baseline,omitempty"`
	Base     *GateEnd `json:"base,omitempty"`
	Round    int      `json:"round"`  // of the red gate
	Number   int      `json:"number"` // counts the trials of its search from 1
}

// TrialEnd is what the failing command said.
type TrialEnd struct {
	Result  string    `json:"result"`           // green | red | unmerged
	Cached  bool      `json:"cached,omitempty"` // the command had run on this tree before
	Tree    string    `json:"tree,omitempty"`
	Seconds int       `json:"seconds,omitempty"`
	Log     *Artifact `json:"log,omitempty"`
}

// RevertInput takes a culprit and what stands on it back from the truth.
type RevertInput struct {
	Run     string   `json:"run"`
	Config  Artifact `json:"config"`
	Truth   string   `json:"truth"` // of the red gate: what the decision was made on
	Culprit string   `json:"culprit"`
	Why     string   `json:"why"` // one line for the commit
}

// RevertEnd says what was taken back. Refused says why nothing was; then the truth did not change.
type RevertEnd struct {
	Commit  string   `json:"commit,omitempty"`
	Nodes   []string `json:"nodes,omitempty"` // in the order of landing, each once
	Refused string   `json:"refused,omitempty"`
}

// ReverifyInput asks whether a node's blocked findings are repaired on the truth after all.
type ReverifyInput struct {
	Run      string   `json:"run"`
	Config   Artifact `json:"config"`
	Node     string   `json:"node"`
	Findings []string `json:"findings"`
}

// ReverifyEnd names the findings that are: the node's commands are green on the
// truth, one of them was red on the run's base, and the finding's files exist.
type ReverifyEnd struct {
	Truth    string   `json:"truth"`
	Resolved []string `json:"resolved,omitempty"`
	Reason   string   `json:"reason,omitempty"` // why none is, or what proves it
}
