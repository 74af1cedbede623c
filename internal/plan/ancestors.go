package plan

// ancestors answers whether one node waits for another, over any number of edges.
type ancestors struct {
	words int
	bits  []uint64
}

// newAncestors expects nodes without cycles.
func newAncestors(nodes []Node) *ancestors {
	index := make(map[string]int, len(nodes))
	for i := range nodes {
		index[nodes[i].ID] = i
	}
	a := &ancestors{words: (len(nodes) + 63) / 64}
	a.bits = make([]uint64, a.words*len(nodes))
	depths, _ := Depths(nodes)
	byDepth := make([][]int, len(nodes)+1)
	for i, depth := range depths {
		byDepth[max(depth, 0)] = append(byDepth[max(depth, 0)], i)
	}
	for _, level := range byDepth {
		for _, i := range level {
			row := a.row(i)
			for _, id := range nodes[i].DependsOn {
				d, known := index[id]
				if !known {
					continue
				}
				for w, bits := range a.row(d) {
					row[w] |= bits
				}
				row[d/64] |= 1 << (d % 64)
			}
		}
	}
	return a
}

func (a *ancestors) row(i int) []uint64 { return a.bits[i*a.words : (i+1)*a.words] }

// has reports whether node i waits for node j.
func (a *ancestors) has(i, j int) bool { return a.row(i)[j/64]&(1<<(j%64)) != 0 }
