package gate

import (
	"path"
	"slices"

	"github.com/BurntSushi/toml"
	"github.com/bmatcuk/doublestar/v4"
)

// cargoTOML is what discovery reads of a Cargo.toml.
type cargoTOML struct {
	Workspace *struct {
		Exclude []string `toml:"exclude"`
		Lints   lints    `toml:"lints"`
	} `toml:"workspace"`
	Lints lints `toml:"lints"`
}

type lints struct {
	Clippy map[string]any `toml:"clippy"`
}

// rust offers build and test for each crate or workspace, and clippy where the repository configures it.
func (s *scan) rust() {
	var roots []string
	excludes := map[string][]string{} // of the roots that are workspaces
	for _, dir := range s.dirsOf("Cargo.toml") {
		p := path.Join(dir, "Cargo.toml")
		var file cargoTOML
		if _, err := toml.Decode(string(s.read(p)), &file); err != nil {
			s.warn(p, err)
			continue
		}
		parent := enclosing(path.Dir(dir), roots)
		if exclude, isSpace := excludes[parent]; dir != "." && isSpace {
			if !slices.ContainsFunc(exclude, func(g string) bool { return underGlob(g, relative(dir, parent)) }) {
				continue // a member: cargo refuses crates inside a workspace that are neither member nor excluded
			}
			s.source(parent, "Cargo.toml")
		}
		roots = append(roots, dir)
		if file.Workspace != nil {
			excludes[dir] = file.Workspace.Exclude
		}
		s.crate(dir, file)
	}
}

func (s *scan) crate(dir string, file cargoTOML) {
	flags := []string{"--all-targets"}
	if file.Workspace != nil {
		flags = []string{"--workspace", "--all-targets"}
	}
	s.add(LayerBuild, dir, append([]string{"cargo", "build"}, flags...)...)
	configured := s.first(dir, "clippy.toml", ".clippy.toml")
	inManifest := len(file.Lints.Clippy) > 0 || file.Workspace != nil && len(file.Workspace.Lints.Clippy) > 0
	if configured != "" || inManifest {
		s.add(LayerCheck, dir, append([]string{"cargo", "clippy"}, flags...)...)
		s.source(dir, "clippy.toml", ".clippy.toml")
		if inManifest {
			s.source(dir, "Cargo.toml")
		}
	}
	test := []string{"cargo", "test"} // without --all-targets: that would leave the documentation's tests out
	if file.Workspace != nil {
		test = append(test, "--workspace")
	}
	s.add(LayerTest, dir, test...)
}

// underGlob reports whether the pattern names the folder or one above it.
func underGlob(pattern, dir string) bool {
	pattern = path.Clean(pattern)
	for ; dir != "." && dir != ""; dir = path.Dir(dir) {
		if ok, err := doublestar.Match(pattern, dir); err == nil && ok {
			return true
		}
	}
	return false
}
