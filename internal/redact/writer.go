package redact

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Mark stands where a secret was.
const Mark = "[masked]"

// step bounds how much of one Write is looked at before its output leaves.
const step = 64 << 10

// wrapDepth is how much of a secret must have been seen at a line end before
// the next line is taken as its possible continuation. Fewer bytes would hold
// back ordinary lines; see headless for secrets that break before it.
const wrapDepth = 3

// maxStretch bounds how far terminal codes can stretch a secret and still have
// it found, and with that the memory of a writer.
const maxStretch = 64 << 10

// Writer masks what is written to it and passes it on. It is not safe for use
// by several goroutines at once. Close it to release what is held back.
type Writer struct {
	dst    io.Writer
	err    error
	pass   bool // masking is off
	closed bool

	raw matcher // the view of the bytes as they are
	// clean is the view without terminal codes and wrapped line ends. It exists
	// from the first code on until nothing under way reaches back over it.
	clean   matcher
	cleanOn bool
	skip    skipper

	pending []byte // bytes not yet released; the first one stands at base
	base    int64
	spans   []span // what is masked in pending, in the order of discovery
	out     []byte
	masked  bool // the last released byte was masked
}

// Write masks p and passes on what is decided. The result is len(p) unless the
// destination failed.
func (w *Writer) Write(p []byte) (int, error) {
	if w.pass {
		return w.dst.Write(p)
	}
	if w.closed {
		return 0, fmt.Errorf("write masked text: %w", io.ErrClosedPipe)
	}
	written := 0
	for len(p) > 0 && w.err == nil {
		part := p[:min(len(p), step)]
		p = p[len(part):]
		w.scan(part)
		next := w.base + int64(len(w.pending))
		w.release(w.undecided(next))
		written += len(part)
	}
	return written, w.err
}

// Close releases what was held back. It does not close the destination.
func (w *Writer) Close() error {
	if w.pass || w.closed {
		return nil
	}
	w.closed = true
	w.release(w.base + int64(len(w.pending)))
	return w.err
}

func (w *Writer) undecided(next int64) int64 {
	hold := w.raw.undecided(next)
	if w.cleanOn {
		hold = w.clean.undecided(hold)
		if w.skip.state == skipEscaped { // perhaps given back to the view
			hold = min(hold, w.skip.from)
		}
	}
	return hold
}

// scan looks at the bytes of p one by one.
func (w *Writer) scan(p []byte) {
	pos := w.base + int64(len(w.pending))
	w.pending = append(w.pending, p...)
	for i := 0; i < len(p); i++ {
		if !w.cleanOn && w.raw.idle() {
			n := w.harmless(p[i:])
			w.raw.pass(p[i : i+n])
			if i += n; i == len(p) {
				return
			}
		}
		w.scanByte(p[i], pos+int64(i))
	}
}

// harmless counts the bytes at the start of p that can begin neither a secret
// nor a terminal code.
func (w *Writer) harmless(p []byte) int {
	root := &w.raw.auto.root
	for i, b := range p {
		if root[b] != 0 || b == escByte || b == '\\' {
			return i
		}
	}
	return len(p)
}

func (w *Writer) scanByte(b byte, pos int64) {
	if !w.cleanOn && (b == escByte || b == '\\' || (b == '\n' || b == '\r') && w.wrapped(&w.raw)) {
		w.clean.copyFrom(&w.raw)
		w.cleanOn = true
	}
	w.spans = w.raw.feed(b, pos, w.spans)
	if !w.cleanOn {
		return
	}
	w.scanClean(b, pos)
	if !w.skip.active() && w.clean.pastGaps() {
		w.cleanOn = false
	}
}

// wrapped says whether so much of a value has been seen that it may go on after
// a line end.
func (w *Writer) wrapped(m *matcher) bool { return m.depth() >= wrapDepth }

func (w *Writer) scanClean(b byte, pos int64) {
	if !w.skip.active() {
		if !w.skip.enter(b, pos, w.wrapped(&w.clean)) {
			w.spans = w.clean.feed(b, pos, w.spans)
		}
		return
	}
	switch w.skip.next(b, pos, w.wrapped(&w.clean)) {
	case verdictLast:
		w.clean.skip(pos+1, w.skip.lineEnd)
		w.limit(pos)
	case verdictBefore:
		w.clean.skip(pos, w.skip.lineEnd)
		if w.limit(pos) {
			w.scanClean(b, pos)
		}
	case verdictGiveBack:
		for i, given := range w.skip.text[:len(w.skip.text)-1] {
			w.spans = w.clean.feed(given, w.skip.from+int64(i), w.spans)
		}
		w.scanClean(b, pos)
	case verdictSkipped, verdictText:
	}
}

// limit gives the clean view up when it holds back too much: then the codes are
// most of the text. It says whether the view goes on.
func (w *Writer) limit(pos int64) bool {
	if pos-w.clean.undecided(pos) > maxStretch+int64(w.clean.auto.longest) {
		w.cleanOn = false
	}
	return w.cleanOn
}

// release passes on all bytes before position to.
func (w *Writer) release(to int64) {
	if to <= w.base {
		return
	}
	slices.SortFunc(w.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	w.out = w.out[:0]
	at := w.base
	kept := w.spans[:0]
	for _, s := range w.spans {
		from, end := max(s.from, at), min(s.to, to)
		if from < end {
			w.plain(at, from)
			w.mask(from, end)
			at = end
		}
		if s.to > to {
			kept = append(kept, s)
		}
	}
	w.plain(at, to)
	w.spans = kept
	w.pending = w.pending[:copy(w.pending, w.pending[to-w.base:])]
	w.base = to
	if w.err == nil {
		_, w.err = w.dst.Write(w.out)
	}
}

func (w *Writer) plain(from, to int64) {
	if from < to {
		w.out = append(w.out, w.pending[from-w.base:to-w.base]...)
		w.masked = false
	}
}

// mask writes one Mark for a stretch, however it is composed. Line ends stay,
// so that the lines of a stream keep their number.
func (w *Writer) mask(from, to int64) {
	for _, b := range w.pending[from-w.base : to-w.base] {
		switch {
		case b == '\n':
			w.out = append(w.out, b)
			w.masked = false
		case !w.masked:
			w.out = append(w.out, Mark...)
			w.masked = true
		}
	}
}
