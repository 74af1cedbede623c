package plan

import (
	"encoding/json"
	"slices"
	"strings"
)

// MaxUnitBytes bounds the JSON of one unit, so that every unit fits into a page.
const MaxUnitBytes = 40 << 10

// Bounds of the folders of a unit; they only order nodes.
const (
	maxUnitFolders     = 16
	maxUnitFolderBytes = 4 << 10
)

// Skeleton returns the selected nodes as units, ordered by depth and then as in
// the plan. sizes are those of the plan's files, for estimates; nil without a
// repository.
func Skeleton(p *Plan, s Selection, sizes map[string]int64) []Unit {
	nodes := SelectedNodes(p, s)
	depths, _ := Depths(nodes)
	byID := findingsByID(p)
	units := make([]Unit, len(nodes))
	for i, n := range nodes {
		findings := pick(byID, n.Findings)
		units[i] = Unit{
			ID: n.ID, Findings: n.Findings, DependsOn: n.DependsOn, Write: n.Write, Files: folders(n, findings),
			Phase: n.Phase, Depth: depths[i], Tier: n.Tier, Severity: worst(findings),
			Tokens: EstimateTokens(n, findings, sizes), SharedAppend: n.SharedAppend,
		}
	}
	slices.SortStableFunc(units, func(a, b Unit) int { return a.Depth - b.Depth })
	return units
}

// SelectedNodes returns the plan's nodes as they run: selected ones, with the
// findings and edges that are left.
func SelectedNodes(p *Plan, s Selection) []Node {
	position := positions(p)
	nodes := make([]Node, len(s.Nodes))
	for i, selected := range s.Nodes {
		nodes[i] = p.Nodes[position[selected.ID]]
		nodes[i].Findings, nodes[i].DependsOn = selected.Findings, selected.DependsOn
	}
	return nodes
}

func worst(findings []Finding) int {
	rank := Severity("").Rank()
	for _, f := range findings {
		rank = min(rank, f.Severity.Rank())
	}
	return rank
}

// folders are those of the findings' files and of what the scope names literally,
// sorted; the root folder is ".".
func folders(n Node, findings []Finding) []string {
	var out []string
	add := func(path string) {
		folder := rootPackage
		if cut := strings.LastIndexByte(path, '/'); cut >= 0 {
			folder = path[:cut]
		}
		out = append(out, folder)
	}
	for _, f := range findings {
		for _, l := range f.Files {
			add(l.Path)
		}
	}
	for _, path := range literalPaths(n.Write) {
		add(path)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	room := maxUnitFolderBytes
	for i, folder := range out {
		if room -= len(folder); i == maxUnitFolders || room < 0 {
			return out[:i]
		}
	}
	return out
}

// carriedBytes is about what a node takes as a unit.
func carriedBytes(n *Node) int {
	return jsonBytes(Unit{ID: n.ID, Findings: n.Findings, DependsOn: n.DependsOn, Write: n.Write})
}

// Pages splits units so that each page is at most maxBytes as a JSON list, and
// never empty. A unit that is larger alone gets a page of its own; validation
// keeps units below MaxUnitBytes. Joining the pages gives the units back.
func Pages(units []Unit, maxBytes int) [][]Unit {
	const brackets, comma = 2, 1
	var pages [][]Unit
	size := maxBytes + 1
	for _, u := range units {
		bytes := jsonBytes(u)
		if size+comma+bytes > maxBytes {
			pages = append(pages, nil)
			size = brackets - comma
		}
		size += comma + bytes
		pages[len(pages)-1] = append(pages[len(pages)-1], u)
	}
	return pages
}

func jsonBytes(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 0 // units hold nothing that JSON cannot
	}
	return len(data)
}
