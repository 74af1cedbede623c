package dispatch

import (
	"slices"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// frontierIndex is what decisions would otherwise compute again and again. It is
// a function of the carried state, kept up to date by every event.
type frontierIndex struct {
	byID       map[string]int
	byFinding  map[string][2]int // node, item
	firstItem  []int
	dependants [][]int
	missing    []string // per node: a dependency that is not in the run
	waits      []int    // unsatisfied dependencies
	complete   []bool   // all items verified-complete
	ready      []int    // nodes that may run but for scopes and slots
	inReady    []bool
	unsorted   bool
	running    int

	classes   []scopeClass
	class     []int // of each node
	exclusive int   // the class of empty scopes; -1 without one

	closeness []int
	byFolder  map[string][]int // nodes with a file in exactly this folder
	byPrefix  map[string][]int // nodes with a file in or below it
	touched   map[string]bool  // folders in Touched
	prefixes  map[string]bool  // those and the folders above them
}

// scopeClass is a set of nodes with the same scope, so that a thousand nodes
// with one scope cost as much as one.
type scopeClass struct {
	scope    *plan.Scope
	shared   bool
	members  []int
	adjacent []int // classes that it conflicts with, itself where its members conflict
	running  int   // running members
	blocked  int   // running nodes in adjacent classes
}

func buildIndex(s *frontierState) frontierIndex {
	n := len(s.Units)
	ix := frontierIndex{
		byID: make(map[string]int, n), byFinding: make(map[string][2]int, len(s.Items)),
		dependants: make([][]int, n), missing: make([]string, n), waits: make([]int, n),
		complete: make([]bool, n), inReady: make([]bool, n), unsorted: true, exclusive: -1,
	}
	item := 0
	for i, u := range s.Units {
		ix.byID[u.ID] = i
		ix.firstItem = append(ix.firstItem, item)
		ix.complete[i] = true
		for _, finding := range u.Findings {
			ix.byFinding[finding] = [2]int{i, item}
			ix.complete[i] = ix.complete[i] && s.Items[item].Status.VerifiedComplete()
			item++
		}
	}
	for i, u := range s.Units {
		for _, id := range u.DependsOn {
			d, ok := ix.byID[id]
			if !ok {
				ix.missing[i] = id
				ix.waits[i]++
				continue
			}
			ix.dependants[d] = append(ix.dependants[d], i)
			if !ix.complete[d] {
				ix.waits[i]++
			}
		}
	}
	ix.buildClasses(s)
	ix.buildFolders(s)
	for i := range s.Nodes {
		ix.refresh(s, i)
		if s.Nodes[i].State == contract.NodeRunning {
			ix.occupy(i, 1)
		}
	}
	return ix
}

// refresh puts a node into the ready set or takes it out, by its state.
func (ix *frontierIndex) refresh(s *frontierState, n int) {
	is := s.Nodes[n].State == contract.NodePending && ix.waits[n] == 0 && s.Units[n].Phase <= s.Phase
	switch {
	case is && !ix.inReady[n]:
		ix.ready = append(ix.ready, n)
		ix.unsorted = true
	case !is && ix.inReady[n]:
		at := slices.Index(ix.ready, n)
		ix.ready = slices.Delete(ix.ready, at, at+1)
	}
	ix.inReady[n] = is
}

// occupy counts a running node in (by 1) or out (by -1) of the scopes in use.
func (ix *frontierIndex) occupy(n, by int) {
	c := ix.class[n]
	ix.running += by
	ix.classes[c].running += by
	for _, d := range ix.classes[c].adjacent {
		ix.classes[d].blocked += by
	}
}

// free reports whether no running node conflicts with the node.
func (ix *frontierIndex) free(n int) bool {
	c := ix.class[n]
	if c == ix.exclusive {
		return ix.running == 0
	}
	return ix.classes[c].blocked == 0 && (ix.exclusive < 0 || ix.classes[ix.exclusive].running == 0)
}

// conflicting calls do with every class that a node's class conflicts with.
func (ix *frontierIndex) conflicting(n int, do func(class int)) {
	c := ix.class[n]
	if c == ix.exclusive {
		for d := range ix.classes {
			do(d)
		}
		return
	}
	for _, d := range ix.classes[c].adjacent {
		do(d)
	}
	if ix.exclusive >= 0 {
		do(ix.exclusive)
	}
}

// buildClasses groups nodes by scope and finds which groups conflict. Comparing
// every pair is too slow for thousands of scopes, so that only those are compared
// whose fixed leading folders lie on one path.
func (ix *frontierIndex) buildClasses(s *frontierState) {
	byKey := map[string]int{}
	for i, u := range s.Units {
		key := scopeKey(u)
		c, ok := byKey[key]
		if !ok {
			c = len(ix.classes)
			byKey[key] = c
			ix.classes = append(ix.classes, scopeClass{scope: plan.CompileScope(u.Write, s.FoldCase), shared: u.SharedAppend})
			if ix.classes[c].scope.Exclusive() {
				ix.exclusive = c
			}
		}
		ix.class = append(ix.class, c)
		ix.classes[c].members = append(ix.classes[c].members, i)
	}
	byHead := map[string][]int{}
	heads := make([][]string, len(ix.classes))
	for c := range ix.classes {
		if c == ix.exclusive {
			continue // conflicts with everything: never listed
		}
		heads[c] = scopeHeads(ix.classes[c].scope, s.Units[ix.classes[c].members[0]].Write)
		for _, head := range heads[c] {
			byHead[head] = append(byHead[head], c)
		}
	}
	seen := make([]int, len(ix.classes)) // last class (+1) that looked at this one
	for c := range ix.classes {
		for _, head := range heads[c] {
			for above := range foldersUpwards(head) {
				for _, d := range byHead[above] {
					if seen[d] != c+1 {
						seen[d] = c + 1
						ix.compare(c, d)
					}
				}
			}
		}
	}
	for c := range ix.classes {
		slices.Sort(ix.classes[c].adjacent)
		ix.classes[c].adjacent = slices.Compact(ix.classes[c].adjacent)
	}
}

func (ix *frontierIndex) compare(c, d int) {
	a, b := &ix.classes[c], &ix.classes[d]
	if !a.scope.Conflicts(b.scope, a.shared && b.shared) {
		return
	}
	a.adjacent = append(a.adjacent, d)
	if c != d {
		b.adjacent = append(b.adjacent, c)
	}
}

func scopeKey(u plan.Unit) string {
	if len(u.Write) == 0 {
		return "" // shared_append means nothing without a scope
	}
	key := strings.Join(u.Write, "\x00")
	if u.SharedAppend {
		key += "\x00\x00"
	}
	return key
}

// probe is a path that no scope names: one that overlaps it is either about
// everything or cannot be decided.
var probe = []string{"mendflow-probe-9f1c/none"}

// scopeHeads returns the fixed leading folders of each glob of a scope, in a form
// in which equal folders are surely equal; "" is the root. They may be shorter
// than they could be, never longer.
func scopeHeads(scope *plan.Scope, globs []string) []string {
	if scope.Overlaps(plan.CompileScope(probe, false)) {
		return []string{""}
	}
	heads := make([]string, 0, len(globs))
	for _, glob := range globs {
		var head []string
		for part := range strings.SplitSeq(glob, "/") {
			if part == "" || part == "." {
				continue
			}
			if strings.ContainsFunc(part, notFixed) {
				break
			}
			head = append(head, strings.ToLower(part))
		}
		heads = append(heads, strings.Join(head, "/"))
	}
	slices.Sort(heads)
	return slices.Compact(heads)
}

// notFixed reports runes that are wildcards or may have several spellings.
func notFixed(r rune) bool { return r > 0x7e || strings.ContainsRune(`*?[]{}\`, r) }

// foldersUpwards yields a folder and every folder above it, the root ("") last.
func foldersUpwards(folder string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for folder != "" {
			if !yield(folder) {
				return
			}
			folder = folder[:max(strings.LastIndexByte(folder, '/'), 0)]
		}
		yield("")
	}
}
