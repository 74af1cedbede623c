package quota

import (
	"slices"
	"strings"
)

// finding is what one statement means.
type finding struct {
	outcome Outcome
	rule    string
	rank    sense // smaller wins among statements
	model   bool
	reset   *stamp
	source  resetSource
	text    string // evidence
}

// resetSource orders the places where a reset was stated; smaller wins.
type resetSource uint8

const (
	fromField resetSource = iota
	fromHeader
	fromText
	fromOwn
	noReset
)

// reading is one message, cut into tokens, with the phrases found in it.
type reading struct {
	parser
	hits  []hit
	plain bool // text of a channel that others write to as well
}

func (c calendar) readText(s string) reading {
	r := reading{parser: parser{calendar: c, src: clean(s)}}
	r.toks = tokenize(r.src)
	r.hits = r.meant(refusals.find(r.toks))
	return r
}

// meant drops hits that the text takes back: limits of the program itself,
// warnings, and shares below 100 %.
func (r *reading) meant(hits []hit) []hit {
	var own, warn []hit
	for _, h := range hits {
		switch h.sense {
		case ownLimit:
			own = append(own, h)
		case warning:
			warn = append(warn, h)
		default:
		}
	}
	return slices.DeleteFunc(hits, func(h hit) bool {
		switch h.sense {
		case limited, quotaWord, spendCap:
			return overlaps(own, h) || r.warned(warn, h) || r.partlyUsed(h)
		default:
			return h.sense == warning || h.sense == ownLimit
		}
	})
}

// overlaps tells whether one of the others, which are sorted, shares a token
// with the hit.
func overlaps(others []hit, h hit) bool {
	for _, o := range near(others, h.from-maxPhrase, h.to) {
		if o.from < h.to && h.from < o.to {
			return true
		}
	}
	return false
}

// maxPhrase bounds the tokens of a hit, for searches among sorted hits.
const maxPhrase = 40

// near gives the hits that start in [from, to).
func near(hits []hit, from, to int) []hit {
	byStart := func(h hit, at int) int { return h.from - at }
	i, _ := slices.BinarySearchFunc(hits, from, byStart)
	j, _ := slices.BinarySearchFunc(hits, to, byStart)
	return hits[i:max(i, j)]
}

// warned tells whether a warning stands shortly before the hit, in the same
// sentence.
func (r *reading) warned(warnings []hit, h hit) bool {
	for _, w := range near(warnings, h.from-maxPhrase, h.to) {
		if w.from >= h.to || h.from-w.to > 8 {
			continue
		}
		stopped := false
		for i := w.to - 1; i < h.from && i >= 0; i++ {
			stopped = stopped || r.toks[i].stop || i > w.to-1 && r.toks[i].line && r.opens(i)
		}
		if !stopped {
			return true
		}
	}
	return false
}

// partlyUsed tells whether the sentence of the hit gives a share below 100 %.
func (r *reading) partlyUsed(h hit) bool {
	from, to := r.sentence(h)
	for i := from; i+1 < to; i++ {
		if r.toks[i].kind == num && r.toks[i+1].is("%") && !r.toks[i+1].space {
			n, _ := r.number(i, 3)
			if prev := r.tok(i - 1); !prev.is(".") || prev.space || r.toks[i].space {
				return n < 100
			}
		}
	}
	return false
}

// sentence gives the tokens of the sentence around a hit. A line that looks
// like the start of a sentence starts one.
func (r *reading) sentence(h hit) (from, to int) {
	return r.around(h, r.opens)
}

// longSentence bounds, in tokens, how far a sentence is followed.
const longSentence = 60

// period gives the same over lines that may be wrapped ones.
func (r *reading) period(h hit) (from, to int) {
	return r.around(h, func(int) bool { return false })
}

func (r *reading) around(h hit, opens func(int) bool) (from, to int) {
	from, to = h.from, h.to
	starts := func(i int) bool {
		return r.toks[i-1].stop || r.toks[i].line && (opens(i) || !r.wrapped(i))
	}
	for from > 0 && h.from-from < longSentence && !starts(from) {
		from--
	}
	for to < len(r.toks) && to-h.to < longSentence && !starts(to) {
		to++
	}
	return from, to
}

// wrapped tells whether the line that starts with token i may be the rest of
// the one before it: that one had no room for its first word.
func (r *reading) wrapped(i int) bool {
	end := strings.LastIndexByte(r.src[:r.toks[i].from], '\n')
	if end < 0 {
		return false
	}
	from := max(0, end-wrapColumn)
	start := strings.LastIndexByte(r.src[from:end], '\n')
	if start < 0 && from > 0 {
		return true // a long line
	}
	width := end - from - start - 1
	return width+1+int(r.toks[i].to-r.toks[i].from) > wrapColumn
}

// opens tells whether the line that starts with token i looks like the start
// of a sentence and not like the rest of a wrapped one.
func (r *reading) opens(i int) bool {
	t := r.tok(i)
	if t.kind == punct {
		return !t.is("(") && !t.is("·")
	}
	if errorWords[t.text] && r.tok(i+1).is(":") {
		return true
	}
	c := r.src[t.from]
	return c >= 'A' && c <= 'Z' || c >= 0x80
}

func (r *reading) of(s sense) []hit {
	var out []hit
	for _, h := range r.hits {
		if h.sense == s {
			out = append(out, h)
		}
	}
	return out
}

// statement is something that the provider said.
type statement struct {
	facts
	readings []reading
	spoken   []hit // hits of the codes
	retry    bool  // the program was going to try again
	line     string
	headers  headerSet
}

func (c calendar) statement(f facts, line string) statement {
	s := statement{facts: f, line: line}
	if len(s.texts) == 0 {
		for _, t := range f.spare {
			s.say(c, t, 0)
		}
	}
	for _, t := range s.texts {
		r := c.readText(t)
		s.statuses = append(s.statuses, r.statuses()...)
		s.readings = append(s.readings, r)
	}
	for _, code := range s.codes {
		toks := tokenize(clean(code))
		s.spoken = append(s.spoken, refusals.find(toks)...)
		s.spoken = append(s.spoken, codesOnly.find(toks)...)
	}
	return s
}

// code gives the rule of a code with the given sense.
func (s *statement) code(want sense) (string, bool) {
	for _, h := range s.spoken {
		if h.sense == want {
			return "field:" + h.name, true
		}
	}
	return "", false
}

// says gives the rule of a phrase with the given sense.
func (s *statement) says(want sense) (string, bool) {
	for i := range s.readings {
		for _, h := range s.readings[i].hits {
			if h.sense == want {
				return "text:" + h.name, true
			}
		}
	}
	return "", false
}

func (s *statement) either(want sense) (string, bool) {
	if rule, ok := s.code(want); ok {
		return rule, true
	}
	return s.says(want)
}

func (s *statement) status(codes ...int) bool {
	for _, c := range codes {
		if slices.Contains(s.statuses, c) {
			return true
		}
	}
	return false
}
