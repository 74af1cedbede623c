package plan

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// Globs have doublestar's syntax: `*` and `?` within one path part, `**` as a
// whole part for any number of parts, `[a-z]`, `[!a-z]`, `{one,two}` and a
// backslash that takes the next character literally. A glob that ends in a slash
// means everything below.

// maxAlternatives bounds what braces of one glob may multiply to.
const maxAlternatives = 256

var (
	errGlobSyntax       = errors.New("its brackets, braces or backslashes do not close")
	errGlobAlternatives = errors.New("its braces expand to more than 256 alternatives")
	errGlobClassSlash   = errors.New("a slash stands inside [...]")
)

// glob is one alternative of a compiled glob: braces are expanded.
type glob struct {
	parts   []part
	literal bool // no part has a wildcard
}

// part is one path part of a glob.
type part struct {
	deep bool    // ** : any number of parts
	text string  // what it matches when tokens is empty
	toks []token // wildcards; empty for literals
}

// token matches one rune, or any number of them.
type token struct {
	star   bool
	any    bool
	negate bool
	ranges []runeRange // one literal rune is a range of itself
}

type runeRange struct{ lo, hi rune }

// compileGlob expands and splits a glob.
func compileGlob(text string, foldCase bool) ([]glob, error) {
	if err := checkPathText(text); err != nil {
		return nil, err
	}
	if !doublestar.ValidatePattern(text) {
		return nil, errGlobSyntax
	}
	alternatives, err := expandBraces(norm.NFC.String(text))
	if err != nil {
		return nil, err
	}
	globs := make([]glob, 0, len(alternatives))
	for _, alternative := range alternatives {
		g, err := splitGlob(alternative, foldCase)
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	return globs, nil
}

func splitGlob(text string, foldCase bool) (glob, error) {
	if strings.HasPrefix(text, "/") {
		return glob{}, errPathAbsolute
	}
	below := strings.HasSuffix(text, "/")
	texts, err := cleanParts(text)
	if err != nil {
		return glob{}, err
	}
	if below {
		texts = append(texts, "**")
	}
	g := glob{parts: make([]part, 0, len(texts)), literal: true}
	for _, t := range texts {
		p, err := compilePart(t, foldCase)
		if err != nil {
			return glob{}, err
		}
		if p.deep && len(g.parts) > 0 && g.parts[len(g.parts)-1].deep {
			continue // **/** says no more than **
		}
		if !p.deep && p.toks == nil { // escapes hid it from cleanParts
			if _, err := cleanParts(p.text); err != nil {
				return glob{}, err
			}
		}
		g.literal = g.literal && !p.deep && p.toks == nil
		g.parts = append(g.parts, p)
	}
	return g, nil
}

func compilePart(text string, foldCase bool) (part, error) {
	if text == "**" {
		return part{deep: true}, nil
	}
	var toks []token
	var literal strings.Builder
	wild := false
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '*':
			wild = true
			if len(toks) == 0 || !toks[len(toks)-1].star {
				toks = append(toks, token{star: true})
			}
		case '?':
			wild = true
			toks = append(toks, token{any: true})
		case '[':
			wild = true
			class, next, ok := parseClass(runes, i+1)
			if !ok {
				return part{}, errGlobClassSlash // a class cut by a slash does not close in this part
			}
			if foldCase {
				class.ranges = class.foldedRanges()
			}
			toks = append(toks, class)
			i = next
		case '\\':
			if i+1 >= len(runes) {
				return part{}, errGlobSyntax
			}
			i++
			r = runes[i]
			fallthrough
		default:
			if foldCase {
				r = foldRune(r)
			}
			literal.WriteRune(r)
			toks = append(toks, token{ranges: []runeRange{{r, r}}})
		}
	}
	if !wild {
		return part{text: literal.String()}, nil
	}
	return part{toks: toks}, nil
}

// parseClass reads a class after its bracket and returns the index of the closing one.
func parseClass(runes []rune, i int) (token, int, bool) {
	class := token{}
	if i < len(runes) && (runes[i] == '!' || runes[i] == '^') {
		class.negate = true
		i++
	}
	for i < len(runes) && runes[i] != ']' {
		lo, next, ok := classRune(runes, i)
		if !ok {
			return class, 0, false
		}
		hi := lo
		if next+1 < len(runes) && runes[next] == '-' && runes[next+1] != ']' {
			if hi, next, ok = classRune(runes, next+1); !ok {
				return class, 0, false
			}
		}
		class.ranges = append(class.ranges, runeRange{lo, hi})
		i = next
	}
	return class, i, i < len(runes)
}

func classRune(runes []rune, i int) (rune, int, bool) {
	if runes[i] == '\\' {
		i++
	}
	if i >= len(runes) {
		return 0, 0, false
	}
	return runes[i], i + 1, true
}

// foldedRanges turns a class into one over folded runes. A plain class takes a
// rune when one of its case variants is listed, a negated one excludes a rune
// only when all of them are: folding never loses a path.
func (t token) foldedRanges() []runeRange {
	const lastCased = 0x1ffff // nothing above this plane has case
	var out []runeRange
	add := func(lo, hi rune) {
		if n := len(out); n > 0 && out[n-1].hi+1 == lo {
			out[n-1].hi = hi
			return
		}
		out = append(out, runeRange{lo, hi})
	}
	for _, r := range t.ranges {
		for c := r.lo; c <= min(r.hi, lastCased); c++ {
			if !t.negate || t.hasVariants(c) {
				f := foldRune(c)
				add(f, f)
			}
		}
		if lo := max(r.lo, lastCased+1); lo <= r.hi {
			add(lo, r.hi)
		}
	}
	return out
}

func (t token) hasVariants(r rune) bool {
	for v := unicode.SimpleFold(r); v != r; v = unicode.SimpleFold(v) {
		if !t.has(v) {
			return false
		}
	}
	return true
}

// expandBraces writes out the alternatives of every {a,b}, nested ones too.
func expandBraces(text string) ([]string, error) {
	open, commas, end := findBraces(text)
	if open < 0 {
		return []string{text}, nil
	}
	bounds := slices.Concat([]int{open}, commas, []int{end})
	var out []string
	for i := range len(bounds) - 1 {
		inner, err := expandBraces(text[:open] + text[bounds[i]+1:bounds[i+1]] + text[end+1:])
		if err != nil {
			return nil, err
		}
		if out = append(out, inner...); len(out) > maxAlternatives {
			return nil, errGlobAlternatives
		}
	}
	return out, nil
}

// findBraces finds the first group, its commas and its end; open is -1 without one.
func findBraces(text string) (open int, commas []int, end int) {
	open = -1
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			i = skipClass(text, i)
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return open, commas, i
			}
		}
	}
	return -1, nil, -1
}

// skipClass returns the index of the bracket that closes the class opened at i,
// or i when none does.
func skipClass(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case ']':
			return j
		}
	}
	return i
}
