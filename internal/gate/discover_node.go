package gate

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml"
)

// packageJSON is what discovery reads of a package.json.
type packageJSON struct {
	Scripts        map[string]string `json:"scripts"`
	Workspaces     workspaceGlobs    `json:"workspaces"`
	PackageManager string            `json:"packageManager"`
}

// workspaceGlobs is a list, or an object with a list in it (Yarn classic).
type workspaceGlobs []string

// UnmarshalJSON reads both forms.
func (w *workspaceGlobs) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*w = list
		return nil
	}
	var object struct {
		Packages []string `json:"packages"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	*w = object.Packages
	return nil
}

// nodeScripts are the scripts that make a gate, in the order of their layers.
var nodeScripts = []struct{ layer, script string }{
	{LayerBuild, "build"},
	{LayerCheck, "typecheck"}, {LayerCheck, "type-check"}, {LayerCheck, "check"}, {LayerCheck, "lint"},
	{LayerTest, "test"},
}

var nodeLockfiles = []struct{ file, manager string }{
	{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
	{"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"},
}

// node offers the scripts of each root package, and through it those of its workspace members.
func (s *scan) node() {
	packages := map[string]packageJSON{}
	var dirs, roots []string
	for _, dir := range s.dirsOf("package.json") {
		p := path.Join(dir, "package.json")
		var pkg packageJSON
		if err := json.Unmarshal(s.read(p), &pkg); err != nil {
			if s.err == nil {
				s.warn(p, err)
			}
			continue
		}
		dirs, packages[dir] = append(dirs, dir), pkg
	}
	members := map[string][]string{}
	for _, dir := range dirs {
		root := enclosing(path.Dir(dir), roots)
		switch {
		case dir != "." && root != "" && s.isMember(relative(dir, root), s.memberGlobs(root, packages[root])):
			members[root] = append(members[root], dir)
		case dir == "." || root == "" || s.nodeLock(dir) != "":
			roots = append(roots, dir)
		case hasScript(packages[dir], "test"):
			s.residual(dir, "package.json has a test script, but no lockfile, and no workspace contains it")
		}
	}
	for _, root := range roots {
		s.nodeRoot(root, packages, members[root])
	}
}

func (s *scan) nodeLock(dir string) string {
	for _, l := range nodeLockfiles {
		if s.has(dir, l.file) {
			return l.manager
		}
	}
	return ""
}

func (s *scan) memberGlobs(root string, pkg packageJSON) []string {
	globs := slices.Clone([]string(pkg.Workspaces))
	p := path.Join(root, "pnpm-workspace.yaml")
	if data := s.read(p); data != nil {
		var file struct {
			Packages []string `yaml:"packages"`
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			s.warn(p, err)
		}
		globs = append(globs, file.Packages...)
	}
	return globs
}

func (s *scan) isMember(dir string, globs []string) bool {
	member := false
	for _, g := range globs {
		pattern, exclude := strings.CutPrefix(g, "!")
		pattern = path.Clean(strings.TrimPrefix(pattern, "./"))
		if ok, err := doublestar.Match(pattern, dir); err == nil && ok {
			member = !exclude
		}
	}
	return member
}

// nodeRoot adds the commands of one root package.
func (s *scan) nodeRoot(root string, packages map[string]packageJSON, members []string) {
	pkg := packages[root]
	manager := s.packageManager(root, pkg)
	found := len(s.out.Commands)
	tested := false
	for _, n := range nodeScripts {
		having := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return !hasScript(packages[m], n.script) })
		switch {
		case hasScript(pkg, n.script):
			s.add(n.layer, root, manager.name, "run", n.script)
		case len(having) == 0:
			continue
		case manager.recursive == nil:
			for _, m := range having {
				s.add(n.layer, m, manager.name, "run", n.script)
			}
		default:
			s.add(n.layer, root, manager.recursive(n.script)...)
		}
		tested = tested || n.layer == LayerTest
		for _, m := range having {
			s.source(m, "package.json")
		}
	}
	if found == len(s.out.Commands) {
		return
	}
	s.source(root, "package.json", "pnpm-workspace.yaml")
	s.add(LayerSetup, root, manager.setup...)
	if !tested {
		s.residual(root, "package.json has no test script")
	}
}

// hasScript reports whether a script exists and does something: npm's default test only fails.
func hasScript(pkg packageJSON, name string) bool {
	script := strings.TrimSpace(pkg.Scripts[name])
	return script != "" && !strings.Contains(script, "no test specified")
}

// nodeManager is how one package manager is called.
type nodeManager struct {
	name      string
	setup     []string
	recursive func(script string) []string // in all members that have the script; nil: one by one
}

func (s *scan) packageManager(root string, pkg packageJSON) nodeManager {
	name, version, _ := strings.Cut(pkg.PackageManager, "@")
	locked := s.nodeLock(root)
	if !slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name) {
		name, version = locked, ""
	}
	switch name {
	case "pnpm":
		return nodeManager{name, []string{"pnpm", "install", "--frozen-lockfile"}, func(script string) []string {
			return []string{"pnpm", "--recursive", "run", "--if-present", script}
		}}
	case "yarn":
		if s.has(root, ".yarnrc.yml") || version != "" && !strings.HasPrefix(version, "1.") {
			return nodeManager{name, []string{"yarn", "install", "--immutable"}, func(script string) []string {
				return []string{"yarn", "workspaces", "foreach", "--all", "--topological", "run", script}
			}}
		}
		return nodeManager{name, []string{"yarn", "install", "--frozen-lockfile"}, nil}
	case "bun":
		return nodeManager{name, []string{"bun", "install", "--frozen-lockfile"}, func(script string) []string {
			return []string{"bun", "run", "--filter", "*", script}
		}}
	}
	setup := []string{"npm", "ci"}
	if locked != "npm" {
		setup = []string{"npm", "install", "--no-audit", "--no-fund"}
	}
	return nodeManager{"npm", setup, func(script string) []string {
		return []string{"npm", "run", script, "--workspaces", "--if-present"}
	}}
}
