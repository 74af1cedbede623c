package plan

// matches reports whether the parts of a canonical path match. It keeps one
// place to come back to, the last **, as one star suffices in a wildcard match.
func (g glob) matches(path []string) bool {
	gi, pi, backGlob, backPath := 0, 0, -1, 0
	for pi < len(path) {
		switch {
		case gi < len(g.parts) && g.parts[gi].deep:
			backGlob, backPath = gi, pi
			gi++
			continue
		case gi < len(g.parts) && g.parts[gi].matches(path[pi]):
			gi++
			pi++
			continue
		case backGlob < 0:
			return false
		}
		backPath++
		gi, pi = backGlob+1, backPath
	}
	for gi < len(g.parts) && g.parts[gi].deep {
		gi++
	}
	return gi == len(g.parts)
}

func (p part) matches(text string) bool {
	if p.toks == nil {
		return p.text == text
	}
	runes := []rune(text)
	ti, ri, backTok, backRune := 0, 0, -1, 0
	for ri < len(runes) {
		switch {
		case ti < len(p.toks) && p.toks[ti].star:
			backTok, backRune = ti, ri
			ti++
			continue
		case ti < len(p.toks) && p.toks[ti].matches(runes[ri]):
			ti++
			ri++
			continue
		case backTok < 0:
			return false
		}
		backRune++
		ti, ri = backTok+1, backRune
	}
	for ti < len(p.toks) && p.toks[ti].star {
		ti++
	}
	return ti == len(p.toks)
}

func (t token) matches(r rune) bool {
	return t.any || t.has(r) != t.negate
}

func (t token) has(r rune) bool {
	for _, rg := range t.ranges {
		if rg.lo <= r && r <= rg.hi {
			return true
		}
	}
	return false
}

// overlaps reports whether some path may match both globs. Fixed parts are
// compared first, since most pairs differ in their first folder.
func (g glob) overlaps(other glob) bool {
	a, b := g.parts, other.parts
	for len(a) > 0 && len(b) > 0 && !a[0].deep && !b[0].deep {
		if !a[0].overlaps(b[0]) {
			return false
		}
		a, b = a[1:], b[1:]
	}
	switch {
	case len(a) == 0 && len(b) == 0:
		return true
	case len(a) == 0 && g.literal, len(b) == 0 && other.literal:
		// A file and a folder of one name cannot both exist.
		return true
	}
	return partsOverlap(a, b)
}

// partsOverlap asks from the end backwards whether a[i:] and b[j:] share a path.
func partsOverlap(a, b []part) bool {
	width := len(b) + 1
	table := make([]bool, (len(a)+1)*width)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			below, right := false, false // a[i:] gives up its head, b[j:] gives up its head
			if i < len(a) {
				below = table[(i+1)*width+j]
			}
			if j < len(b) {
				right = table[i*width+j+1]
			}
			switch {
			case i == len(a) && j == len(b):
				table[i*width+j] = true
			case i < len(a) && a[i].deep, j < len(b) && b[j].deep:
				// A ** ends (its head goes) or takes the head of the other side.
				table[i*width+j] = below || right
			case i < len(a) && j < len(b):
				table[i*width+j] = table[(i+1)*width+j+1] && a[i].overlaps(b[j])
			}
		}
	}
	return table[0]
}

func (p part) overlaps(other part) bool {
	switch {
	case p.toks == nil && other.toks == nil:
		return p.text == other.text
	case p.toks == nil:
		return other.matches(p.text)
	case other.toks == nil:
		return p.matches(other.text)
	}
	return tokensOverlap(p.toks, other.toks)
}

func tokensOverlap(a, b []token) bool {
	width := len(b) + 1
	table := make([]bool, (len(a)+1)*width)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			starA, starB := i < len(a) && a[i].star, j < len(b) && b[j].star
			var yes bool
			switch {
			case i == len(a) && j == len(b):
				yes = true
			case starA || starB:
				yes = (i < len(a) && table[(i+1)*width+j]) || (j < len(b) && table[i*width+j+1])
			case i < len(a) && j < len(b):
				yes = table[(i+1)*width+j+1] && a[i].overlaps(b[j])
			}
			table[i*width+j] = yes
		}
	}
	return table[0]
}

// overlaps is exact for plain classes; two negated ones always share a rune, and
// a plain class meets a negated one unless every rune of its ends is excluded,
// which is asked of the ends only: what is not decided overlaps.
func (t token) overlaps(other token) bool {
	switch {
	case t.any || other.any, t.negate && other.negate:
		return true
	case t.negate:
		return other.overlaps(t)
	case other.negate:
		for _, r := range t.ranges {
			if r.lo != r.hi || !other.has(r.lo) {
				return true
			}
		}
		return false
	}
	for _, r := range t.ranges {
		for _, o := range other.ranges {
			if r.lo <= o.hi && o.lo <= r.hi {
				return true
			}
		}
	}
	return false
}

// within is sure where the other glob is a folder and all below it, or where the
// glob names one path; elsewhere it says no.
func (g glob) within(other glob) bool {
	if g.literal {
		path := make([]string, len(g.parts))
		for i, p := range g.parts {
			path[i] = p.text
		}
		return other.matches(path)
	}
	fixed := len(other.parts) - 1
	if !other.parts[fixed].deep || len(g.parts) < fixed {
		return false
	}
	for i, p := range other.parts[:fixed] {
		if p.deep || p.toks != nil || g.parts[i].deep || g.parts[i].toks != nil || g.parts[i].text != p.text {
			return false
		}
	}
	return true
}
