package gate

import (
	"slices"
	"unicode/utf8"

	"mendflow/internal/contract"
)

// Kinds of a gate.
const (
	KindExecuted = "executed"
	KindDisabled = "disabled" // `gate: {commands: none}`
)

// Verdicts of a gate.
const (
	VerdictGreen    = "green"
	VerdictRed      = "red"
	VerdictFlaky    = "flaky" // green, and its first red was green on the same tree
	VerdictDisabled = "disabled"
)

// Status is how one command of a gate ended.
type Status string

// Statuses of a command.
const (
	StatusGreen    Status = "green"
	StatusRed      Status = "red"
	StatusFlaky    Status = "flaky"    // red, then green on the same tree
	StatusAccepted Status = "accepted" // red, and the base has all of its failures
	StatusSkipped  Status = "skipped"  // an earlier layer was red
)

// Result is a gate: what ran, and the verdict. It is the stored artifact; what travels through histories is End.
type Result struct {
	Kind     string          `json:"kind"`
	Verdict  string          `json:"verdict"`
	Commit   string          `json:"commit,omitempty"`
	Commands []CommandResult `json:"commands,omitempty"` // in the order of the request
	Residual []string        `json:"runtime_residual,omitempty"`
	Seconds  float64         `json:"seconds,omitempty"` // of all commands, re-runs included
}

// CommandResult is one command of a gate. All of it but Runs and Seconds tells about the last run.
type CommandResult struct {
	contract.GateCommand
	Status   Status             `json:"status"`
	ExitCode int                `json:"exit_code"`
	TimedOut bool               `json:"timed_out,omitempty"`
	Runs     int                `json:"runs,omitempty"` // 0 skipped, 2 run again
	Seconds  float64            `json:"seconds,omitempty"`
	Tail     string             `json:"tail,omitempty"` // at most TailRunes characters
	Log      *contract.Artifact `json:"log,omitempty"`
	FirstLog *contract.Artifact `json:"first_log,omitempty"` // of the first run, when there were two
	Failures                    // what failed, by id
	New      []string           `json:"new,omitempty"` // failures that the baseline lacks: why it is red
}

// Failures are the ids of what failed in a run of a command (package comment).
// Known false: the run says nothing that could be compared.
type Failures struct {
	Known bool     `json:"known,omitempty"`
	IDs   []string `json:"failures,omitempty"` // sorted
	// Blind are the places in which these failures hide others: a package by its
	// import path, or a folder with a slash at its end.
	Blind []string `json:"blind,omitempty"`
}

// Disabled is the result of a gate that the plan switched off.
func Disabled(commit string, residual []string) Result {
	return Result{Kind: KindDisabled, Verdict: VerdictDisabled, Commit: commit, Residual: slices.Clone(residual)}
}

// Failing returns the first red command; ok is false when there is none.
func (r Result) Failing() (CommandResult, bool) {
	return r.first(StatusRed)
}

func (r Result) first(status Status) (CommandResult, bool) {
	for _, c := range r.Commands {
		if c.Status == status {
			return c, true
		}
	}
	return CommandResult{}, false
}

// Limits of what travels through histories.
const (
	endTailBytes  = 2 << 10
	endDetailSize = 300
	endResiduals  = 20
)

// End is the bounded form of the result for the workflow; the caller adds the artifact.
func (r Result) End() contract.GateEnd {
	end := contract.GateEnd{
		Kind: r.Kind, Verdict: r.Verdict, Commit: r.Commit, Seconds: int(r.Seconds + 0.5),
		Residual: bounded(r.Residual, endResiduals),
	}
	if c, ok := r.Failing(); ok {
		end.Failing = clip(Name(c.GateCommand), endDetailSize)
		end.Detail = clip(c.Explain(), endDetailSize)
		end.Tail = lastBytes(c.Tail, endTailBytes)
	}
	for _, c := range r.Commands {
		if c.Status == StatusFlaky {
			end.Friction = append(end.Friction, contract.Friction{
				Type: contract.FrictionFlakyGate, Severity: "warning", Discriminator: clip(Name(c.GateCommand), 200),
				Note: clip(Name(c.GateCommand)+" was red and then green on the same commit "+r.Commit, 2000),
			})
		}
	}
	return end
}

// BaselineRed is the friction of a base that does not pass its own gate; ok is false for one that does.
func (r Result) BaselineRed() (friction contract.Friction, ok bool) {
	c, ok := r.Failing()
	if !ok {
		return contract.Friction{}, false
	}
	return contract.Friction{
		Type: contract.FrictionBaselineRed, Severity: "warning", Discriminator: r.Commit,
		Note: clip("on the base commit "+r.Commit+", "+c.Explain(), 2000),
	}, true
}

func bounded(list []string, limit int) []string {
	out := make([]string, 0, min(len(list), limit))
	for _, s := range list[:min(len(list), limit)] {
		out = append(out, clip(s, endDetailSize))
	}
	return out
}

// clip cuts a text to a number of bytes at a character, marking the cut.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// lastBytes keeps the end of a text, from a character on.
func lastBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	start := len(s) - limit
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}
