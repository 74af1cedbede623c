package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCell bounds a cell of a table, in characters.
const maxCell = 160

// oneLine makes one line of a text: white space collapsed, nothing that a terminal
// or a reader's eye could be led astray by (control and bidirectional characters), at most limit characters.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case hidden(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return clip(strings.Join(strings.Fields(s), " "), limit)
}

// hidden matches characters that print nothing or turn the direction of what follows.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// clip cuts a text to a number of characters, marking the cut.
func clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:limit-1]), " ") + "…"
}

var entity = regexp.MustCompile(`&(#?\w+;)`)

// listItem matches a number that would start a list.
var listItem = regexp.MustCompile(`^(\d+)([.)])`)

// escape makes Markdown text of a foreign one: it shows what it is and is
// neither markup nor HTML nor a mention, inside a table or not.
func escape(s string) string {
	runes := []rune(entity.ReplaceAllString(oneLine(s, maxCell), "&amp;$1"))
	var b strings.Builder
	for i, r := range runes {
		switch r {
		case '\\', '`', '*', '[', ']', '|', '~':
			b.WriteByte('\\')
		case '_', '$':
			if !wordAround(runes, i) {
				b.WriteByte('\\')
			}
		case '#', '+', '-', '=':
			if i == 0 {
				b.WriteByte('\\')
			}
		case '<':
			b.WriteString("&lt;")
			continue
		case '>':
			b.WriteString("&gt;")
			continue
		case '@':
			if i+1 < len(runes) && (unicode.IsLetter(runes[i+1]) || unicode.IsDigit(runes[i+1])) {
				b.WriteString("@&#8203;") // code hosts notify whom a text mentions
				continue
			}
		}
		b.WriteRune(r)
	}
	return listItem.ReplaceAllString(b.String(), `$1\$2`)
}

// wordAround reports whether a character stands between letters or digits, where it is no markup.
func wordAround(runes []rune, i int) bool {
	word := func(j int) bool {
		return j >= 0 && j < len(runes) && (unicode.IsLetter(runes[j]) || unicode.IsDigit(runes[j]))
	}
	return word(i-1) && word(i+1)
}

// code makes a code span: for ids, paths and commands, which stay exact. Control
// characters are shown as Go writes them.
func code(s string) string {
	if s == "" {
		return ""
	}
	s = clip(visible(s), maxCell)
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.TrimSpace(s) == "" || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " "
	}
	return fence + s + fence
}

// visible shows hidden characters as Go writes them.
func visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cellCode is code inside a table, where a pipe ends the cell even in a code span.
func cellCode(s string) string { return strings.ReplaceAll(code(s), "|", `\|`) }

func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

// block makes a fenced code block of a program's output.
func block(info, s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	return fence + info + "\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// table is a Markdown table whose columns line up in a terminal.
type table struct {
	head []string
	rows [][]string
	more int // rows left out
}

// maxRows bounds a table of the Markdown rendering.
const maxRows = 100

func (t *table) add(cells ...string) {
	if len(t.rows) == maxRows {
		t.more++
		return
	}
	t.rows = append(t.rows, cells)
}

// maxPad is the widest column that is still padded: one long title does not push the rest off the screen.
const maxPad = 48

func (t *table) String() string {
	if len(t.rows) == 0 {
		return ""
	}
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], min(utf8.RuneCountInString(c), maxPad))
		}
	}
	var b strings.Builder
	line := func(cells []string, pad string) {
		for i, c := range cells {
			fmt.Fprintf(&b, "| %s%s ", c, strings.Repeat(pad, max(0, widths[i]-utf8.RuneCountInString(c))))
		}
		b.WriteString("|\n")
	}
	line(t.head, " ")
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
	}
	for i := range widths {
		widths[i] = max(widths[i], 3)
	}
	line(rule, "-")
	for _, row := range t.rows {
		line(row, " ")
	}
	if t.more > 0 {
		fmt.Fprintf(&b, "\n… and %d more: `remediation-outcomes.json` lists all.\n", t.more)
	}
	return b.String()
}
