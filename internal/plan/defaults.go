package plan

import (
	"slices"
	"strings"
)

// rootPackage stands for files in the root folder, so that filters can name them.
const rootPackage = "."

// defaultPackage is the first folder of the first file.
func defaultPackage(f Finding) string {
	if len(f.Files) == 0 {
		return ""
	}
	first, _, nested := strings.Cut(f.Files[0].Path, "/")
	if !nested {
		return rootPackage
	}
	return first
}

// IDFromFile derives a plan id from a file's name, as Parse does; empty when nothing is left of it.
func IDFromFile(name string) string { return idFromFile(name) }

// nodePerFinding is the plan that an author gets who leaves nodes out.
func nodePerFinding(findings []Finding) []Node {
	nodes := make([]Node, len(findings))
	for i, f := range findings {
		nodes[i] = Node{ID: f.ID, Findings: []string{f.ID}}
		for _, file := range f.Files {
			if glob := EscapeGlob(file.Path); !slices.Contains(nodes[i].Write, glob) {
				nodes[i].Write = append(nodes[i].Write, glob)
			}
		}
	}
	return nodes
}

// EscapeGlob returns a glob that matches exactly this path.
func EscapeGlob(path string) string {
	var b strings.Builder
	for i, r := range path {
		// The colon of "a:" too: with an escape behind it, it would pass for a drive letter.
		if strings.ContainsRune(`*?[]{}\`, r) || i == 1 && r == ':' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// DeriveTier is the tier of a node that asks for none (dispatch.md, Pools):
// critical, low confidence or more than 8 files is deep; low or info and one file
// is small; else standard.
func DeriveTier(findings []Finding) Tier {
	const manyFiles = 8
	worst, files := SeverityInfo.Rank(), map[string]bool{}
	for _, f := range findings {
		if f.Confidence == ConfidenceLow {
			return TierDeep
		}
		worst = min(worst, f.Severity.Rank())
		for _, file := range f.Files {
			files[file.Path] = true
		}
	}
	switch {
	case worst == SeverityCritical.Rank(), len(files) > manyFiles:
		return TierDeep
	case worst >= SeverityLow.Rank() && len(files) == 1:
		return TierSmall
	}
	return TierStandard
}

// deriveTiers fills in the tier of nodes that ask for none, from the findings that
// they will work on.
func deriveTiers(p *Plan, s Selection) {
	byID := findingsByID(p)
	selected := make(map[string][]string, len(s.Nodes))
	for _, n := range s.Nodes {
		selected[n.ID] = n.Findings
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Tier != "" {
			continue
		}
		ids, ok := selected[n.ID]
		if !ok {
			ids = n.Findings
		}
		n.Tier = DeriveTier(pick(byID, ids))
	}
}

func findingsByID(p *Plan) map[string]Finding {
	byID := make(map[string]Finding, len(p.Findings))
	for _, f := range p.Findings {
		byID[f.ID] = f
	}
	return byID
}

func pick(byID map[string]Finding, ids []string) []Finding {
	out := make([]Finding, 0, len(ids))
	for _, id := range ids {
		if f, ok := byID[id]; ok {
			out = append(out, f)
		}
	}
	return out
}
