package gate

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var makeNames = []string{"GNUmakefile", "makefile", "Makefile"}

// makeRule matches the targets of a rule; `:=`, `::=` and recipe lines are none.
var makeRule = regexp.MustCompile(`(?m)^([A-Za-z0-9_./ -]+?)\s*::?(?:[^=:]|$)`)

// makefile offers the targets check and test of folders for which no other
// ecosystem speaks: elsewhere they repeat what is discovered directly.
func (s *scan) makefile() {
	var roots []string
	for _, dir := range s.dirsOf(makeNames...) {
		if s.projects[dir] || s.insideProject(dir) || enclosing(dir, roots) != "" {
			continue
		}
		name := s.first(dir, makeNames...) // the order in which make itself looks
		targets := makeTargets(s.read(path.Join(dir, name)))
		for _, t := range []struct{ layer, target string }{{LayerCheck, "check"}, {LayerTest, "test"}} {
			if !slices.Contains(targets, t.target) {
				continue
			}
			s.add(t.layer, dir, "make", t.target)
			s.source(dir, name)
			roots = append(roots, dir)
		}
	}
}

func (s *scan) insideProject(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if s.projects[dir] {
			return true
		}
	}
	return s.projects["."]
}

func makeTargets(data []byte) []string {
	var out []string
	for _, m := range makeRule.FindAllSubmatch(data, -1) {
		out = append(out, strings.Fields(string(m[1]))...)
	}
	return out
}
