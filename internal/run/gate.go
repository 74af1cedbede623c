package run

import (
	"fmt"
	"slices"

	"mendflow/internal/plan"
)

// Bounds of a run's gates (gate-and-close.md); phase gates and the final gate share them.
const (
	MaxAttributions = 5
	MaxReblocks     = 2
)

// GateKind says what a gate's verdict rests on.
type GateKind string

// Kinds of gates.
const (
	GateExecuted GateKind = "executed" // commands ran; the cached baseline counts where nothing landed
	GateDisabled GateKind = "disabled" // the plan says commands: none
)

// GateVerdict is what a gate said.
type GateVerdict string

// Verdicts of a gate.
const (
	GateGreen GateVerdict = "green"
	GateRed   GateVerdict = "red"
	GateFlaky GateVerdict = "flaky" // red, then green on the same tree: counts as green
	GateNone  GateVerdict = "disabled"
)

// Passed reports whether the run may go on.
func (v GateVerdict) Passed() bool { return v != GateRed }

// Gate is where a run stands with its gates. The zero value is a run that has
// not been gated. It is carried as it is.
type Gate struct {
	Kind         GateKind    `json:"kind,omitempty"`
	Verdict      GateVerdict `json:"verdict,omitempty"`
	LastGreen    string      `json:"last_green,omitempty"` // truth of the last green gate; empty: the base
	Attributions int         `json:"attributions,omitempty"`
	Reblocks     int         `json:"reblocks,omitempty"`
	Culprits     []string    `json:"culprits,omitempty"` // nodes that were named once
	Ended        string      `json:"ended,omitempty"`    // why no gate runs again in this run
}

// GateStep is what a run does next about its gate.
type GateStep string

// Steps after a gate or an attribution.
const (
	GateProceed   GateStep = "proceed"   // go on: open the next phase, or close
	GateAttribute GateStep = "attribute" // search for the landed node that did it
	GateReopen    GateStep = "reopen"    // revert the culprit and its dependants, re-open them, drive on
	GateReject    GateStep = "reject"    // revert them again, block the culprit: it had its second try
	GateReblock   GateStep = "reblock"   // re-open everything that is not skipped, drive on
	GateHold      GateStep = "hold"      // wait for the operator
	GateEnd       GateStep = "end"       // block everything that is not skipped, close as blocked
)

// MayRun reports whether a gate may still run in this run.
func (g *Gate) MayRun() bool { return g.Ended == "" }

// Record takes a gate's verdict on a truth and says what follows. A red gate is
// attributed while the bounds last, re-blocked otherwise; once the re-blocks are
// used up a red gate ends the run. A green in between resets no count.
func (g *Gate) Record(kind GateKind, verdict GateVerdict, truth string, onRed plan.OnRed) GateStep {
	g.Kind, g.Verdict = kind, verdict
	if verdict.Passed() {
		g.LastGreen = truth
		return GateProceed
	}
	switch {
	case onRed == plan.OnRedPause:
		return GateHold
	case g.Reblocks >= MaxReblocks:
		return g.end()
	case onRed == plan.OnRedReblock || g.Attributions >= MaxAttributions:
		return g.reblock()
	}
	g.Attributions++
	return GateAttribute
}

// Attributed takes what the search found and says what follows. revertible is
// false when reverting the culprit conflicts or takes too much with it, which
// makes the search's answer useless (Reverts).
func (g *Gate) Attributed(a Attribution, revertible bool) GateStep {
	if a.Verdict == Unattributable || !revertible {
		return g.reblock()
	}
	if slices.Contains(g.Culprits, a.Culprit) {
		return GateReject
	}
	g.Culprits = append(g.Culprits, a.Culprit)
	return GateReopen
}

func (g *Gate) reblock() GateStep {
	if g.Reblocks >= MaxReblocks {
		return g.end()
	}
	g.Reblocks++
	return GateReblock
}

func (g *Gate) end() GateStep {
	g.Ended = fmt.Sprintf("the gate is red after everything was opened again %d times", g.Reblocks)
	return GateEnd
}
