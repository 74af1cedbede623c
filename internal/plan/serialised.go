package plan

// Serialisation says which nodes never run at the same time although nothing
// orders them, and why. Nodes that one edge or phase orders anyway are not told.
type Serialisation struct {
	Exclusive []string         `json:"exclusive,omitempty"` // no write scope: alone in the run
	Pairs     []SerialisedPair `json:"pairs,omitempty"`     // the first ones, in plan order
	Total     int              `json:"total"`               // of pairs, also those left out
}

// SerialisedPair is two nodes with the globs that overlap.
type SerialisedPair struct {
	A     string     `json:"a"`
	B     string     `json:"b"`
	Globs []GlobPair `json:"globs"` // at most three
}

// Serialised compares the write scopes of all nodes and returns at most limit pairs.
func Serialised(nodes []Node, foldCase bool, limit int) Serialisation {
	const globsPerPair = 3
	var s Serialisation
	scopes := make([]*Scope, len(nodes))
	for i := range nodes {
		scopes[i] = CompileScope(nodes[i].Write, foldCase)
		if scopes[i].Exclusive() {
			s.Exclusive = append(s.Exclusive, nodes[i].ID)
		}
	}
	before := newAncestors(nodes)
	for j := range nodes {
		for i := range j {
			ordered := nodes[i].Phase != nodes[j].Phase || before.has(i, j) || before.has(j, i)
			if ordered || scopes[i].Exclusive() || scopes[j].Exclusive() {
				continue
			}
			if !scopes[i].Conflicts(scopes[j], nodes[i].SharedAppend && nodes[j].SharedAppend) {
				continue
			}
			if s.Total++; s.Total <= limit {
				s.Pairs = append(s.Pairs, SerialisedPair{nodes[i].ID, nodes[j].ID, scopes[i].OverlappingGlobs(scopes[j], globsPerPair)})
			}
		}
	}
	return s
}
