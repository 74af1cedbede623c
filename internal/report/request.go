package report

import (
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/contract"
)

// maxRequest bounds the text of a pull request, in bytes: GitHub takes 65 536 characters.
const maxRequest = 60_000

// Request renders the text of a pull request: what was repaired and what not, by
// which commit, and how it was checked. The whole report stays in the artifact store.
func Request(m Model) string {
	d := &document{m: m}
	d.printf("**%s**\n\n", escape(m.Verdict.Sentence))
	if m.Goal != "" {
		d.printf("%s\n\n", escape(m.Goal))
	}
	d.section(3, fmt.Sprintf("Repaired (%d)", d.countItems(contract.ItemStatus.VerifiedComplete)), d.requestTable(contract.ItemStatus.VerifiedComplete))
	left := func(s contract.ItemStatus) bool { return !s.VerifiedComplete() }
	d.section(3, fmt.Sprintf("Not repaired (%d)", d.countItems(left)), d.requestTable(left))
	d.checks()
	if len(m.Protected) > 0 {
		protected := make([]string, len(m.Protected))
		for i, p := range m.Protected {
			protected[i] = p.Path
		}
		d.section(3, fmt.Sprintf("Protected files changed (%d)", len(protected)), bullets(slices.Compact(protected), code))
	}
	if len(m.Unverified) > 0 {
		d.section(3, fmt.Sprintf("Landed without verification (%d)", len(m.Unverified)), bullets(m.Unverified, code))
	}
	d.printf("Run %s of plan %s, %s from %s to %s. Everything else: %s.\n",
		code(m.Run), code(m.PlanID), plural(m.Usage.Attempts, "attempt"), code(short(m.BaseCommit)), code(short(m.HeadCommit)), code(command("starter", "report", m.Run)))
	text := d.b.String()
	if len(text) <= maxRequest {
		return text
	}
	cut := strings.LastIndexByte(text[:maxRequest], '\n')
	return text[:cut] + "\n\n… the rest is in the report.\n"
}

func (d *document) countItems(want func(contract.ItemStatus) bool) int {
	return count(d.m.Items, func(i Item) bool { return want(i.Status) })
}

func (d *document) requestTable(want func(contract.ItemStatus) bool) string {
	t := table{head: []string{"finding", "severity", "title", "commit", "why"}}
	for _, i := range d.m.Items {
		if want(i.Status) {
			why := i.Reason
			if i.Status != contract.ItemResolved {
				why = join(string(i.Status), i.Reason)
			}
			t.add(cellCode(i.Finding), escape(string(i.Severity)), escape(i.Title), cellCode(short(i.Commit)), escape(why))
		}
	}
	return t.String()
}

// checks says how the whole was checked.
func (d *document) checks() {
	g := d.m.lastGate()
	if g == nil || len(g.Commands) == 0 {
		return
	}
	t := table{head: []string{"gate command", "verdict"}}
	for _, c := range g.Commands {
		t.add(cellCode(c.Command.String()), escape(string(c.Status)))
	}
	body := t.String()
	if len(d.m.Residual) > 0 {
		body += "\nNot covered:\n\n" + bullets(d.m.Residual, escape)
	}
	d.section(3, "Gate: "+g.Verdict, body)
}

// Published returns the model with the result of its closing action, and what follows from it.
func (m Model) Published(p *Publication, refs ...string) Model {
	m.Publication = p
	m.Refs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(m.Refs, refs))))
	m.Next = next(m)
	m.fill()
	return m
}
