package gate

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Observation is one run of a command, as far as judging needs it.
type Observation struct {
	ExitCode int
	TimedOut bool
	Failures
}

// Green reports whether the run passed.
func (o Observation) Green() bool { return o.ExitCode == 0 && !o.TimedOut }

// Judgement is what a run means against its baseline.
type Judgement struct {
	Status   Status   // green, red or accepted
	New      []string // of a red with ids: what the base does not have
	Residual []string // of an accepted one: what could not be compared, and why
}

// Judge compares a run with the run of the same command at the base (nil: there
// is none, or the plan accepts no red base).
//
// Red at both, with ids on both sides: new ids are red, except where a failure of
// the base hid them, and without any the run is accepted. Ids at the base and none now is red, since
// then something else fails. Without ids at the base, or when the base ran out of
// time, nothing can be said: accepted, with a residual.
func Judge(now Observation, base *Observation) Judgement {
	switch {
	case now.Green():
		return Judgement{Status: StatusGreen}
	case base == nil || base.Green():
		return Judgement{Status: StatusRed, New: now.IDs}
	case base.TimedOut:
		return Judgement{Status: StatusAccepted, Residual: []string{"ran out of time at the base"}}
	case !base.Known:
		return Judgement{Status: StatusAccepted, Residual: []string{"red at the base, and its output cannot be compared"}}
	case now.TimedOut || !now.Known:
		return Judgement{Status: StatusRed}
	}
	var added, hidden []string
	for _, id := range subtract(now.IDs, base.IDs) {
		if scope := hides(base.Blind, id); scope != "" {
			hidden = append(hidden, scope+" cannot be compared: a failure at the base hid what it does")
			continue
		}
		added = append(added, id)
	}
	if len(added) > 0 {
		return Judgement{Status: StatusRed, New: added}
	}
	slices.Sort(hidden)
	return Judgement{Status: StatusAccepted, Residual: slices.Compact(hidden)}
}

// Recurs reports whether a run of the command on another tree shows what made the gate red. Another red
// is no answer to that: between two landings a tree may fail in ways that the next one mends. Without
// ids on both sides every red counts, and so does a failure that hides what the gate saw.
func (c CommandResult) Recurs(now CommandResult) bool {
	if now.Status != StatusRed {
		return false
	}
	if len(c.New) == 0 || !now.Known {
		return true
	}
	return slices.ContainsFunc(c.New, func(id string) bool {
		return slices.Contains(now.IDs, id) || hides(now.Blind, id) != ""
	})
}

// hides returns the blind place that an id lies in, or "".
func hides(blind []string, id string) string {
	where, _, _ := strings.Cut(id, ": ")
	for _, scope := range blind {
		if where == scope || path.Dir(where)+"/" == scope {
			return scope
		}
	}
	return ""
}

// subtract returns the sorted ids of a that b lacks.
func subtract(a, b []string) []string {
	known := make(map[string]bool, len(b))
	for _, id := range b {
		known[id] = true
	}
	out := slices.DeleteFunc(slices.Clone(a), func(id string) bool { return known[id] })
	slices.Sort(out)
	return slices.Compact(out)
}

// Explain says in one sentence how the command ended.
func (c CommandResult) Explain() string {
	name := Name(c.GateCommand)
	switch {
	case c.Status == StatusSkipped:
		return name + " did not run: an earlier layer is red"
	case c.Status == StatusGreen:
		return name + " is green"
	case c.Status == StatusFlaky:
		return name + " was red and then green on the same tree"
	case c.Status == StatusAccepted:
		return name + " has no failure that the base does not have"
	case c.TimedOut:
		return name + " ran out of time"
	case len(c.New) > 0:
		return fmt.Sprintf("%s fails (exit code %d): %s", name, c.ExitCode, enumerate(c.New, 3))
	}
	return fmt.Sprintf("%s fails (exit code %d)", name, c.ExitCode)
}

func enumerate(ids []string, limit int) string {
	if len(ids) <= limit {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:limit], ", "), len(ids)-limit)
}

// verdictOf folds the commands of a gate.
func verdictOf(commands []CommandResult) string {
	verdict := VerdictGreen
	for _, c := range commands {
		if c.Status == StatusRed || c.Status == StatusSkipped {
			return VerdictRed
		}
		if c.Status == StatusFlaky {
			verdict = VerdictFlaky
		}
	}
	return verdict
}
