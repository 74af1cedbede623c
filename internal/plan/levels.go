package plan

import "slices"

// Depths returns the dependency level of each node: the longest path over its
// edges, with every node of a lower phase counted as a dependency, so that a level
// never spans two phases. Edges to unknown nodes or to higher phases count for
// nothing; ok is false when there is a cycle, and nodes on or behind it have depth -1.
func Depths(nodes []Node) (depths []int, ok bool) {
	index := make(map[string]int, len(nodes))
	for i := range nodes {
		index[nodes[i].ID] = i
	}
	depths = make([]int, len(nodes))
	waits := make([]int, len(nodes))
	dependants := make([][]int, len(nodes))
	for i := range nodes {
		depths[i] = -1
		for _, id := range nodes[i].DependsOn {
			if d, known := index[id]; known && nodes[d].Phase <= nodes[i].Phase {
				dependants[d] = append(dependants[d], i)
				waits[i]++
			}
		}
	}
	base, done := 0, 0
	for _, members := range phases(nodes) {
		var ready []int
		deepest := base - 1
		for _, i := range members {
			depths[i] = max(depths[i], base)
			if waits[i] == 0 {
				ready = append(ready, i)
			}
		}
		for len(ready) > 0 {
			i := ready[0]
			ready = ready[1:]
			done++
			deepest = max(deepest, depths[i])
			for _, d := range dependants[i] {
				depths[d] = max(depths[d], depths[i]+1)
				if waits[d]--; waits[d] == 0 && nodes[d].Phase == nodes[i].Phase {
					ready = append(ready, d)
				}
			}
		}
		base = deepest + 1
	}
	for i := range nodes {
		if waits[i] > 0 {
			depths[i] = -1
		}
	}
	return depths, done == len(nodes)
}

// phases groups the indices of nodes by phase, ascending.
func phases(nodes []Node) [][]int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return nodes[a].Phase - nodes[b].Phase })
	var groups [][]int
	for k, i := range order {
		if k == 0 || nodes[i].Phase != nodes[order[k-1]].Phase {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	return groups
}

// Levels returns the ids of the nodes per dependency level, in the order of the
// plan. Nodes on or behind a cycle are in no level.
func Levels(nodes []Node) [][]string {
	depths, _ := Depths(nodes)
	var levels [][]string
	for i, depth := range depths {
		if depth < 0 {
			continue
		}
		for len(levels) <= depth {
			levels = append(levels, nil)
		}
		levels[depth] = append(levels[depth], nodes[i].ID)
	}
	return levels
}

// Cycles returns one cycle for each group of nodes that depend on each other, as
// ids in the order of the edges, and each node that depends on itself; the first
// id is the earliest in the plan and is not repeated at the end.
func Cycles(nodes []Node) [][]string {
	g := newGraph(nodes)
	var cycles [][]string
	seen := make([]bool, len(nodes))
	for i := range nodes {
		if g.self[i] {
			cycles = append(cycles, []string{nodes[i].ID})
		}
		if seen[i] || len(g.group(i)) < 2 {
			continue
		}
		for _, member := range g.group(i) {
			seen[member] = true
		}
		path := g.cycleThrough(i)
		ids := make([]string, len(path))
		for k, n := range path {
			ids[k] = nodes[n].ID
		}
		cycles = append(cycles, ids)
	}
	return cycles
}

// graph holds the edges node → dependency and the strongly connected groups.
type graph struct {
	edges  [][]int // without those of a node to itself
	self   []bool
	groups [][]int
	of     []int // group of each node
}

func newGraph(nodes []Node) *graph {
	index := make(map[string]int, len(nodes))
	for i := range nodes {
		index[nodes[i].ID] = i
	}
	g := &graph{edges: make([][]int, len(nodes)), self: make([]bool, len(nodes)), of: make([]int, len(nodes))}
	for i := range nodes {
		for _, id := range nodes[i].DependsOn {
			if d, known := index[id]; known {
				if d == i {
					g.self[i] = true
					continue
				}
				g.edges[i] = append(g.edges[i], d)
			}
		}
	}
	g.connect()
	return g
}

func (g *graph) group(i int) []int { return g.groups[g.of[i]] }

// connect is Tarjan's algorithm, without recursion since chains may be long.
func (g *graph) connect() {
	order, low := make([]int, len(g.edges)), make([]int, len(g.edges))
	onStack, next := make([]bool, len(g.edges)), make([]int, len(g.edges))
	var stack, calls []int
	count := 0
	for root := range g.edges {
		if order[root] != 0 {
			continue
		}
		calls = append(calls, root)
		for len(calls) > 0 {
			i := calls[len(calls)-1]
			if order[i] == 0 {
				count++
				order[i], low[i], onStack[i] = count, count, true
				stack = append(stack, i)
			}
			if next[i] < len(g.edges[i]) {
				d := g.edges[i][next[i]]
				next[i]++
				switch {
				case order[d] == 0:
					calls = append(calls, d)
				case onStack[d]:
					low[i] = min(low[i], order[d])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1]
				low[parent] = min(low[parent], low[i])
			}
			if low[i] == order[i] {
				stack = g.cut(stack, i, onStack)
			}
		}
	}
}

// cut takes the group whose first member is i off the stack.
func (g *graph) cut(stack []int, i int, onStack []bool) []int {
	var members []int
	for {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		onStack[top] = false
		g.of[top] = len(g.groups)
		members = append(members, top)
		if top == i {
			g.groups = append(g.groups, members)
			return stack
		}
	}
}

// cycleThrough returns a shortest cycle through i inside its group.
func (g *graph) cycleThrough(i int) []int {
	from := make(map[int]int)
	queue := []int{i}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, d := range g.edges[n] {
			if d == i {
				path := []int{n}
				for path[len(path)-1] != i {
					path = append(path, from[path[len(path)-1]])
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[d]; !seen && g.of[d] == g.of[i] {
				from[d] = n
				queue = append(queue, d)
			}
		}
	}
	return []int{i}
}
