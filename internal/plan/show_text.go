package plan

import (
	"fmt"
	"strings"

	"golang.org/x/text/width"
)

// textWidth is the number of columns in which the overview stays readable.
const textWidth = 100

// Text renders the overview for a terminal of 100 columns. Ids and globs are never
// cut; long lists wrap.
func (o Overview) Text() string {
	var b strings.Builder
	nodes := 0
	for _, l := range o.Levels {
		nodes += len(l.Nodes)
	}
	fmt.Fprintf(&b, "Plan %s: %s in %s, about %s tokens\n", o.ID, count(nodes, "node", "nodes"),
		count(len(o.Levels), "level", "levels"), thousands(o.Tokens))
	wrapped(&b, "  goal      ", o.Goal)
	wrapped(&b, "  base      ", o.Base)
	var counts []string
	for _, c := range o.Findings {
		counts = append(counts, fmt.Sprintf("%d %s", c.Count, c.Disposition))
	}
	wrapped(&b, "  findings  ", strings.Join(counts, ", "))
	for i, l := range o.Levels {
		phase := ""
		if l.Phase != 0 || (i > 0 && o.Levels[i-1].Phase != 0) {
			phase = fmt.Sprintf(", phase %d", l.Phase)
		}
		fmt.Fprintf(&b, "\nLevel %d%s (%s)\n", l.Depth, phase, count(len(l.Nodes), "node", "nodes"))
		o.levelTable(&b, l)
	}
	o.serialisedText(&b)
	o.gateText(&b)
	if len(o.Dropped) > 0 {
		b.WriteString("\nFindings left out\n")
		for _, d := range o.Dropped {
			wrapped(&b, "  "+d.Finding+"  ", strings.TrimSuffix(string(d.Disposition)+": "+d.Cause, ": "))
		}
	}
	if len(o.Warnings) > 0 {
		b.WriteString("\nWarnings\n")
		for _, w := range o.Warnings {
			w.Warning = false
			wrapped(&b, "  ", w.String())
		}
	}
	return b.String()
}

// levelTable has one line per node, and what does not fit into a column below it.
func (o Overview) levelTable(b *strings.Builder, l OverviewLevel) {
	rows := [][]string{{"NODE", "SEVERITY", "TIER", "TOKENS", "FINDINGS"}}
	for _, n := range l.Nodes {
		rows = append(rows, []string{n.ID, string(n.Severity), string(n.Tier), thousands(n.Tokens), enumerate(n.Findings)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for k, cell := range row {
			widths[k] = max(widths[k], columns(cell))
		}
	}
	for r, row := range rows {
		indent := 2
		line := "  "
		for k, cell := range row[:len(row)-1] {
			line += pad(cell, widths[k]) + "  "
			indent += widths[k] + 2
		}
		if indent > textWidth/2+8 { // long ids: the last column goes below
			indent = 4
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = "    "
		}
		wrappedIndent(b, line, row[len(row)-1], indent)
		if r == 0 {
			continue
		}
		n := l.Nodes[r-1]
		scope := "alone in the run (no write scope)"
		if len(n.Write) > 0 {
			scope = strings.Join(n.Write, ", ")
		}
		if n.SharedAppend {
			scope += " (shared append)"
		}
		wrapped(b, "    write   ", scope)
		wrapped(b, "    after   ", strings.Join(n.DependsOn, ", "))
		for _, c := range n.Verify {
			wrapped(b, "    verify  ", c.String())
		}
	}
}

func (o Overview) serialisedText(b *strings.Builder) {
	s := o.Serialised
	if len(s.Exclusive) == 0 && s.Total == 0 {
		return
	}
	b.WriteString("\nNever at the same time\n")
	if len(s.Exclusive) > 0 {
		wrapped(b, "  alone in the run, without a write scope: ", enumerate(s.Exclusive))
	}
	for _, p := range s.Pairs {
		var why []string
		for _, g := range p.Globs {
			if g.A == g.B {
				why = append(why, "both write "+g.A)
				continue
			}
			why = append(why, g.A+" overlaps "+g.B)
		}
		wrapped(b, fmt.Sprintf("  %s, %s: ", p.A, p.B), strings.Join(why, "; "))
	}
	if more := s.Total - len(s.Pairs); more > 0 {
		fmt.Fprintf(b, "  and %s\n", count(more, "more pair", "more pairs"))
	}
}

func (o Overview) gateText(b *strings.Builder) {
	switch o.Gate.Source {
	case GateDisabled:
		b.WriteString("\nGate: none, the plan says so\n")
		return
	case GateUnknown:
		b.WriteString("\nGate: discovered at the base (name a repository to see it)\n")
		return
	}
	fmt.Fprintf(b, "\nGate (%s; baseline %s, on red %s)\n", o.Gate.Source, o.Gate.Baseline, o.Gate.OnRed)
	for _, c := range o.Gate.Commands {
		wrapped(b, "  ", c.String())
	}
}

// wrapped writes a labelled text, and nothing when the text is empty.
func wrapped(b *strings.Builder, label, text string) {
	if text == "" {
		return
	}
	wrappedIndent(b, label, text, min(columns(label), textWidth/2))
}

// wrappedIndent breaks at spaces; continuation lines are indented.
func wrappedIndent(b *strings.Builder, label, text string, indent int) {
	line, empty := label, true
	for word := range strings.FieldsSeq(oneLine(text)) {
		if !empty && columns(line)+1+columns(word) > textWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// oneLine keeps control characters of user text away from the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func pad(text string, columnsWanted int) string {
	return text + strings.Repeat(" ", max(0, columnsWanted-columns(text)))
}

// columns counts terminal columns: East Asian wide characters take two.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
