package gate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Tree is the files of one commit.
type Tree interface {
	// Paths lists every file, slash-separated from the root.
	Paths() ([]string, error)
	// Read returns the content of a listed file.
	Read(path string) ([]byte, error)
}

// Discovery is what a tree offers as a gate. Its zero value is a tree with
// nothing to run: `start` and `plan validate --repo` refuse that.
type Discovery struct {
	// Commands in the order in which they run: by layer, folder, ecosystem.
	Commands []contract.GateCommand `json:"commands"`
	// Setup prepares a fresh tree for the commands (`npm ci`), for plans that name no setup of their own.
	Setup []contract.GateCommand `json:"setup,omitempty"`
	// Sources are the files whose content decided a command or what it covers; they are protected.
	// go.mod is none: a dependency must stay repairable, and it cannot switch a test off.
	Sources []string `json:"sources,omitempty"`
	// Residual names what the commands do not cover (runtime_residual).
	Residual []string `json:"residual,omitempty"`
	// Warnings name files that could not be understood; the rest is discovered without them.
	Warnings []string `json:"warnings,omitempty"`
}

// Discover finds the gate of a tree. An error is a file that could not be read, never a malformed one.
func Discover(tree Tree) (Discovery, error) {
	paths, err := tree.Paths()
	if err != nil {
		return Discovery{}, fmt.Errorf("list files: %w", err)
	}
	paths = slices.Sorted(slices.Values(paths))
	s := &scan{tree: tree, files: make(map[string]bool, len(paths)), named: map[string][]string{}, projects: map[string]bool{}}
	for _, p := range paths {
		s.files[p] = true
		if !ignored(p) {
			s.named[path.Base(p)] = append(s.named[path.Base(p)], p)
			if strings.HasSuffix(p, ".go") {
				s.goFiles = append(s.goFiles, p)
			}
		}
	}
	// Make comes last: it speaks only for folders that nothing else speaks for.
	for _, find := range []func(){s.golang, s.node, s.rust, s.python, s.maven, s.gradle, s.makefile} {
		find()
	}
	if s.err != nil {
		return Discovery{}, s.err
	}
	return s.finish(), nil
}

// scan collects one discovery. The first read error sticks and ends it.
type scan struct {
	tree     Tree
	files    map[string]bool
	named    map[string][]string // base name → paths outside ignored folders
	goFiles  []string
	projects map[string]bool // folders that an ecosystem claimed
	err      error
	out      Discovery
}

func (s *scan) finish() Discovery {
	byPlace := func(a, b contract.GateCommand) int {
		return cmp.Or(cmp.Compare(layerRank(a.Layer), layerRank(b.Layer)), cmp.Compare(a.Dir, b.Dir))
	}
	slices.SortStableFunc(s.out.Commands, byPlace)
	slices.SortStableFunc(s.out.Setup, byPlace)
	for _, list := range []*[]string{&s.out.Sources, &s.out.Residual, &s.out.Warnings} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return s.out
}

// ignored reports whether a path lies where no project of the repository starts:
// dependencies, fixtures, hidden and private folders.
func ignored(p string) bool {
	dir := path.Dir(p)
	if dir == "." {
		return false
	}
	for part := range strings.SplitSeq(dir, "/") {
		switch part {
		case "node_modules", "vendor", "testdata", "third_party", "__fixtures__", "bower_components", "site-packages":
			return true
		}
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return true
		}
	}
	return false
}

// dirsOf lists the folders that hold a file of one of the names, parents first.
func (s *scan) dirsOf(names ...string) []string {
	var dirs []string
	for _, name := range names {
		for _, p := range s.named[name] {
			dirs = append(dirs, path.Dir(p))
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b)) })
	return slices.Compact(dirs)
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// has reports whether the folder holds the file.
func (s *scan) has(dir, name string) bool { return s.files[path.Join(dir, name)] }

// first returns the first of the names that the folder holds, or "".
func (s *scan) first(dir string, names ...string) string {
	for _, name := range names {
		if s.has(dir, name) {
			return name
		}
	}
	return ""
}

// read returns a file of the tree; nil when it is absent or the scan has failed.
func (s *scan) read(p string) []byte {
	if s.err != nil || !s.files[p] {
		return nil
	}
	data, err := s.tree.Read(p)
	if err != nil {
		s.err = fmt.Errorf("read %s: %w", p, err)
	}
	return data
}

func (s *scan) add(layer, dir string, argv ...string) {
	s.projects[dir] = true
	c := contract.GateCommand{Command: plan.Command{Argv: argv}, Layer: layer}
	if dir != "." {
		c.Dir = dir
	}
	if layer == LayerSetup {
		s.out.Setup = append(s.out.Setup, c)
		return
	}
	s.out.Commands = append(s.out.Commands, c)
}

// source marks files as decisive; names that the folder does not hold are left out.
func (s *scan) source(dir string, names ...string) {
	for _, name := range names {
		if s.has(dir, name) {
			s.out.Sources = append(s.out.Sources, path.Join(dir, name))
		}
	}
}

func (s *scan) warn(p string, err error) {
	s.out.Warnings = append(s.out.Warnings, fmt.Sprintf("%s: %s", p, strings.Join(strings.Fields(err.Error()), " ")))
}

func (s *scan) residual(dir, text string) {
	if dir == "." {
		dir = "the root"
	}
	s.out.Residual = append(s.out.Residual, dir+": "+text)
}

// within reports whether dir is parent or lies below it.
func within(dir, parent string) bool {
	return parent == "." || dir == parent || strings.HasPrefix(dir, parent+"/")
}

// enclosing returns the closest of the folders that contain dir (itself included), or "".
func enclosing(dir string, folders []string) string {
	best, found := "", false
	for _, f := range folders {
		if within(dir, f) && (!found || depth(f) > depth(best)) {
			best, found = f, true
		}
	}
	return best
}

// relative is dir seen from parent, which contains it.
func relative(dir, parent string) string {
	if parent == "." {
		return dir
	}
	return strings.TrimPrefix(strings.TrimPrefix(dir, parent), "/")
}
