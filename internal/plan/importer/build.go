package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mendflow/internal/plan"
)

// Grouping says how findings become nodes.
type Grouping struct {
	// Folder groups by folder and lets nodes write all files of it; false: by file, and those files only.
	Folder bool
	// PerNode is the most findings of a node; 0: 10. Nodes of one group share files, so they run one after the other.
	PerNode int
}

const defaultPerNode = 10

// Built is a plan and what is worth knowing of how it was made.
type Built struct {
	ID       string
	Goal     string
	Findings []plan.Finding
	Nodes    []plan.Node
	Folded   int      // duplicates
	Unplaced []string // nodes of findings without a place: they ask for a scope
}

// unplaced is the instruction of a node whose finding names no place.
const unplaced = "No place is known of this finding. Look for it first; report blocked when it is not in this repository."

// Build makes a plan of findings, whatever their order.
func Build(id, goal string, raws []Raw, g Grouping) Built {
	b := Built{ID: id, Goal: goal}
	sorted := slices.Clone(raws)
	slices.SortStableFunc(sorted, order)
	b.take(sorted)
	b.group(g)
	return b
}

// take gives ids and folds duplicates: findings of which everything is the same.
func (b *Built) take(raws []Raw) {
	given := map[string]bool{} // ids that the input names come first: made ones make way
	for _, r := range raws {
		given[strings.ToLower(r.ID)] = true
	}
	used, kept := map[string]bool{}, map[string]int{}
	for _, r := range raws {
		id := r.ID
		if id == "" || used[strings.ToLower(id)] {
			id = madeID(r, func(id string) bool { return used[id] || given[id] })
		}
		used[strings.ToLower(id)] = true
		if at, twice := kept[r.same()]; twice {
			b.Findings[at].Folded = append(b.Findings[at].Folded, id)
			b.Folded++
			continue
		}
		kept[r.same()] = len(b.Findings)
		b.Findings = append(b.Findings, plan.Finding{
			ID: id, Title: r.Title, Severity: r.Severity, Lens: r.Lens, Confidence: r.Confidence, Themes: r.Themes,
			Files: slices.Clone(r.Files), Summary: r.Summary, Evidence: r.Evidence,
		})
	}
}

// madeID is the rule with a digest of what the finding is; the same thing found
// again in the same file is counted.
func madeID(r Raw, taken func(lower string) bool) string {
	const maxRule = 40
	word := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		}
		return '-'
	}, cmp.Or(r.Rule, "finding"))
	word = strings.Trim(word[:min(len(word), maxRule)], "-_")
	base := cmp.Or(word, "finding") + "-" + r.fingerprint()[:8]
	id := base
	for n := 2; taken(strings.ToLower(id)); n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	return id
}

// group makes nodes: findings that share a file, also through others, belong together.
func (b *Built) group(g Grouping) {
	if g.PerNode <= 0 {
		g.PerNode = defaultPerNode
	}
	parent := map[string]string{}
	root := func(key string) string {
		for parent[key] != key {
			parent[key] = parent[parent[key]]
			key = parent[key]
		}
		return key
	}
	for _, f := range b.Findings {
		for i, file := range f.Files {
			key := g.key(file.Path)
			if _, ok := parent[key]; !ok {
				parent[key] = key
			}
			if i > 0 {
				parent[root(key)] = root(g.key(f.Files[0].Path))
			}
		}
	}
	groups := map[string][]plan.Finding{}
	var order []string
	for _, f := range b.Findings {
		if len(f.Files) == 0 {
			continue
		}
		key := root(g.key(f.Files[0].Path))
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], f)
	}
	ids := nodeIDs{}
	for _, key := range order {
		for chunk := range slices.Chunk(groups[key], g.PerNode) {
			b.Nodes = append(b.Nodes, g.node(ids, chunk))
		}
	}
	for _, f := range b.Findings {
		if len(f.Files) == 0 {
			n := plan.Node{ID: ids.next("no-place"), Findings: []string{f.ID}, Instructions: unplaced}
			b.Nodes, b.Unplaced = append(b.Nodes, n), append(b.Unplaced, n.ID)
		}
	}
}

func (g Grouping) key(file string) string {
	if g.Folder {
		return path.Dir(file)
	}
	return file
}

func (g Grouping) node(ids nodeIDs, findings []plan.Finding) plan.Node {
	n := plan.Node{ID: ids.next(findings[0].Files[0].Path)}
	for _, f := range findings {
		n.Findings = append(n.Findings, f.ID)
		for _, file := range f.Files {
			glob := plan.EscapeGlob(file.Path)
			if g.Folder {
				glob = "*"
				if dir := path.Dir(file.Path); dir != "." {
					glob = plan.EscapeGlob(dir) + "/*"
				}
			}
			if !slices.Contains(n.Write, glob) {
				n.Write = append(n.Write, glob)
			}
		}
	}
	n.Write = narrow(n.Write)
	return n
}

// maxScope bounds the write scope of a node, in bytes: plans refuse what no scheduler could carry.
const maxScope = 16 << 10

// narrow makes a scope of folders, then of top folders, when its files are too many.
func narrow(globs []string) []string {
	slices.Sort(globs)
	for _, cut := range []func(glob string) string{
		func(glob string) string { return path.Dir(glob) + "/*" },
		func(glob string) string { top, _, _ := strings.Cut(glob, "/"); return top + "/**" },
	} {
		if len(strings.Join(globs, "")) <= maxScope {
			return globs
		}
		for i, glob := range globs {
			if strings.Contains(glob, "/") {
				globs[i] = cut(glob)
			}
		}
		slices.Sort(globs)
		globs = slices.Compact(globs)
	}
	if len(strings.Join(globs, "")) > maxScope {
		return nil // the whole repository: the node runs alone
	}
	return globs
}

// nodeIDs names nodes by a file, for people who read the plan.
type nodeIDs map[string]bool

func (ids nodeIDs) next(file string) string {
	const maxName = 50
	var b strings.Builder
	for _, c := range strings.ToLower(strings.TrimSuffix(file, path.Ext(file))) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) > maxName { // the end of a path tells more than its beginning
		name = name[len(name)-maxName:]
	}
	name = cmp.Or(strings.Trim(name, "-"), "node")
	id := name
	for n := 2; ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	ids[id] = true
	return id
}
