package quota

import (
	"slices"
	"time"
)

// This file finds the resets that a message states and picks the one that
// belongs to the limit that was reached.

// found is a time expression behind an anchor.
type found struct {
	stamp
	at    int // index of the anchor's first token
	sense sense
	bad   bool // a time is there, but it names no instant
}

const (
	reach     = 14 // tokens that may stand between an anchor and its time
	reachBack = 4  // the same where the time comes first
)

// resets reads all resets of a text in order.
func (p *parser) resets() []found {
	var out []found
	done := 0 // tokens before it belong to a time that was read
	hits := anchors.find(p.toks)
	for i, h := range hits {
		if h.from < done || longer(hits[i+1:], h) || longer(hits[max(i-4, 0):i], h) {
			continue
		}
		f := found{at: h.from, sense: h.sense}
		s, next, state := p.ahead(h)
		if state == nothing && h.sense != anchorOwn {
			s, state = p.behind(h)
		}
		switch state {
		case read:
			f.stamp = s
		case unreadable:
			if h.sense != anchorReset {
				continue
			}
			f.bad = true
		default:
			continue
		}
		done = max(done, next)
		out = append(out, f)
	}
	return out
}

// longer tells whether another hit starts at the same word and says more.
func longer(others []hit, h hit) bool {
	for _, o := range others[:min(len(others), 4)] {
		if o.from == h.from && o.to > h.to {
			return true
		}
	}
	return false
}

// allResets adds to the resets behind anchors the epochs that follow the name
// of a limit directly: "usage limit reached|1762952400".
func (r *reading) allResets() []found {
	out := r.resets()
	for _, h := range r.of(limited) {
		if r.tok(h.to).kind != punct || r.tok(h.to).stop {
			continue
		}
		if s, _, ok := r.epoch(h.to + 1); ok {
			out = append(out, found{stamp: s, at: h.to, sense: anchorReset})
		}
	}
	slices.SortStableFunc(out, func(a, b found) int { return a.at - b.at })
	return out
}

// ahead looks for a time behind the anchor.
func (p *parser) ahead(h hit) (s stamp, next int, state readState) {
	for i := h.to; i < len(p.toks) && i <= h.to+reach; i++ {
		if p.toks[i-1].stop {
			break
		}
		t := p.toks[i]
		prev := p.toks[i-1]
		if prev.is("in") {
			if wait, unit, next, ok := p.countdown(i); ok {
				at, ok := p.later(wait)
				return stamp{at, unit}, next, readIf(ok)
			}
		}
		if s, next, state = p.moment(i); state != nothing {
			return s, next, state
		}
		if t.kind == num {
			return p.bareNumber(i, h)
		}
		if t.kind == word && endsSearch[t.text] {
			break
		}
	}
	return stamp{}, h.to, nothing
}

// bareNumber reads "retry after 20", "retry_after_ms: 500": a wait in seconds
// where nothing else is said.
func (p *parser) bareNumber(i int, h hit) (stamp, int, readState) {
	n, next := p.float(i)
	prev, after := p.tok(i-1), p.tok(next)
	ends := after.kind == punct && !after.is(":") && !after.is("/") && !after.is("-") || after.line || after.stop
	lead := prev.is("after") || prev.is("in") || prev.is(":") || prev.is("=") || prev.is("ms") || prev.is("seconds") ||
		prev.is(`"`) || prev.is("'")
	if !lead || !ends || h.sense == anchorOwn && !prev.is("in") && !prev.is("after") {
		return stamp{}, next, unreadable
	}
	f := field{role: resetIn}
	for j := h.to; j < i; j++ {
		switch t := p.tok(j); {
		case t.is("ms") || t.is("millis") || t.is("milliseconds"):
			f.unit = time.Millisecond
		case t.kind == word && !bareLead[t.text]:
			return stamp{}, next, unreadable
		}
	}
	s, _, ok := f.number(p.calendar, n)
	return s, next, readIf(ok)
}

// bareLead are words that may stand between an anchor and a bare number.
var bareLead = set("in", "after", "for", "s", "sec", "seconds", "delay", "is", "at")

// behind looks for an instant that ends just before the anchor, as in Chinese
// or German, and for a wait of the form "5 小时后".
func (p *parser) behind(h hit) (stamp, readState) {
	first := h.from - 1
	for first > 0 && first > h.from-2*reach && !p.toks[first-1].stop {
		first--
	}
	for i := max(first, 0); i < h.from; i++ {
		if p.toks[i].kind != num && p.toks[i].kind != word {
			continue
		}
		s, next, state := p.moment(i)
		if state != read || next > h.from || next < h.from-reachBack {
			continue
		}
		if _, _, _, wait := p.duration(i); wait && !p.then(next) && !p.tok(i-1).is("in") && !p.tok(i-1).is("dans") {
			continue
		}
		return s, read
	}
	return stamp{}, nothing
}

// then tells whether token i says "after" behind a wait.
func (p *parser) then(i int) bool {
	switch p.tok(i).text {
	case "后", "後", "后再", "之", "以", "후", "later", "from", "until", "remaining", "left":
		return true
	}
	return false
}

// endsSearch are words after which a number is no time of the anchor.
var endsSearch = set("every", "each", "per", "later", "attempt", "now", "request", "requests", "see", "visit", "http", "https")

// pick chooses among the resets of a text: the first one behind each mention
// of a reached limit, of several the latest. Without such a mention the first.
// The program's own back-off counts only where the provider states nothing.
func pick(all []found, limits []hit) (best found, ok bool) {
	var stated, own []found
	for _, f := range all {
		if f.sense == anchorOwn {
			own = append(own, f)
		} else {
			stated = append(stated, f)
		}
	}
	for _, group := range [][]found{stated, own} {
		if len(group) == 0 {
			continue
		}
		if best, ok = pickFrom(group, limits); ok || len(stated) > 0 && best.bad {
			return best, ok
		}
	}
	return best, ok
}

func pickFrom(group []found, limits []hit) (best found, ok bool) {
	tied, next := false, 0
	for i, l := range limits {
		for next < len(group) && group[next].at < l.from {
			next++
		}
		if next == len(group) {
			break
		}
		f := group[next]
		if i+1 < len(limits) && f.at >= limits[i+1].from {
			continue // belongs to a later mention
		}
		tied = true
		if f.bad {
			if !ok {
				best = f
			}
		} else if !ok || f.stamp.at.After(best.stamp.at) {
			best, ok = f, true
		}
	}
	if tied {
		return best, ok
	}
	for _, f := range group {
		if !f.bad {
			return f, true
		}
		best = f
	}
	return best, false
}
