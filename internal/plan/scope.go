package plan

import (
	"slices"
	"strings"
)

// Scope is a compiled list of globs. It is immutable and cheap to compare; the
// zero value is the empty scope.
type Scope struct {
	texts     []string
	globs     []glob
	owner     []int // globs[i] comes from texts[owner[i]]
	foldCase  bool
	undecided int // index of the first text that could not be read, -1 without one
	exclusive bool
}

// CompileScope compiles globs; foldCase follows the repository's core.ignorecase.
// A glob that validation would refuse matches nothing and overlaps everything.
func CompileScope(globs []string, foldCase bool) *Scope {
	s := &Scope{texts: slices.Clone(globs), foldCase: foldCase, undecided: -1, exclusive: len(globs) == 0}
	for i, text := range globs {
		compiled, err := compileGlob(text, foldCase)
		if err != nil {
			if s.undecided < 0 {
				s.undecided = i
			}
			continue
		}
		for _, g := range compiled {
			s.globs = append(s.globs, g)
			s.owner = append(s.owner, i)
		}
	}
	return s
}

// Exclusive reports an empty scope: it owns every unprotected path, so its node
// runs alone.
func (s *Scope) Exclusive() bool { return s == nil || s.exclusive || len(s.texts) == 0 }

// Overlaps reports whether some path may be in both scopes. What cannot be
// decided overlaps, and an empty scope overlaps everything.
func (s *Scope) Overlaps(other *Scope) bool {
	if s.Exclusive() || other.Exclusive() || s.undecided >= 0 || other.undecided >= 0 {
		return true
	}
	for i := range s.globs {
		for j := range other.globs {
			if s.globs[i].overlaps(other.globs[j]) {
				return true
			}
		}
	}
	return false
}

// Conflicts reports whether two nodes with these scopes may not run at the same
// time: the scopes overlap and not both nodes declared shared_append. Nothing
// runs beside an exclusive scope.
func (s *Scope) Conflicts(other *Scope, bothSharedAppend bool) bool {
	if s.Exclusive() || other.Exclusive() {
		return true
	}
	return !bothSharedAppend && s.Overlaps(other)
}

// Match reports whether a path, as git lists it, lies inside the scope. An empty
// scope matches nothing here: whether it owns a path is the caller's question.
func (s *Scope) Match(path string) bool {
	return s.matchingGlob(path) >= 0
}

// MatchingGlob returns the glob, as written, that a path lies in.
func (s *Scope) MatchingGlob(path string) (string, bool) {
	if i := s.matchingGlob(path); i >= 0 {
		return s.texts[s.owner[i]], true
	}
	return "", false
}

func (s *Scope) matchingGlob(path string) int {
	if s == nil || len(s.globs) == 0 {
		return -1
	}
	parts := strings.Split(canonical(path, s.foldCase), "/")
	for i := range s.globs {
		if s.globs[i].matches(parts) {
			return i
		}
	}
	return -1
}

// NamesLiterally reports whether the scope names exactly this path, without any
// wildcard. Protected files need that.
func (s *Scope) NamesLiterally(path string) bool {
	if s == nil {
		return false
	}
	parts := strings.Split(canonical(path, s.foldCase), "/")
	for i := range s.globs {
		if s.globs[i].literal && s.globs[i].matches(parts) {
			return true
		}
	}
	return false
}

// GlobPair is a glob of each of two scopes that overlap, as written.
type GlobPair struct {
	A string `json:"a"`
	B string `json:"b"`
}

// OverlappingGlobs returns at most limit pairs of globs that overlap, in the order
// in which they are written. Exclusive scopes have no globs and give none.
func (s *Scope) OverlappingGlobs(other *Scope, limit int) []GlobPair {
	var pairs []GlobPair
	for i := range s.texts {
		for j := range other.texts {
			if len(pairs) >= limit {
				return pairs
			}
			if s.textOverlaps(i, other, j) {
				pairs = append(pairs, GlobPair{s.texts[i], other.texts[j]})
			}
		}
	}
	return pairs
}

func (s *Scope) textOverlaps(i int, other *Scope, j int) bool {
	if i == s.undecided || j == other.undecided {
		return true
	}
	for a := range s.globs {
		for b := range other.globs {
			if s.owner[a] == i && other.owner[b] == j && s.globs[a].overlaps(other.globs[b]) {
				return true
			}
		}
	}
	return false
}

// ScopesOverlap compares two lists of globs; callers with many pairs compile first.
func ScopesOverlap(a, b []string, foldCase bool) bool {
	return CompileScope(a, foldCase).Overlaps(CompileScope(b, foldCase))
}

// InScope reports whether one of the globs matches the path.
func InScope(globs []string, path string, foldCase bool) bool {
	return CompileScope(globs, foldCase).Match(path)
}

// NamedLiterally reports whether one of the globs is exactly this path.
func NamedLiterally(globs []string, path string, foldCase bool) bool {
	return CompileScope(globs, foldCase).NamesLiterally(path)
}

// within reports that every path of the scope surely lies in the other one.
func (s *Scope) within(other *Scope) bool {
	for i := range s.globs {
		covered := false
		for j := range other.globs {
			covered = covered || s.globs[i].within(other.globs[j])
		}
		if !covered {
			return false
		}
	}
	return len(s.globs) > 0
}
