package report

import (
	"fmt"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// nodes writes one row per attempt: a node's story reads from top to bottom.
func (d *document) nodes() {
	t := table{head: []string{"node", "level", "state", "attempt", "pool", "outcome", "time", "commit", "why"}}
	for _, n := range d.m.Nodes {
		if len(n.Attempts) == 0 {
			t.add(cellCode(n.ID), fmt.Sprint(n.Level), escape(string(n.State)), "", "", "", "", "", escape(n.Reason))
			continue
		}
		for i, a := range n.Attempts {
			id, level, state, why := "", "", "", a.Reason
			if i == 0 {
				id, level, state = cellCode(n.ID), fmt.Sprint(n.Level), escape(string(n.State))
			}
			if i == len(n.Attempts)-1 && n.Reason != "" && n.Reason != a.Reason {
				why = strings.TrimPrefix(a.Reason+"; "+n.Reason, "; ")
			}
			t.add(id, level, state, attemptName(a), cellCode(a.Pool), outcome(a), span(a.Seconds), cellCode(short(a.Commit)), escape(why))
		}
	}
	d.section(2, fmt.Sprintf("Nodes (%d)", len(d.m.Nodes)), t.String())
}

func attemptName(a contract.AttemptRow) string {
	name := fmt.Sprint(a.K)
	if a.Opening > 1 {
		name += fmt.Sprintf(" (opening %d)", a.Opening)
	}
	if !a.Charged {
		name += ", not charged"
	}
	return name
}

func outcome(a contract.AttemptRow) string {
	text := string(a.Outcome)
	if a.Cause != "" {
		text += " (" + string(a.Cause) + ")"
	}
	return escape(text)
}

// review writes what an operator should look at.
func (d *document) review() {
	m := d.m
	friction := table{head: []string{"type", "about", "severity", "note"}}
	for _, f := range m.Friction {
		friction.add(escape(string(f.Type)), escape(f.Discriminator), escape(f.Severity), escape(f.Note))
	}
	d.section(2, fmt.Sprintf("Friction (%d)", len(m.Friction)), friction.String())
	salvage := table{head: []string{"node", "attempt", "ref"}}
	for _, s := range m.Salvage {
		salvage.add(cellCode(s.Node), fmt.Sprint(s.Attempt), cellCode(s.Ref))
	}
	d.section(2, fmt.Sprintf("Work that did not land (%d)", len(m.Salvage)), salvage.String())
	protected := table{head: []string{"path", "node", "commit"}}
	for _, p := range m.Protected {
		protected.add(cellCode(p.Path), cellCode(p.Node), cellCode(short(p.Commit)))
	}
	d.section(2, fmt.Sprintf("Protected files changed (%d)", len(m.Protected)), protected.String())
	if len(m.Unverified) > 0 {
		d.section(2, fmt.Sprintf("Landed without verification (%d)", len(m.Unverified)), bullets(m.Unverified, code))
	}
	if len(m.Refs) > 0 {
		d.section(2, fmt.Sprintf("References kept in the repository (%d)", len(m.Refs)), bullets(m.Refs, code))
	}
	if len(m.Notes) > 0 {
		d.section(2, "Notes", bullets(m.Notes, escape))
	}
}

func (d *document) usage() {
	head := []string{"", "attempts", "time", "input tokens", "output tokens", "USD", "uncertain"}
	var b strings.Builder
	pools := table{head: append([]string{"pool"}, head[1:]...)}
	for _, p := range d.m.Pools {
		pools.add(append([]string{cellCode(p.Pool)}, usageCells(p.Usage)...)...)
	}
	if len(d.m.Pools) > 0 {
		pools.add(append([]string{"**all**"}, usageCells(d.m.Usage)...)...)
		fmt.Fprintf(&b, "%s\n", pools.String())
	}
	nodes := table{head: append([]string{"node"}, head[1:]...)}
	for _, n := range d.m.Nodes {
		if n.Usage.Attempts > 0 {
			nodes.add(append([]string{cellCode(n.ID)}, usageCells(n.Usage)...)...)
		}
	}
	b.WriteString(nodes.String())
	if d.m.Usage.Uncertain > 0 {
		fmt.Fprintf(&b, "\n%s told no usage: the sums lack it.\n", plural(d.m.Usage.Uncertain, "attempt"))
	}
	d.section(2, "Time and cost", b.String())
}

func usageCells(u Usage) []string {
	return []string{
		fmt.Sprint(u.Attempts), span(u.Seconds), fmt.Sprint(u.InputTokens), fmt.Sprint(u.OutputTokens),
		fmt.Sprintf("%.2f", u.USD), fmt.Sprint(u.Uncertain),
	}
}

// dispositions writes what became of the findings that the run did not work on.
func (d *document) dispositions() {
	t := table{head: []string{"finding", "severity", "title", "what became of it"}}
	planned := 0
	for _, x := range d.m.Dispositions {
		if x.State == Planned {
			planned++
			continue
		}
		text := x.State
		if x.Reason != "" {
			text += ": " + x.Reason
		}
		t.add(cellCode(x.Finding), escape(string(x.Severity)), escape(x.Title), escape(text))
	}
	body := t.String()
	if body == "" {
		return
	}
	d.section(2, fmt.Sprintf("Input findings (%d)", len(d.m.Dispositions)), fmt.Sprintf("%d planned; the others:\n\n%s", planned, body))
}

// places renders the files of a finding.
func places(files []plan.Location) string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = place(f)
	}
	return strings.Join(out, ", ")
}

func place(f plan.Location) string {
	if f.LineStart > 0 {
		return fmt.Sprintf("%s:%d", f.Path, f.LineStart)
	}
	return f.Path
}

// firstPlace renders the first file of a finding and how many follow.
func firstPlace(files []plan.Location) string {
	switch len(files) {
	case 0:
		return ""
	case 1:
		return place(files[0])
	}
	return fmt.Sprintf("%s and %d more", place(files[0]), len(files)-1)
}
