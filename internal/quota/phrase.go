package quota

import (
	"strconv"
	"strings"
	"sync"
)

// lexicon finds phrases among tokens. A phrase is a row of words; "a|b" is a
// choice, "~n" a gap of at most n other words. Punctuation between words does
// not matter, but a phrase never crosses the end of a sentence. It is built when
// it is first used: most processes of the product never read a provider's text.
type lexicon struct{ index func() *index }

// index is a lexicon that was built.
type index struct {
	words   map[string]int32
	phrases []phrase
	first   [][]int32 // word → phrases that start with it
}

type phrase struct {
	sense sense
	name  string // of the group: the rule that a verdict names
	steps []step
}

// step is one place of a phrase: how many words may be passed over, then one
// of the words.
type step struct {
	gap  int
	want []int32
}

// hit is a phrase found in tokens[from:to].
type hit struct {
	sense    sense
	name     string
	from, to int
}

// group is a named list of phrases of one sense, one phrase a line.
type group struct {
	sense   sense
	name    string
	phrases string
}

func newLexicon(groups []group) *lexicon {
	return &lexicon{sync.OnceValue(func() *index { return newIndex(groups) })}
}

func newIndex(groups []group) *index {
	l := &index{words: make(map[string]int32), first: make([][]int32, 1)}
	for _, g := range groups {
		for line := range strings.Lines(g.phrases) {
			if line = strings.TrimSpace(line); line != "" {
				l.add(g, line)
			}
		}
	}
	return l
}

func (l *index) add(g group, line string) {
	p := phrase{sense: g.sense, name: g.name}
	gap := 0
	for field := range strings.FieldsSeq(line) {
		if n, ok := strings.CutPrefix(field, "~"); ok {
			gap, _ = strconv.Atoi(n)
			continue
		}
		var s step
		if r := []rune(field); ideograph(r[0]) { // no blanks in this script
			for i, c := range r {
				s = step{want: []int32{l.id(string(c))}}
				if i == 0 {
					s.gap = gap
				}
				p.steps = append(p.steps, s)
			}
			gap = 0
			continue
		}
		s.gap = gap
		for w := range strings.SplitSeq(field, "|") {
			s.want = append(s.want, l.id(w))
		}
		p.steps = append(p.steps, s)
		gap = 0
	}
	l.phrases = append(l.phrases, p)
	for _, w := range p.steps[0].want {
		l.first[w] = append(l.first[w], int32(len(l.phrases)-1))
	}
}

func (l *index) id(w string) int32 {
	id, ok := l.words[w]
	if !ok {
		id = int32(len(l.first))
		l.words[w] = id
		l.first = append(l.first, nil)
	}
	return id
}

// place is a word among the tokens.
type place struct {
	id   int32 // 0: not in the lexicon
	at   int   // index of its token
	stop bool  // the sentence ends between it and the next word
}

// find gives all hits in the order of their first words.
func (x *lexicon) find(toks []token) []hit {
	l := x.index()
	places := make([]place, 0, len(toks))
	for i, t := range toks {
		if t.kind != punct {
			places = append(places, place{id: l.words[t.text], at: i, stop: t.stop})
		} else if n := len(places); n > 0 && t.stop {
			places[n-1].stop = true
		}
	}
	var hits []hit
	for i, p := range places {
		if p.id == 0 {
			continue
		}
		for _, k := range l.first[p.id] {
			ph := &l.phrases[k]
			if end, ok := match(ph.steps[1:], places, i); ok {
				hits = append(hits, hit{sense: ph.sense, name: ph.name, from: p.at, to: places[end].at + 1})
			}
		}
	}
	return hits
}

// match matches the steps behind places[i] and gives the last place used. It
// takes the nearest word for each step; that is enough for phrases whose gaps
// are short.
func match(steps []step, places []place, i int) (int, bool) {
	for _, s := range steps {
		found := false
		for gap := 0; gap <= s.gap && !found; gap++ {
			if places[i].stop || i+1 >= len(places) {
				return 0, false
			}
			i++
			for _, w := range s.want {
				if places[i].id == w {
					found = true
					break
				}
			}
		}
		if !found {
			return 0, false
		}
	}
	return i, true
}
