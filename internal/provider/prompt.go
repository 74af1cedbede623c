package provider

import (
	"fmt"
	"strings"

	"mendflow/internal/plan"
)

// Task is all that a prompt is rendered from.
type Task struct {
	Goal         string
	Node         plan.Node
	Findings     []plan.Finding // the open ones
	MustNotTouch []string
	ResultFile   string
	Failure      string   // tail of the last failed attempt; empty: none
	Salvage      string   // path of its diff
	Landed       []string // findings of this node that landed before
	Continued    bool     // the tree holds an earlier attempt's unfinished work
	Left         []string // the paths that it changed
	Clarified    []string // answers to the worker's questions
	Attended     bool     // somebody works on it who says when it is done; a result is welcome, not needed
}

// Prompt renders what a worker is told. It says nothing about how to drive Mendflow.
func Prompt(t Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task %s\n\n", t.Node.ID)
	if t.Goal != "" {
		fmt.Fprintf(&b, "%s\n\n", t.Goal)
	}
	b.WriteString("Repair the findings below in the current folder, which is a git worktree of the repository.\n")
	b.WriteString("Do not commit, do not switch branches and do not change git's configuration: what you leave in the folder is collected and committed for you.\n")
	if t.Continued {
		b.WriteString("\nThe folder holds the unfinished work of an earlier session on this task: look at it first and go on from there.\n")
		writeLeft(&b, t.Left)
	}
	b.WriteString("\n## Findings\n")
	for _, f := range t.Findings {
		writeFinding(&b, f)
	}
	writeScope(&b, t)
	if t.Node.Instructions != "" {
		fmt.Fprintf(&b, "\n## Instructions\n\n%s\n", strings.TrimSpace(t.Node.Instructions))
	}
	if len(t.Node.Verify) > 0 {
		b.WriteString("\n## Verification\n\nThese commands must pass afterwards; they are run again by us:\n\n")
		for _, c := range t.Node.Verify {
			fmt.Fprintf(&b, "    %s\n", c)
		}
	}
	writeHistory(&b, t)
	writeContract(&b, t)
	return b.String()
}

// maxLeft is how many changed paths are named; the worker can look for itself.
const maxLeft = 20

// writeLeft names what an earlier session changed.
func writeLeft(b *strings.Builder, paths []string) {
	if len(paths) == 0 {
		return
	}
	more := ""
	if n := len(paths) - maxLeft; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
		paths = paths[:maxLeft]
	}
	fmt.Fprintf(b, "It has changed `%s`%s so far.\n", strings.Join(paths, "`, `"), more)
}

func writeFinding(b *strings.Builder, f plan.Finding) {
	fmt.Fprintf(b, "\n### %s: %s\n\n", f.ID, oneLine(f.Title))
	fmt.Fprintf(b, "Severity %s", f.Severity)
	if f.Lens != "" {
		fmt.Fprintf(b, ", %s", f.Lens)
	}
	b.WriteString(".\n")
	if f.Summary != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(f.Summary))
	}
	for _, l := range f.Files {
		switch {
		case l.LineStart > 0 && l.LineEnd > l.LineStart:
			fmt.Fprintf(b, "- in `%s`, lines %d to %d\n", l.Path, l.LineStart, l.LineEnd)
		case l.LineStart > 0:
			fmt.Fprintf(b, "- in `%s`, line %d\n", l.Path, l.LineStart)
		default:
			fmt.Fprintf(b, "- in `%s`\n", l.Path)
		}
	}
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "- evidence: %s\n", oneLine(e))
	}
}

func writeScope(b *strings.Builder, t Task) {
	b.WriteString("\n## Scope\n\n")
	if len(t.Node.Write) > 0 {
		fmt.Fprintf(b, "Change only files that match: `%s`. Other changes are refused.\n", strings.Join(t.Node.Write, "`, `"))
	} else {
		b.WriteString("You may change any file that the task needs.\n")
	}
	if len(t.MustNotTouch) > 0 {
		fmt.Fprintf(b, "Never change files that match: `%s`.\n", strings.Join(t.MustNotTouch, "`, `"))
	}
	if len(t.Node.Read) > 0 {
		fmt.Fprintf(b, "Worth reading: `%s`.\n", strings.Join(t.Node.Read, "`, `"))
	}
}

func writeHistory(b *strings.Builder, t Task) {
	if len(t.Landed) > 0 {
		fmt.Fprintf(b, "\n## Already done\n\nRepaired by an earlier attempt and part of the folder: %s.\n", strings.Join(t.Landed, ", "))
	}
	for _, c := range t.Clarified {
		fmt.Fprintf(b, "\n## Clarification\n\n%s\n", strings.TrimSpace(c))
	}
	if t.Failure != "" {
		b.WriteString("\n## The attempt before this one failed\n\n")
		for line := range strings.Lines(strings.TrimSpace(t.Failure)) {
			b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	if t.Salvage != "" {
		fmt.Fprintf(b, "\nIts unlanded change is kept as a diff in `%s`.\n", t.Salvage)
	}
}

func writeContract(b *strings.Builder, t Task) {
	id := "F-1"
	if len(t.Findings) > 0 {
		id = t.Findings[0].ID
	}
	ask, fallback := "When you are done, write this JSON to the file `%s` (its path is also in $MENDFLOW_RESULT), one item for each finding:",
		"If you cannot write that file, end with the same JSON in a fenced block as your last message."
	if t.Attended {
		ask, fallback = "When you are done, you may write this JSON to the file `%s`, one item for each finding:",
			"Without that file every finding counts as resolved."
	}
	fmt.Fprintf(b, `
## Result

%s

    {"items": [{"finding": %q, "status": "resolved", "evidence": [{"command": "…", "exit_code": 0, "output_tail": "…"}], "reason": "…"}],
     "summary": "…"}

Status is one of: resolved (you changed what was wrong), no_change (nothing needs to change; give a command as evidence), blocked (say why in reason), needs_clarification (ask in question).
%s
`, fmt.Sprintf(ask, t.ResultFile), id, fallback)
}

// oneLine folds line breaks, so that a plan's text cannot open a section of its own.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
