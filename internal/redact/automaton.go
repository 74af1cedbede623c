package redact

import "slices"

// automaton is an Aho-Corasick automaton over all value shapes and all rule
// prefixes. It finds every occurrence of every pattern in one pass, whatever
// the number of patterns.
type automaton struct {
	root [256]int32 // transitions from the root, which is where most bytes are
	// near are the transitions from the nodes close to the root, where most of
	// the other bytes are; the rest have their edges only.
	near [][256]int32

	longest int // bytes of the longest pattern

	nodes  []node
	labels []byte  // edge labels, the edges of a node next to each other and sorted
	target []int32 // where each edge leads
}

type node struct {
	first, last int32 // edges in labels and target
	fail        int32 // longest proper suffix that is a node
	near        int32 // index in near plus one, 0 for none
	depth       int32 // bytes from the root
	value       int32 // length of the longest value that ends here, 0 for none
	rules       []*rule
}

// builder is the automaton while patterns are added.
type builder struct {
	nodes []buildNode
}

type buildNode struct {
	edges map[byte]int32
	depth int32
	value int32
	rules []*rule
}

func newBuilder() *builder {
	return &builder{nodes: []buildNode{{edges: map[byte]int32{}}}}
}

func (b *builder) add(pattern string) *buildNode {
	at := int32(0)
	for i := range len(pattern) {
		next, ok := b.nodes[at].edges[pattern[i]]
		if !ok {
			next = int32(len(b.nodes))
			b.nodes = append(b.nodes, buildNode{edges: map[byte]int32{}, depth: b.nodes[at].depth + 1})
			b.nodes[at].edges[pattern[i]] = next
		}
		at = next
	}
	return &b.nodes[at]
}

func (b *builder) addValue(pattern string) {
	b.add(pattern).value = int32(len(pattern))
}

func (b *builder) addRule(r *rule) {
	n := b.add(r.prefix)
	n.rules = append(n.rules, r)
}

// build lays the nodes out flat and computes the failure links breadth first,
// so that the link of a node is known before those of its children.
func (b *builder) build() *automaton {
	a := &automaton{nodes: make([]node, len(b.nodes))}
	for i, n := range b.nodes {
		first := int32(len(a.labels))
		bytes := make([]byte, 0, len(n.edges))
		for c := range n.edges {
			bytes = append(bytes, c)
		}
		slices.Sort(bytes)
		for _, c := range bytes {
			a.labels = append(a.labels, c)
			a.target = append(a.target, n.edges[c])
		}
		a.longest = max(a.longest, int(n.depth))
		a.nodes[i] = node{first: first, last: int32(len(a.labels)), depth: n.depth, value: n.value, rules: n.rules}
	}
	queue := make([]int32, 0, len(a.nodes))
	for c, child := range b.nodes[0].edges {
		a.root[c] = child
	}
	for _, child := range a.root {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for e := a.nodes[at].first; e < a.nodes[at].last; e++ {
			child := a.target[e]
			fail := a.step(a.nodes[at].fail, a.labels[e])
			suffix := &a.nodes[fail]
			a.nodes[child].fail = fail
			a.nodes[child].value = max(a.nodes[child].value, suffix.value)
			if len(suffix.rules) > 0 {
				a.nodes[child].rules = slices.Concat(a.nodes[child].rules, suffix.rules)
			}
			queue = append(queue, child)
		}
		if a.nodes[at].depth <= nearDepth {
			a.near = append(a.near, [256]int32{})
			table := &a.near[len(a.near)-1]
			for c := range table {
				table[c] = a.step(at, byte(c))
			}
			a.nodes[at].near = int32(len(a.near))
		}
	}
	return a
}

// nearDepth bounds the memory of near: there are few nodes above it.
const nearDepth = 2

// step is amortised constant: each failure link undoes an earlier step down.
func (a *automaton) step(at int32, c byte) int32 {
	for at != 0 {
		n := &a.nodes[at]
		if n.near > 0 {
			return a.near[n.near-1][c]
		}
		for e := n.first; e < n.last; e++ {
			if a.labels[e] == c {
				return a.target[e]
			}
		}
		at = n.fail
	}
	return a.root[c]
}
