package redact

import "slices"

// span is a stretch of the stream that must not be shown, in positions from
// the start of the stream; to is exclusive.
type span struct{ from, to int64 }

// mark adds a span, joined to the latest one where it continues that.
func mark(found []span, from, to int64) []span {
	if n := len(found) - 1; n >= 0 && found[n].from <= from && from <= found[n].to {
		found[n].to = max(found[n].to, to)
		return found
	}
	return append(found, span{from, to})
}

// matcher looks for secrets in one view of the stream: the bytes as they are,
// or the bytes without terminal codes and line ends (see [skipper]).
type matcher struct {
	auto  *automaton
	state int32
	seen  int64 // bytes of this view

	// gaps say where bytes of the stream are missing in this view.
	gaps []gap

	candidates []candidate
	recent     [recentBytes]byte // the latest bytes of the view, by number modulo recentBytes
}

// recentBytes covers the longest prefix with a word boundary and what stands before it.
const recentBytes = 16

// gap: from the view's byte number seen on, the stream is ahead by skipped bytes.
type gap struct{ seen, skipped int64 }

// maxCandidates bounds the work per byte; overlapping prefixes beyond it are
// not followed.
const maxCandidates = 8

func (m *matcher) idle() bool { return m.state == 0 && len(m.candidates) == 0 }

// depth is the length of the longest value or prefix that may be under way.
func (m *matcher) depth() int64 { return int64(m.auto.nodes[m.state].depth) }

// position translates a byte number of this view into a stream position.
func (m *matcher) position(seen int64) int64 {
	for _, g := range slices.Backward(m.gaps) {
		if g.seen <= seen {
			return seen + g.skipped
		}
	}
	return seen
}

// undecided is the first stream position whose fate is still open, at most next.
func (m *matcher) undecided(next int64) int64 {
	if d := m.depth(); d > 0 {
		next = min(next, m.position(m.seen-d))
	}
	for i := range m.candidates {
		next = min(next, m.candidates[i].open())
	}
	return next
}

// pass moves over bytes that cannot begin a secret; the matcher must be idle.
func (m *matcher) pass(bytes []byte) {
	for i := max(0, len(bytes)-recentBytes); i < len(bytes); i++ {
		m.recent[(m.seen+int64(i))%recentBytes] = bytes[i]
	}
	m.seen += int64(len(bytes))
}

// feed takes the next byte of the view, which stands at pos in the stream, and
// appends what it proves to be secret.
func (m *matcher) feed(b byte, pos int64, found []span) []span {
	m.recent[m.seen%recentBytes] = b
	m.seen++
	if len(m.candidates) > 0 {
		kept := m.candidates[:0]
		for _, c := range m.candidates {
			var stays bool
			if found, stays = c.advance(b, pos, found); stays {
				kept = append(kept, c)
			}
		}
		m.candidates = kept
	}
	m.state = m.auto.step(m.state, b)
	if m.state == 0 {
		return found
	}
	n := &m.auto.nodes[m.state]
	if n.value > 0 {
		found = mark(found, m.position(m.seen-int64(n.value)), pos+1)
	}
	for _, r := range n.rules {
		found = m.begin(r, pos, found)
	}
	return found
}

// begin starts following rule r, whose prefix ends at pos.
func (m *matcher) begin(r *rule, pos int64, found []span) []span {
	if len(m.candidates) == maxCandidates || r.boundary && !m.startsWord(len(r.prefix)) {
		return found
	}
	c := candidate{rule: r, from: pos + 1, last: pos}
	if r.keep < len(r.prefix) {
		c.from = m.position(m.seen - int64(len(r.prefix)-r.keep))
	}
	if r.kind == kindPEM {
		c.live = true
		found = mark(found, c.from, pos+1)
	}
	m.candidates = append(m.candidates, c)
	return found
}

// startsWord says whether the latest n bytes begin a word. An escaped character
// before them (\n, %3D) is a boundary although it looks like a letter.
func (m *matcher) startsWord(n int) bool {
	before := func(i int64) byte {
		if at := m.seen - int64(n) - i; at >= 0 {
			return m.recent[at%recentBytes]
		}
		return ' '
	}
	b := before(1)
	if !alnum[b] {
		return true
	}
	return before(2) == '\\' && (b == 'n' || b == 't' || b == 'r') ||
		before(3) == '%' && alnum[before(2)]
}

// copyFrom makes m an independent copy of o, reusing m's memory.
func (m *matcher) copyFrom(o *matcher) {
	gaps, candidates := append(m.gaps[:0], o.gaps...), append(m.candidates[:0], o.candidates...)
	*m = *o
	m.gaps, m.candidates = gaps, candidates
}

// skip notes that the bytes of the stream up to next are not part of the view.
// A value may go on after a line end, what a rule follows does not.
func (m *matcher) skip(next int64, lineEnd bool) {
	if lineEnd {
		m.candidates = m.candidates[:0]
	}
	g := gap{seen: m.seen, skipped: next - m.seen}
	switch n := len(m.gaps); {
	case m.idle():
		m.gaps = m.gaps[:0] // no position before the gap will be asked for
	case n > 0 && m.gaps[n-1].seen == m.seen:
		m.gaps = m.gaps[:n-1]
	case n > 2*m.auto.longest: // nor any before the longest pattern
		m.gaps = m.gaps[:copy(m.gaps, m.gaps[n-m.auto.longest:])]
	}
	m.gaps = append(m.gaps, g)
}

// pastGaps says whether nothing that is under way, and no question of what
// stands before a prefix, reaches back over a gap.
func (m *matcher) pastGaps() bool {
	if len(m.candidates) > 0 {
		return false
	}
	return len(m.gaps) == 0 || m.seen-max(m.depth(), recentBytes) >= m.gaps[len(m.gaps)-1].seen
}
