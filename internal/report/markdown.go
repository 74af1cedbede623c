package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

// Markdown renders the model for people: in a terminal and on a code host. The same
// model always gives the same bytes.
func Markdown(m Model) []byte {
	d := &document{m: m}
	d.header()
	d.next()
	d.items()
	d.gates()
	d.nodes()
	d.review()
	d.usage()
	d.dispositions()
	return []byte(strings.TrimRight(d.b.String(), "\n") + "\n")
}

type document struct {
	m Model
	b strings.Builder
}

func (d *document) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// section writes a heading and its body; nothing when the body is empty.
func (d *document) section(level int, title, body string) {
	if body == "" {
		return
	}
	d.printf("%s %s\n\n%s\n", strings.Repeat("#", level), title, strings.TrimRight(body, "\n")+"\n")
}

func (d *document) header() {
	m := d.m
	d.printf("# %s: %s\n\n**%s**\n\n", escape(m.Verdict.Label()), escape(m.Run), escape(m.Verdict.Sentence))
	if m.Verdict.Reason != "" {
		d.printf("%s\n\n", escape(m.Verdict.Reason))
	}
	if m.Goal != "" {
		d.printf("Goal: %s\n\n", escape(m.Goal))
	}
	t := table{head: []string{"", ""}}
	add := func(name, text string) {
		if text != "" {
			t.add(name, text)
		}
	}
	add("Plan", cellCode(m.PlanID))
	add("Repository", cellCode(m.Repository))
	add("Branch", cellCode(m.Branch))
	add("Base", cellCode(m.BaseCommit))
	add("Head", cellCode(m.HeadCommit))
	add("Started", stamp(m.StartedAt))
	switch {
	case m.ClosedAt == nil:
		add("Closed", "not yet: this report is interim")
	case m.StartedAt.IsZero():
		add("Closed", stamp(*m.ClosedAt))
	default:
		add("Closed", fmt.Sprintf("%s (%s)", stamp(*m.ClosedAt), span(m.wallSeconds())))
	}
	if p := m.Publication; p != nil && p.Action != plan.CloseNone {
		add("Publication", publication(*p))
	}
	d.printf("%s\n", t.String())
}

func publication(p Publication) string {
	text := fmt.Sprintf("%s: %s", escape(string(p.Action)), escape(p.State))
	for _, extra := range []string{p.URL, p.Detail} {
		if extra != "" {
			text += ", " + escape(extra)
		}
	}
	return text
}

func (d *document) next() {
	var b strings.Builder
	for i, s := range d.m.Next {
		fmt.Fprintf(&b, "%d. %s\n", i+1, escape(s.Text))
		if s.Command != "" {
			fmt.Fprintf(&b, "\n%s\n", indent(block("sh", s.Command), "   "))
		}
	}
	d.section(2, "What to do next", b.String())
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by) + "\n"
}

// statusOrder puts what needs a reader first.
var statusOrder = []contract.ItemStatus{
	contract.ItemNeedsClarification, contract.ItemBlocked, contract.ItemAbandoned, contract.ItemPending,
	contract.ItemResolved, contract.ItemResolvedNoChange, contract.ItemIgnored, contract.ItemDeemedInappropriate,
}

func (d *document) items() {
	d.printf("## Findings\n\n")
	if len(d.m.Items) == 0 {
		d.printf("The run worked on none.\n\n")
	}
	for _, status := range statusOrder {
		n := count(d.m.Items, func(i Item) bool { return i.Status == status })
		d.section(3, fmt.Sprintf("%s (%d)", status, n), d.itemTable(status))
	}
	if len(d.m.NoChangeUnverified) > 0 {
		d.section(3, fmt.Sprintf("Closed without a change, on the worker's word (%d)", len(d.m.NoChangeUnverified)), bullets(d.m.NoChangeUnverified, code))
	}
}

func (d *document) itemTable(status contract.ItemStatus) string {
	t := table{head: []string{"finding", "severity", "title", "where", "node", "why"}}
	if status == contract.ItemResolved {
		t.head = []string{"finding", "severity", "title", "node", "commit"}
	}
	for _, i := range d.m.Items {
		if i.Status != status {
			continue
		}
		row := []string{cellCode(i.Finding), escape(string(i.Severity)), escape(i.Title)}
		if status == contract.ItemResolved {
			row = append(row, cellCode(i.Node), cellCode(short(i.Commit)))
		} else {
			row = append(row, cellCode(firstPlace(i.Files)), cellCode(i.Node), escape(i.why()))
		}
		t.add(row...)
	}
	return t.String()
}

// why is the reason of an item's status, with its question and answer.
func (i Item) why() string {
	parts := []string{i.Reason}
	if i.Question != "" {
		parts = append(parts, "question: "+i.Question)
	}
	if i.Answer != "" {
		parts = append(parts, "answer: "+i.Answer)
	}
	for _, e := range i.Evidence[:min(len(i.Evidence), 2)] {
		switch {
		case e.Command != "":
			parts = append(parts, fmt.Sprintf("%s → exit %d", e.Command, e.ExitCode))
		case e.Text != "":
			parts = append(parts, e.Text)
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func (d *document) gates() {
	var b strings.Builder
	for i, g := range slices.Backward(d.m.Gates) {
		if i < len(d.m.Gates)-maxGates {
			fmt.Fprintf(&b, "… and %d earlier gates.\n\n", i+1)
			break
		}
		b.WriteString(gateText(g, 3))
	}
	if len(d.m.Gates) == 0 {
		b.WriteString("No gate has run.\n\n")
	}
	if d.m.Baseline != nil {
		b.WriteString(gateText(*d.m.Baseline, 3))
		if d.m.Accepted {
			b.WriteString("The plan accepts what is red at the base: only new failures count.\n\n")
		}
	}
	if len(d.m.Residual) > 0 {
		fmt.Fprintf(&b, "### Not covered (runtime_residual)\n\n%s\n", bullets(d.m.Residual, escape))
	}
	d.section(2, "Gate", b.String())
}

// maxGates bounds the gates that are shown in full.
const maxGates = 4

func gateText(g Gate, level int) string {
	var b strings.Builder
	title := "Baseline"
	if g.Purpose != PurposeBaseline {
		title = fmt.Sprintf("Round %d (%s)", g.Round, g.Purpose)
	}
	fmt.Fprintf(&b, "%s %s: %s", strings.Repeat("#", level), escape(title), escape(g.Verdict))
	if g.Commit != "" {
		fmt.Fprintf(&b, " on %s", code(short(g.Commit)))
	}
	b.WriteString("\n\n")
	if g.Kind == gate.KindDisabled {
		b.WriteString("Disabled by the plan (`gate: {commands: none}`): nothing ran.\n\n")
		return b.String()
	}
	t := table{head: []string{"layer", "command", "status", "exit", "time", "log"}}
	for _, c := range g.Commands {
		exit, log := fmt.Sprint(c.ExitCode), ""
		if c.Runs == 0 {
			exit = ""
		} else if c.TimedOut {
			exit = "timeout"
		}
		if c.Log != nil {
			log = cellCode(c.Log.URI)
		}
		t.add(escape(c.Layer), cellCode(gate.Name(c.GateCommand)), escape(string(c.Status)), exit, span(int(c.Seconds+0.5)), log)
	}
	fmt.Fprintf(&b, "%s\n", t.String())
	for _, c := range g.Commands {
		if c.Status == gate.StatusRed || c.Status == gate.StatusFlaky {
			fmt.Fprintf(&b, "%s\n\n", escape(c.Explain()))
			if len(c.New) > shownIDs {
				fmt.Fprintf(&b, "New failures:\n\n%s\n", bullets(c.New, code))
			}
			if c.Tail != "" {
				fmt.Fprintf(&b, "%s\n", block("text", c.Tail))
			}
		}
	}
	if a := g.Attribution; a != nil {
		fmt.Fprintf(&b, "Attributed: %s", escape(a.Verdict))
		if len(a.Nodes) > 0 {
			fmt.Fprintf(&b, ", %s", codes(a.Nodes))
		}
		if len(a.Reverted) > 0 {
			fmt.Fprintf(&b, "; reverted and opened again: %s", codes(a.Reverted))
		}
		if a.Runs > 0 {
			fmt.Fprintf(&b, "; %s of the failing command", plural(a.Runs, "run"))
		}
		if a.Detail != "" {
			fmt.Fprintf(&b, "; %s", escape(a.Detail))
		}
		b.WriteString(".\n\n")
	}
	return b.String()
}

// shownIDs are the failures that CommandResult.Explain names itself.
const shownIDs = 3

// maxBullets bounds a list.
const maxBullets = 20

func bullets(list []string, render func(string) string) string {
	var b strings.Builder
	for _, s := range list[:min(len(list), maxBullets)] {
		fmt.Fprintf(&b, "- %s\n", render(s))
	}
	if len(list) > maxBullets {
		fmt.Fprintf(&b, "- … and %d more\n", len(list)-maxBullets)
	}
	return b.String()
}

// codes lists a few ids in a line.
func codes(list []string) string {
	out := make([]string, 0, 8)
	for _, s := range list[:min(len(list), 8)] {
		out = append(out, code(s))
	}
	if len(list) > 8 {
		out = append(out, fmt.Sprintf("%d more", len(list)-8))
	}
	return strings.Join(out, ", ")
}

// short abbreviates a commit id.
func short(commit string) string {
	if len(commit) > 12 && !strings.ContainsAny(commit, " \n") {
		return clipCommit(commit)
	}
	return commit
}

func clipCommit(commit string) string { return strings.ToValidUTF8(commit[:12], "") }

// stamp renders an instant; an unknown one as nothing.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// wallSeconds is how long the run took, 0 while that is not known.
func (m Model) wallSeconds() int {
	if m.ClosedAt == nil || m.StartedAt.IsZero() {
		return 0
	}
	return max(0, int(m.ClosedAt.Sub(m.StartedAt)/time.Second))
}

// span renders seconds as people read them.
func span(seconds int) string { return (time.Duration(seconds) * time.Second).String() }
