package report

import (
	"fmt"
	"strings"

	"mendflow/internal/plan"
)

// maxTerminalItems bounds the open findings of the short form.
const maxTerminalItems = 5

// Terminal renders the short form that ends a watched run: verdict, counts, open
// findings, where the result and the report are, and what to do next. Location says where the report
// is (empty: left out). No colours: the caller owns them.
func Terminal(m Model, location string) string {
	var b strings.Builder
	line := func(name, text string) {
		if text = oneLine(text, 400); text != "" {
			fmt.Fprintf(&b, "  %-10s%s\n", name, text)
		}
	}
	fmt.Fprintf(&b, "%s: %s\n", oneLine(m.Verdict.Label(), maxCell), oneLine(m.Verdict.Sentence, 400))
	line("reason", m.Verdict.Reason)
	line("findings", counts(m))
	open := 0
	for _, i := range m.Items {
		if i.Status.VerifiedComplete() || i.Status.Skip() {
			continue
		}
		if open++; open <= maxTerminalItems {
			line("", fmt.Sprintf("%s (%s): %s%s", i.Finding, i.Severity, oneLine(i.Title, 80), dash(oneLine(i.Reason, 160))))
		}
	}
	if open > maxTerminalItems {
		line("", fmt.Sprintf("… and %d more", open-maxTerminalItems))
	}
	line("gate", m.gateLine())
	line("branch", m.branchLine())
	if p := m.Publication; p != nil && p.Action != plan.CloseNone {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Action, p.State, p.URL))
		if p.State != "succeeded" {
			text += dash(p.Detail)
		}
		line("published", text)
	}
	if n := len(m.Friction); n > 0 {
		line("friction", fmt.Sprintf("%d: see the report", n))
	}
	if seconds := m.wallSeconds(); seconds > 0 {
		line("took", span(seconds))
	}
	line("used", fmt.Sprintf("%s, %s of work, %d tokens, %.2f USD", plural(m.Usage.Attempts, "attempt"), span(m.Usage.Seconds), m.Usage.InputTokens+m.Usage.OutputTokens, m.Usage.USD))
	line("report", location)
	if len(m.Next) > 0 {
		line("next", m.Next[0].Text)
		if m.Next[0].Command != "" {
			fmt.Fprintf(&b, "    %s\n", visible(m.Next[0].Command))
		}
	}
	return b.String()
}

func counts(m Model) string {
	parts := make([]string, len(m.ItemCounts))
	for i, c := range m.ItemCounts {
		parts[i] = fmt.Sprintf("%d %s", c.N, c.Status)
	}
	return strings.Join(parts, ", ")
}

func dash(s string) string {
	if s == "" {
		return ""
	}
	return " – " + s
}

func (m Model) gateLine() string {
	g := m.lastGate()
	if g == nil {
		return ""
	}
	if c, red := g.Failing(); red {
		return g.Verdict + ": " + c.Explain()
	}
	return g.Verdict
}

func (m Model) branchLine() string {
	if m.HeadCommit == "" || m.HeadCommit == m.BaseCommit {
		return m.Branch + " (nothing landed)"
	}
	return m.Branch + " at " + short(m.HeadCommit)
}
