package report

import (
	"fmt"
	"path"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

// verdict says in one sentence how the run stands.
func verdict(f Facts, m Model) Verdict {
	v := Verdict{Status: f.Status, Reason: f.Reason, Green: f.Status == contract.RunCompleted}
	last := m.lastGate()
	v.Ungated = v.Green && last != nil && last.Kind == gate.KindDisabled
	total := len(m.Items)
	repaired := count(m.Items, func(i Item) bool { return i.Status.VerifiedComplete() })
	skipped := count(m.Items, func(i Item) bool { return i.Status.Skip() })
	switch f.Status {
	case contract.RunCompleted:
		v.Sentence = fmt.Sprintf("%s; %s.", findingsDone(repaired, skipped, total), gatePhrase(last))
	case contract.RunBlocked:
		v.Sentence = fmt.Sprintf("%s of %s left; %s.", number(total-repaired-skipped), plural(total, "finding"), gatePhrase(last))
	case contract.RunFailed:
		v.Sentence = fmt.Sprintf("Mendflow could not go on; %s.", findingsDone(repaired, skipped, total))
	case contract.RunCancelled:
		v.Sentence = fmt.Sprintf("Cancelled; %s.", findingsDone(repaired, skipped, total))
	default:
		v.Sentence = fmt.Sprintf("Not closed yet (%s); %s.", f.Status, findingsDone(repaired, skipped, total))
	}
	v.Sentence = strings.ToUpper(v.Sentence[:1]) + v.Sentence[1:]
	return v
}

func findingsDone(repaired, skipped, total int) string {
	s := fmt.Sprintf("%d of %s repaired", repaired, plural(total, "finding"))
	if repaired == total && total > 0 {
		s = fmt.Sprintf("all %s repaired", plural(total, "finding"))
	}
	if skipped > 0 {
		s += fmt.Sprintf(", %d skipped by decision", skipped)
	}
	return s
}

func gatePhrase(g *Gate) string {
	switch {
	case g == nil:
		return "no gate has run"
	case g.Kind == gate.KindDisabled:
		return "the plan disables the gate"
	case g.Verdict == gate.VerdictFlaky:
		return "the gate is green, with a flaky command"
	}
	return "the gate is " + g.Verdict
}

func (m Model) lastGate() *Gate {
	if len(m.Gates) == 0 {
		return nil
	}
	return &m.Gates[len(m.Gates)-1]
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxSteps bounds each kind of step: a reader acts on a few.
const maxSteps = 3

// next lists what to do now: what holds the run first, then what is broken, then what to take.
func next(m Model) []Step {
	var steps []Step
	for _, h := range m.Holds {
		steps = append(steps, Step{Text: fmt.Sprintf("Lift the hold %s: %s", h.Kind, h.Reason), Command: h.Lift})
	}
	if p := m.Publication; p != nil {
		switch p.State {
		case "exhausted", "retryable", "uncertain", "failed":
			steps = append(steps, Step{Text: fmt.Sprintf("The closing action %s is %s; try it again", p.Action, p.State), Command: command("starter", "publish", "retry", m.Run)})
		}
	}
	steps = append(steps, m.gateSteps()...)
	if m.ClosedAt == nil {
		return append(steps, Step{Text: "Follow the run", Command: command("starter", "watch", m.Run)})
	}
	steps = append(steps, m.openSteps()...)
	return append(steps, m.takeSteps()...)
}

// gateSteps tells how to see a red gate with one's own eyes.
func (m Model) gateSteps() []Step {
	g := m.lastGate()
	at := m.HeadCommit
	if g == nil && m.Baseline != nil && !m.Accepted {
		g, at = m.Baseline, m.BaseCommit
	}
	if g == nil {
		return nil
	}
	failing, red := g.Failing()
	if !red {
		return nil
	}
	if g.Commit != "" {
		at = g.Commit
	}
	steps := []Step{{Text: "Reproduce the red gate: " + gate.Name(failing.GateCommand)}}
	if m.local() {
		folder := path.Join(path.Dir(m.Repository), "mendflow-"+m.Run)
		steps[0].Command = fmt.Sprintf("%s && %s && %s",
			command("git", "-C", m.Repository, "worktree", "add", "--detach", folder, at),
			command("cd", path.Join(folder, failing.Dir)), failing.Command)
	}
	if g.Purpose == PurposeBaseline {
		steps = append(steps, Step{Text: "Repair the base, or set gate.baseline: accept in the plan, so that only new failures count"})
	}
	return steps
}

// openSteps looks into the first nodes that left findings open.
func (m Model) openSteps() []Step {
	var steps []Step
	open := 0
	for _, n := range m.Nodes {
		if n.State == contract.NodeLanded || n.State == contract.NodeNoChange || n.State == contract.NodeSkipped {
			continue
		}
		if open++; open > maxSteps {
			continue
		}
		if salvage := lastSalvage(n); salvage > 0 {
			steps = append(steps, Step{Text: "See the work of " + n.ID + " that did not land", Command: command("starter", "diff", m.Run, fmt.Sprintf("%s/%d", n.ID, salvage))})
		} else if len(n.Attempts) > 0 {
			steps = append(steps, Step{Text: "See what " + n.ID + " did", Command: command("starter", "logs", m.Run, n.ID)})
		} else {
			steps = append(steps, Step{Text: "See why " + n.ID + " did not start", Command: command("starter", "explain", m.Run, n.ID)})
		}
	}
	if open > maxSteps {
		steps = append(steps, Step{Text: fmt.Sprintf("See the other %s", plural(open-maxSteps, "open node")), Command: command("starter", "nodes", m.Run)})
	}
	if open > 0 && m.Verdict.Status != contract.RunCompleted {
		steps = append(steps, Step{Text: "Run the plan again for what is left", Command: command("starter", "start", "--repo", m.Repository, "--plan", "PLAN", "--pools", "POOLS", "--again")})
	}
	return steps
}

func lastSalvage(n Node) int {
	k := 0
	for _, a := range n.Attempts {
		if a.Salvage != "" {
			k = a.K
		}
	}
	return k
}

// takeSteps tells how to look at and take what landed.
func (m Model) takeSteps() []Step {
	if m.HeadCommit == "" || m.HeadCommit == m.BaseCommit {
		return nil
	}
	if p := m.Publication; p != nil && p.State == "succeeded" && p.Action != plan.CloseNone {
		if p.URL != "" {
			return []Step{{Text: "Review " + p.URL}}
		}
		return nil
	}
	if !m.local() {
		return []Step{{Text: "Fetch the result", Command: command("git", "fetch", m.Repository, m.Branch)}}
	}
	return []Step{
		{Text: "Review what landed", Command: command("git", "-C", m.Repository, "log", "-p", "--reverse", m.BaseCommit+".."+m.Branch)},
		{Text: "Take it", Command: command("git", "-C", m.Repository, "merge", m.Branch)},
	}
}

// local reports whether the hub is a folder of this machine.
func (m Model) local() bool { return strings.HasPrefix(m.Repository, "/") }

// command renders an argv as it is typed into a shell.
func command(argv ...string) string { return plan.Command{Argv: argv}.String() }
