package importer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"mendflow/internal/plan"
)

// Write renders a plan as YAML that people edit: one finding and one node per
// paragraph, with a word where a decision is theirs.
func Write(b Built) []byte {
	var w writer
	w.line("# Made by `starter plan import`. Edit it, then: starter plan validate PLAN --repo .")
	w.line("version: 1")
	w.line("id: " + quote(b.ID))
	if b.Goal != "" {
		w.line("goal: " + quote(b.Goal))
	}
	w.line("findings:")
	for _, f := range b.Findings {
		w.finding(f)
	}
	w.line("nodes:")
	for _, n := range b.Nodes {
		w.node(n, slices.Contains(b.Unplaced, n.ID))
	}
	return []byte(w.String())
}

type writer struct{ strings.Builder }

func (w *writer) line(text string) {
	w.WriteString(text)
	w.WriteByte('\n')
}

// field writes a key of an entry; nothing for an empty value.
func (w *writer) field(key, value string) {
	if value != "" {
		w.line("    " + key + ": " + value)
	}
}

func (w *writer) finding(f plan.Finding) {
	w.line("  - id: " + quote(f.ID))
	w.field("title", quote(f.Title))
	w.field("severity", string(f.Severity))
	w.field("lens", string(f.Lens))
	w.field("confidence", string(f.Confidence))
	w.field("themes", list(f.Themes))
	if len(f.Files) > 0 {
		places := make([]string, len(f.Files))
		for i, p := range f.Files {
			places[i] = "{path: " + quote(p.Path)
			if p.LineStart > 0 {
				places[i] += fmt.Sprintf(", line_start: %d", p.LineStart)
			}
			if p.LineEnd > 0 {
				places[i] += fmt.Sprintf(", line_end: %d", p.LineEnd)
			}
			places[i] += "}"
		}
		w.field("files", "["+strings.Join(places, ", ")+"]")
	}
	if f.Summary != "" {
		w.field("summary", quote(f.Summary))
	}
	w.field("evidence", list(f.Evidence))
	w.field("folded", list(f.Folded))
}

func (w *writer) node(n plan.Node, unplaced bool) {
	w.line("  - id: " + quote(n.ID))
	w.field("findings", list(n.Findings))
	if unplaced {
		w.line("    # Name what the repair may change, e.g. [\"client/**\"]: with an empty scope the node runs alone and may write everything.")
		w.line("    write: []")
	} else {
		w.field("write", list(n.Write))
	}
	if n.Instructions != "" {
		w.field("instructions", quote(n.Instructions))
	}
}

func list(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a text in YAML's double quotes (YAML 1.2, 5.7). Everything that does not print is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
