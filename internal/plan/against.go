package plan

import (
	"fmt"
	"slices"
	"strings"

	"mendflow/internal/strictyaml"
)

// NamedPaths lists the paths that a plan names, sorted: files of findings, globs
// without wildcards, and words of verify commands that look like paths. A caller
// looks them up in the repository and hands the answers to ValidateAgainst as
// facts. Globs with brackets are listed as they are written too, since they may be
// meant as paths, and paths beyond ASCII in each Unicode normal form.
func NamedPaths(p *Plan) []string {
	var paths []string
	for i := range p.Findings {
		for _, l := range p.Findings[i].Files {
			paths = append(paths, l.Path)
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, globs := range [][]string{n.Write, n.Read} {
			paths = append(paths, literalPaths(globs)...)
			for _, g := range globs {
				if clean, err := CanonicalPath(g); err == nil && strings.ContainsAny(g, "[{") {
					paths = append(paths, clean)
				}
			}
		}
		for _, c := range n.Verify {
			paths = append(paths, namedFiles(c)...)
		}
	}
	var all []string
	for _, path := range paths {
		all = append(all, spellings(path)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namedFiles returns the words of a command that look like files of the
// repository: they have a slash or an extension, and no wildcard or variable.
func namedFiles(c Command) []string {
	words := c.Argv
	if c.Shell != "" {
		words = strings.FieldsFunc(c.Shell, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'", r) })
	}
	var files []string
	for _, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = value
		}
		if strings.HasPrefix(w, "-") || strings.ContainsAny(w, "*?[]{}$`=:@,") || strings.Contains(w, "...") {
			continue
		}
		name := w[strings.LastIndexByte(w, '/')+1:]
		if dot := strings.LastIndexByte(name, '.'); dot < 1 && !strings.Contains(w, "/") || dot == len(name)-1 {
			continue
		}
		if clean, err := CanonicalPath(w); err == nil {
			files = append(files, clean)
		}
	}
	return files
}

// ValidateAgainst checks a valid plan against what a caller found in the
// repository: what Parse cannot know. Faults have paths but no positions; Locate
// adds those.
func ValidateAgainst(p *Plan, facts *Facts) Faults {
	r := &FaultReport{}
	for i := range p.Findings {
		checkFilesExist(&p.Findings[i], strictyaml.Index("findings", i), facts, r)
	}
	s := Select(p, facts)
	if len(s.Nodes) == 0 {
		r.Add("findings", "nothing is left to do: "+s.causes(), "")
	}
	checkGate(p, facts, r)
	if len(p.Gate.Commands) == 0 {
		// Parse has warned about the commands that are known to run everything.
		warnSuites(p, s, r, func(c Command) bool { return !wholeSuite(c) && isGateCommand(facts.Gate, c) })
	}
	position := positions(p)
	for _, n := range s.Nodes {
		i := position[n.ID]
		warnScopes(&p.Nodes[i], strictyaml.Index("nodes", i), facts, r)
	}
	warnSiblingFiles(p, s, facts, r)
	return r.faults
}

func checkFilesExist(f *Finding, path string, facts *Facts, r *FaultReport) {
	missing := facts.missingFiles(f)
	var untracked []string
	missing = slices.DeleteFunc(missing, func(file string) bool {
		if !facts.untracked(file) {
			return false
		}
		untracked = append(untracked, file)
		return true
	})
	if len(untracked) > 0 {
		r.Add(path+".files", fmt.Sprintf("finding %s names files that exist only untracked in your checkout: %s", f.ID, enumerate(untracked)),
			"commit them, or start with --include-uncommitted")
	}
	switch {
	case len(missing) == 0:
	case len(missing) == len(f.Files):
		r.Warn(path+".files", fmt.Sprintf("finding %s is dropped, none of its files exists at the base: %s", f.ID, enumerate(missing)),
			"a file that the repair makes belongs into the node's write scope, not here")
	default:
		r.Warn(path+".files", fmt.Sprintf("finding %s names files that do not exist at the base: %s", f.ID, enumerate(missing)), "")
	}
}

func checkGate(p *Plan, facts *Facts, r *FaultReport) {
	if len(p.Gate.Commands) == 0 && !p.Gate.Disabled && len(facts.Gate) == 0 {
		r.Add("gate.commands", "the plan names no gate commands and none could be discovered at the base",
			"write gate commands, or commands: none to run without a gate")
	}
}

// warnScopes warns about scopes that probably do not mean what they say, and
// refuses declared targets that exist only untracked.
func warnScopes(n *Node, path string, facts *Facts, r *FaultReport) {
	for _, list := range []struct {
		key   string
		globs []string
	}{{".write", n.Write}, {".read", n.Read}} {
		for k, glob := range list.globs {
			at := strictyaml.Index(path+list.key, k)
			clean, _ := CanonicalPath(glob)
			literal := literalPaths([]string{glob})
			switch {
			case len(literal) == 1 && facts.folder(literal[0]):
				r.Warn(at, fmt.Sprintf("%q is a folder: the glob matches nothing in it", glob), fmt.Sprintf("write %q", strings.TrimSuffix(glob, "/")+"/**"))
			case len(literal) == 0 && strings.ContainsAny(glob, "[{") && facts.exists(clean) && !InScope([]string{glob}, clean, facts.FoldCase):
				r.Warn(at, fmt.Sprintf("%q names an existing file, but as a glob it does not match it", glob), fmt.Sprintf("write %q", EscapeGlob(clean)))
			case len(literal) == 1 && !facts.IncludeUncommitted && facts.untracked(literal[0]):
				r.Add(at, fmt.Sprintf("%s exists only untracked in your checkout", literal[0]), "commit it, or start with --include-uncommitted")
			case list.key == ".read" && len(literal) == 1 && !facts.exists(literal[0]):
				r.Warn(at, fmt.Sprintf("%s does not exist at the base", literal[0]), "")
			}
		}
	}
}

// warnSiblingFiles warns about verify commands that name a file which does not
// exist yet and which only another node, not waited for, may make.
func warnSiblingFiles(p *Plan, s Selection, facts *Facts, r *FaultReport) {
	nodes := SelectedNodes(p, s)
	position := positions(p)
	scopes := make([]*Scope, len(nodes))
	for i := range nodes {
		scopes[i] = CompileScope(nodes[i].Write, facts.FoldCase)
	}
	before := newAncestors(nodes)
	for i, n := range nodes {
		if scopes[i].Exclusive() {
			continue // it may make any file itself
		}
		for k, c := range n.Verify {
			for _, file := range namedFiles(c) {
				if facts.exists(file) || scopes[i].Match(file) {
					continue
				}
				if j := maker(nodes, scopes, before, i, file); j >= 0 {
					r.Warn(strictyaml.Index(strictyaml.Index("nodes", position[n.ID])+".verify", k),
						fmt.Sprintf("%s does not exist at the base and only %s, for which %s does not wait, may make it", file, nodes[j].ID, n.ID),
						fmt.Sprintf("verify something else, or let %s depend on %s", n.ID, nodes[j].ID))
				}
			}
		}
	}
}

// maker returns the first node whose scope has the file, unless one that i waits
// for has it; -1 without one.
func maker(nodes []Node, scopes []*Scope, before *ancestors, i int, file string) int {
	found := -1
	for j := range nodes {
		if j == i || !scopes[j].Match(file) {
			continue
		}
		if before.has(i, j) || nodes[j].Phase < nodes[i].Phase {
			return -1
		}
		if found < 0 {
			found = j
		}
	}
	return found
}

// Locate gives faults of a plan their positions in the file that it was parsed from.
func Locate(faults Faults, name string, data []byte) Faults {
	root, _ := strictyaml.Parse(data)
	out := slices.Clone(faults)
	for i := range out {
		out[i].File = name
		if root != nil {
			out[i].Line, out[i].Column = root.At(out[i].Path)
		}
	}
	return out.sorted()
}
