package contract

import "time"

// Ways to recover a run.
const (
	RecoverContinue = "continue" // the facts are right again
	RecoverClean    = "clean"    // the run puts right what it can, and nodes start clean
	RecoverAbandon  = "abandon"  // the run ends
)

// Recovery reasons: the facts do not match what the run left (control.md).
const (
	RecoveryBranchMoved = "branch_moved" // somebody else wrote to the truth
	RecoveryHostLost    = "host_lost"    // nothing proves that what ran on a host has ended
)

// Unproven is something of a run of which nothing proves that it has ended: its
// host stopped answering, or could not end it.
type Unproven struct {
	Host    string    `json:"host"`           // empty: it did not say where it was
	Node    string    `json:"node,omitempty"` // empty: a gate
	Attempt int       `json:"attempt,omitempty"`
	Since   time.Time `json:"since"`
	Why     string    `json:"why,omitempty"`
}

// QuietInput asks a host to end what is left of an attempt, or of the run's
// gates where no node is named, and to answer when nothing of it is alive.
type QuietInput struct {
	Run     string `json:"run"`
	Node    string `json:"node,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// RestoreInput puts the truth of a run back to what the run itself landed.
type RestoreInput struct {
	Run    string   `json:"run"`
	Config Artifact `json:"config"`
	Known  []string `json:"known,omitempty"` // commits that the run remembers as its own
}

// RestoreEnd says where the truth is now, and where what was on it is kept.
type RestoreEnd struct {
	Truth string `json:"truth"`
	Kept  string `json:"kept,omitempty"`
}
