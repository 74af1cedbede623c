package gate

import (
	"path"
	"slices"

	"golang.org/x/mod/modfile"
)

// golang offers build, vet and test for each module that holds a package.
func (s *scan) golang() {
	modules := s.dirsOf("go.mod")
	spaces := s.dirsOf("go.work")
	uses := map[string][]string{}
	for _, w := range spaces {
		uses[w] = s.workspaceUses(w)
	}
	holding := s.holdingGo(modules)
	for _, m := range modules {
		if !holding[m] {
			continue // `go vet ./...` fails where no package matches
		}
		var prefix []string
		if w := enclosing(m, spaces); w != "" {
			s.source(w, "go.work")
			if !slices.Contains(uses[w], m) {
				// The go command refuses packages of a module that the enclosing workspace does not use.
				prefix = []string{"env", "GOWORK=off"}
			}
		}
		s.add(LayerBuild, m, slices.Concat(prefix, []string{"go", "build", "./..."})...)
		s.add(LayerCheck, m, slices.Concat(prefix, []string{"go", "vet", "./..."})...)
		s.add(LayerTest, m, slices.Concat(prefix, []string{"go", "test", "./..."})...)
	}
}

func (s *scan) workspaceUses(dir string) []string {
	p := path.Join(dir, "go.work")
	file, err := modfile.ParseWork(p, s.read(p), nil)
	if err != nil {
		s.warn(p, err)
		return nil
	}
	var out []string
	for _, use := range file.Use {
		out = append(out, path.Join(dir, use.Path))
	}
	return out
}

// holdingGo returns the modules to which a Go file belongs, in one pass over the files: trees are large.
func (s *scan) holdingGo(modules []string) map[string]bool {
	known := make(map[string]bool, len(modules))
	for _, m := range modules {
		known[m] = true
	}
	holding := map[string]bool{}
	for _, p := range s.goFiles {
		dir := path.Dir(p)
		for !known[dir] && dir != "." {
			dir = path.Dir(dir)
		}
		holding[dir] = true
	}
	return holding
}
