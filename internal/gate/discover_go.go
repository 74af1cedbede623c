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
	for _, m := range modules {
		if !s.holdsGo(m, modules) {
			continue
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

// holdsGo reports whether a Go file belongs to the module: `go vet ./...` fails where no package matches.
func (s *scan) holdsGo(module string, modules []string) bool {
	return slices.ContainsFunc(s.goFiles, func(p string) bool {
		return enclosing(path.Dir(p), modules) == module
	})
}
