package process

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lineSplitter cuts a stream into lines of bounded length.
type lineSplitter struct {
	limit int
	// emit gets a line without its end, what was cut off it, and whether the end
	// was there.
	emit func(line []byte, cut int64, ended bool)

	line []byte
	cut  int64
}

func (l *lineSplitter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		kept := min(len(part), l.limit-len(l.line))
		l.cut += int64(len(part) - kept)
		if ended && len(l.line) == 0 && l.cut == 0 {
			l.emit(part, 0, true) // a whole line in one piece needs no copy
		} else {
			l.line = append(l.line, part[:kept]...)
			if ended {
				l.flush(true)
			}
		}
		p = rest
	}
	return written, nil
}

// close emits a last line that has no end.
func (l *lineSplitter) close() {
	if len(l.line) > 0 || l.cut > 0 {
		l.flush(false)
	}
}

func (l *lineSplitter) flush(ended bool) {
	l.emit(l.line, l.cut, ended)
	l.cut = 0
	if cap(l.line) > 64<<10 {
		l.line = nil // one long line must not be paid for ever
		return
	}
	l.line = l.line[:0]
}

// tail keeps the last bytes of a stream.
type tail struct {
	limit int
	bytes []byte // at most twice the limit, so that not every byte moves the others
	cut   bool   // something before bytes was dropped
}

func (t *tail) add(p []byte) {
	if len(p) > t.limit {
		t.cut = true
		t.bytes = append(t.bytes[:0], p[len(p)-t.limit:]...)
		return
	}
	t.bytes = append(t.bytes, p...)
	if len(t.bytes) > 2*t.limit {
		t.cut = true
		t.bytes = t.bytes[:copy(t.bytes, t.bytes[len(t.bytes)-t.limit:])]
	}
}

// String is the tail as valid UTF-8, not beginning inside a character.
func (t *tail) String() string {
	b := t.bytes[max(0, len(t.bytes)-t.limit):]
	if t.cut || len(b) < len(t.bytes) {
		for i := 1; i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return strings.ToValidUTF8(string(b), "?")
}

// lastLines are the last n lines of s that are not blank.
func lastLines(s string, n int) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-n):]
}

// capped passes on the beginning of what is written to it, keeps the end in
// memory, and leaves out the middle.
type capped struct {
	dst     io.Writer
	err     error
	room    int64 // bytes that may still be passed on
	end     ring
	dropped int64
}

// maxKeptEnd bounds the memory that the end of an output takes.
const maxKeptEnd = 4 << 20

func newCapped(dst io.Writer, limit int64) *capped {
	end := min(limit/4, maxKeptEnd)
	return &capped{dst: dst, room: limit - end, end: ring{limit: int(end)}}
}

func (c *capped) write(p []byte) {
	if n := min(c.room, int64(len(p))); n > 0 {
		c.room -= n
		c.pass(p[:n])
		p = p[n:]
	}
	if len(p) > 0 {
		c.room = 0
		c.dropped += c.end.add(p)
	}
}

func (c *capped) pass(p []byte) {
	if c.err == nil && c.dst != nil {
		_, c.err = c.dst.Write(p)
	}
}

func (c *capped) close() {
	if c.dropped > 0 {
		c.pass(fmt.Appendf(nil, "\n[%d bytes left out]\n", c.dropped))
	}
	first, second := c.end.parts()
	c.pass(first)
	c.pass(second)
}

// ring holds the last limit bytes written to it. It grows with what is written.
type ring struct {
	limit int
	bytes []byte
	next  int // where the oldest byte is once the ring is full
}

// add returns the number of bytes that fell out.
func (r *ring) add(p []byte) (fell int64) {
	if grow := min(len(p), r.limit-len(r.bytes)); grow > 0 {
		r.bytes = append(r.bytes, p[:grow]...)
		p = p[grow:]
	}
	fell = int64(len(p))
	if len(p) > r.limit {
		p = p[len(p)-r.limit:]
	}
	for len(p) > 0 {
		n := copy(r.bytes[r.next:], p)
		r.next = (r.next + n) % r.limit
		p = p[n:]
	}
	return fell
}

func (r *ring) parts() (first, second []byte) { return r.bytes[r.next:], r.bytes[:r.next] }
