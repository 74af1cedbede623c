package gate

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
)

// TailRunes bounds the tail of a command in a report.
const TailRunes = 4000

// maxLine bounds one line of output; what is longer is cut into lines.
const maxLine = 1 << 20

// lineSplitter calls line for each line written, its newline included.
type lineSplitter struct {
	line func([]byte)
	rest []byte
}

func (s *lineSplitter) Write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			s.rest = append(s.rest, p...)
			if len(s.rest) >= maxLine {
				s.flush()
			}
			return
		}
		if len(s.rest) > 0 {
			s.rest = append(s.rest, p[:end]...)
			s.flush()
		} else {
			s.line(p[:end])
		}
		p = p[end:]
	}
}

func (s *lineSplitter) flush() {
	if len(s.rest) > 0 {
		s.line(s.rest)
		s.rest = s.rest[:0]
	}
}

// tail is an io.Writer that keeps the end of what is written to it.
type tail struct {
	buf   []byte
	limit int
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.limit:]...)
		t.cut = true
	}
	return len(p), nil
}

// text returns what was kept, whole only when nothing was dropped.
func (t *tail) text() (text string, whole bool) { return string(t.buf), !t.cut }

// escapes matches terminal control sequences: CSI, OSC and two-byte ones.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])")

// plainTail makes a readable tail of terminal output: no control sequences, only
// the last state of a line that was drawn over, at most limit characters, from the
// start of a line where the cut allows it.
func plainTail(s string, limit int) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for line := range strings.SplitAfterSeq(s, "\n") {
		if i := strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r'); i >= 0 {
			line = line[i+1:]
		}
		b.WriteString(line)
	}
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			return r
		}
		return -1
	}, b.String())
	s = strings.TrimSpace(s)
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	s = string(runes[len(runes)-limit:])
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		s = s[i+1:]
	}
	return s
}
