package plan

import (
	"fmt"
	"slices"

	"mendflow/internal/strictyaml"
)

// Disposition says what becomes of an input finding; each has exactly one.
type Disposition string

// Dispositions (gate-and-close.md, Items). Folded is given by importers only.
const (
	DispositionPlanned         Disposition = "planned"
	DispositionDroppedByIntent Disposition = "dropped_by_intent"
	DispositionDroppedMissing  Disposition = "dropped_missing_files"
	DispositionDroppedEvidence Disposition = "dropped_no_evidence"
	DispositionFolded          Disposition = "folded"
)

// FindingDisposition is the disposition of one finding with its reason.
type FindingDisposition struct {
	Finding     string      `json:"finding"`
	Disposition Disposition `json:"disposition"`
	Cause       string      `json:"cause,omitempty"` // empty when planned
	Into        string      `json:"into,omitempty"`  // folded: the finding that stands for it
}

// SelectedNode is a node that runs: with the findings that are left of it, and
// with the edges that are left.
type SelectedNode struct {
	ID        string   `json:"id"`
	Findings  []string `json:"findings"`
	DependsOn []string `json:"depends_on,omitempty"`
}

// DroppedNode is a node of which no finding is left.
type DroppedNode struct {
	ID         string   `json:"id"`
	Dependants []string `json:"dependants,omitempty"` // selected nodes that named it
}

// Selection is what of a plan runs.
//
// A node whose findings are all dropped disappears. Its dependants do not wait
// for it, but they keep the order that went through it: they now depend on what
// it depended on, transitively, since the author ordered them behind that work
// too. Validation warns about each such edge.
type Selection struct {
	Findings []FindingDisposition `json:"findings"` // every input finding, in plan order
	Nodes    []SelectedNode       `json:"nodes"`    // in plan order
	Dropped  []DroppedNode        `json:"dropped,omitempty"`
}

// Select filters a plan by its intent. facts may be nil while the repository has
// not been looked at; nothing is dropped for missing files then.
func Select(p *Plan, facts *Facts) Selection {
	var s Selection
	filter := newIntentFilter(p, facts)
	planned := make(map[string]bool, len(p.Findings))
	for i := range p.Findings {
		d := filter.judge(&p.Findings[i])
		planned[d.Finding] = d.Disposition == DispositionPlanned
		s.Findings = append(s.Findings, d)
		for _, id := range p.Findings[i].Folded {
			s.Findings = append(s.Findings, FindingDisposition{Finding: id, Disposition: DispositionFolded, Cause: d.Finding, Into: d.Finding})
		}
	}
	kept := make(map[string]bool, len(p.Nodes))
	for _, n := range p.Nodes {
		kept[n.ID] = slices.ContainsFunc(n.Findings, func(id string) bool { return planned[id] })
	}
	bridge := newBridge(p.Nodes, kept)
	dropped := map[string]int{}
	for _, n := range p.Nodes {
		if !kept[n.ID] {
			dropped[n.ID] = len(s.Dropped)
			s.Dropped = append(s.Dropped, DroppedNode{ID: n.ID})
		}
	}
	for i, n := range p.Nodes {
		if !kept[n.ID] {
			continue
		}
		selected := SelectedNode{ID: n.ID, DependsOn: bridge.edges(i)}
		for _, id := range n.Findings {
			if planned[id] {
				selected.Findings = append(selected.Findings, id)
			}
		}
		for _, id := range n.DependsOn {
			if d, gone := dropped[id]; gone {
				s.Dropped[d].Dependants = append(s.Dropped[d].Dependants, n.ID)
			}
		}
		s.Nodes = append(s.Nodes, selected)
	}
	return s
}

// Counts returns how many findings have each disposition, in the order of the
// declarations above, without those that have none.
func (s Selection) Counts() []DispositionCount {
	var counts []DispositionCount
	for _, d := range []Disposition{
		DispositionPlanned, DispositionDroppedByIntent, DispositionDroppedMissing, DispositionDroppedEvidence, DispositionFolded,
	} {
		n := 0
		for _, f := range s.Findings {
			if f.Disposition == d {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, DispositionCount{d, n})
		}
	}
	return counts
}

// DispositionCount is a number of findings with one disposition.
type DispositionCount struct {
	Disposition Disposition `json:"disposition"`
	Count       int         `json:"count"`
}

// intentFilter judges findings; scopes are compiled once.
type intentFilter struct {
	intent       Intent
	excluded     *Scope
	mustNotTouch *Scope
	facts        *Facts
}

func newIntentFilter(p *Plan, facts *Facts) *intentFilter {
	fold := facts != nil && facts.FoldCase
	return &intentFilter{
		intent:       p.Intent,
		excluded:     CompileScope(p.Intent.Excluded, fold),
		mustNotTouch: CompileScope(p.Intent.MustNotTouch, fold),
		facts:        facts,
	}
}

// judge asks intent first, so that the author's own word is the reason wherever it is one.
func (x *intentFilter) judge(f *Finding) FindingDisposition {
	d := FindingDisposition{Finding: f.ID}
	if cause := x.intentCause(f); cause != "" {
		d.Disposition, d.Cause = DispositionDroppedByIntent, cause
		return d
	}
	if len(f.Evidence) == 0 && len(f.Files) == 0 {
		d.Disposition, d.Cause = DispositionDroppedEvidence, "it has neither evidence nor files"
		return d
	}
	if missing := x.facts.missingFiles(f); len(f.Files) > 0 && len(missing) == len(f.Files) {
		d.Disposition = DispositionDroppedMissing
		d.Cause = "its files do not exist at the base: " + enumerate(missing)
		return d
	}
	d.Disposition = DispositionPlanned
	return d
}

func (x *intentFilter) intentCause(f *Finding) string {
	for _, file := range f.Files {
		if glob, ok := x.excluded.MatchingGlob(file.Path); ok {
			return fmt.Sprintf("%s is excluded by %q", file.Path, glob)
		}
		if glob, ok := x.mustNotTouch.MatchingGlob(file.Path); ok {
			return fmt.Sprintf("%s must not be touched (%q)", file.Path, glob)
		}
	}
	in := x.intent
	switch {
	case len(in.Severities) > 0 && !slices.Contains(in.Severities, f.Severity):
		return fmt.Sprintf("severity %s is not selected", f.Severity)
	case len(in.Lenses) > 0 && !slices.Contains(in.Lenses, f.Lens):
		return fmt.Sprintf("lens %s is not selected", orNone(string(f.Lens)))
	case len(in.Packages) > 0 && !slices.Contains(in.Packages, f.Package):
		return fmt.Sprintf("package %s is not selected", orNone(f.Package))
	case len(in.Themes) > 0 && !slices.ContainsFunc(f.Themes, func(t string) bool { return slices.Contains(in.Themes, t) }):
		return "none of its themes is selected"
	}
	return ""
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return strictyaml.Shorten(text, 40)
}

// bridge rewires edges past nodes that are not kept.
type bridge struct {
	nodes []Node
	kept  map[string]bool
	index map[string]int
	memo  map[int][]string
}

func newBridge(nodes []Node, kept map[string]bool) *bridge {
	b := &bridge{nodes: nodes, kept: kept, index: make(map[string]int, len(nodes)), memo: map[int][]string{}}
	for i := range nodes {
		b.index[nodes[i].ID] = i
	}
	return b
}

// edges returns the kept nodes that node i waits for. The plan has no cycles.
func (b *bridge) edges(i int) []string {
	if known, ok := b.memo[i]; ok {
		return known
	}
	var out []string
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	for _, id := range b.nodes[i].DependsOn {
		d, known := b.index[id]
		switch {
		case !known:
		case b.kept[id]:
			add(id)
		default:
			for _, through := range b.edges(d) {
				add(through)
			}
		}
	}
	b.memo[i] = out
	return out
}
