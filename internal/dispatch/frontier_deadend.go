package dispatch

import (
	"cmp"
	"fmt"
	"slices"

	"mendflow/internal/contract"
)

// Blocked is a node that cannot run, and why.
type Blocked struct {
	Node   string             `json:"node"`
	By     string             `json:"by,omitempty"` // the dependency in the way, if one is
	Reason string             `json:"reason"`
	Items  []contract.ItemRow `json:"items"`
}

// DeadEnds blocks every pending node that can never become eligible: a
// dependency ended without being verified-complete, is missing or is a dead end
// itself, or an earlier phase cannot complete. Reasons name what is in the way.
// What runs, waits for an instant, a pool or an answer may still complete and is
// no dead end. An operator's answer or a re-opening frees dead ends again. Nodes
// come in plan order.
func (f *Frontier) DeadEnds() []Blocked {
	alive := f.alive()
	var out []Blocked
	for _, n := range f.byPhaseAndDepth() {
		st := &f.s.Nodes[n]
		if st.State != contract.NodePending || alive[n] {
			continue
		}
		by, reason := f.inTheWay(n)
		before := f.snapshot(n)
		f.blockPending(n, reason)
		st.State, st.Reason, st.DeadEnd = f.standing(n), reason, true
		f.ix.refresh(&f.s, n)
		out = append(out, Blocked{Node: f.s.Units[n].ID, By: by, Reason: reason, Items: f.changed(n, before)})
	}
	slices.SortFunc(out, func(a, b Blocked) int { return cmp.Compare(f.ix.byID[a.Node], f.ix.byID[b.Node]) })
	return out
}

// alive marks the nodes that are complete, or may still become so: they run,
// wait, or are pending with nothing but such nodes before them. A node is reached
// only from its dependencies, so that a cycle is never alive.
func (f *Frontier) alive() []bool {
	alive := make([]bool, len(f.s.Nodes))
	left := make([]int, len(f.s.Nodes))
	for _, ds := range f.ix.dependants {
		for _, d := range ds {
			left[d]++
		}
	}
	stuck := f.stuckPhase()
	var next []int
	reach := func(n int) {
		if !alive[n] && (f.ix.complete[n] || f.mayProgress(n)) && f.s.Units[n].Phase <= stuck {
			alive[n] = true
			next = append(next, n)
		}
	}
	for n := range f.s.Nodes {
		if f.s.Nodes[n].State != contract.NodePending || left[n] == 0 && f.ix.missing[n] == "" {
			reach(n)
		}
	}
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		for _, d := range f.ix.dependants[n] {
			if left[d]--; left[d] == 0 && f.ix.missing[d] == "" {
				reach(d)
			}
		}
	}
	return alive
}

// mayProgress reports whether a node that is not complete may change by itself
// or by an answer that is awaited.
func (f *Frontier) mayProgress(n int) bool {
	return under(f.s.Nodes[n].State) || f.any(n, contract.ItemNeedsClarification)
}

// stuckPhase returns the first phase that cannot complete; above all phases
// without one. Only the open phase can be stuck: later ones have not begun.
func (f *Frontier) stuckPhase() int {
	last := f.s.Phase
	for n := range f.s.Nodes {
		last = max(last, f.s.Units[n].Phase)
	}
	if f.blocksPhase() >= 0 {
		return f.s.Phase
	}
	return last
}

// blocksPhase returns the first node that keeps the open phase from completing
// and will not change by itself; -1 without one.
func (f *Frontier) blocksPhase() int {
	for n := range f.s.Nodes {
		if f.s.Units[n].Phase <= f.s.Phase && !f.phaseDone(n) && !f.mayProgress(n) {
			return n
		}
	}
	return -1
}

// phaseDone reports whether a node stands in no phase's way: its items are
// repaired or were decided to be left alone.
func (f *Frontier) phaseDone(n int) bool {
	return f.every(n, func(s contract.ItemStatus) bool { return s.VerifiedComplete() || s.Skip() })
}

// inTheWay names what keeps a dead end from running.
func (f *Frontier) inTheWay(n int) (by, reason string) {
	if id := f.ix.missing[n]; id != "" {
		return id, fmt.Sprintf("depends on %s, which is not in this run", id)
	}
	for _, id := range f.s.Units[n].DependsOn {
		d := f.ix.byID[id]
		if f.ix.complete[d] || f.mayProgress(d) {
			continue
		}
		reason := fmt.Sprintf("depends on %s, which is %s", id, f.s.Nodes[d].State)
		if why := f.s.Nodes[d].Reason; why != "" {
			reason += ": " + why
		}
		return id, cutHead(reason, maxReason)
	}
	if d := f.blocksPhase(); d >= 0 && f.s.Units[n].Phase > f.s.Phase {
		id := f.s.Units[d].ID
		return id, fmt.Sprintf("phase %d cannot complete: %s is %s", f.s.Phase, id, f.s.Nodes[d].State)
	}
	return "", "its dependencies form a cycle"
}

// maxReason bounds a reason that is passed on from node to node.
const maxReason = 500

// byPhaseAndDepth orders nodes so that what is in the way of a node comes first.
func (f *Frontier) byPhaseAndDepth() []int {
	order := make([]int, len(f.s.Units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.s.Units[a].Depth, f.s.Units[b].Depth) })
	return order
}

func (f *Frontier) blockPending(n int, reason string) {
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		if it := &f.s.Items[i]; it.Status == contract.ItemPending {
			it.Status, it.Reason = contract.ItemBlocked, reason
		}
	}
}

// freeDeadEnds makes dead ends pending again, since what was in their way may
// have moved. DeadEnds blocks again what still cannot run.
func (f *Frontier) freeDeadEnds(c *Changes) {
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if !st.DeadEnd {
			continue
		}
		before := f.snapshot(n)
		from, to := f.itemRange(n)
		for i := from; i < to; i++ {
			if it := &f.s.Items[i]; it.Status == contract.ItemBlocked && it.Reason == st.Reason {
				it.Status, it.Reason = contract.ItemPending, ""
			}
		}
		st.DeadEnd = false
		if !f.any(n, contract.ItemPending) {
			continue // its items were decided meanwhile
		}
		st.State, st.Reason = contract.NodePending, ""
		f.ix.refresh(&f.s, n)
		c.Freed = append(c.Freed, f.s.Units[n].ID)
		c.Items = append(c.Items, f.changed(n, before)...)
	}
}

// sortChanges puts what several steps collected into plan order.
func (f *Frontier) sortChanges(c *Changes) {
	byID := func(a, b string) int { return cmp.Compare(f.ix.byID[a], f.ix.byID[b]) }
	slices.SortFunc(c.Opened, byID)
	slices.SortFunc(c.Freed, byID)
	slices.SortStableFunc(c.Items, func(a, b contract.ItemRow) int {
		return cmp.Compare(f.ix.byFinding[a.Finding][1], f.ix.byFinding[b.Finding][1])
	})
}

// PhaseBoundary reports that every node of the open phase is repaired or skipped
// and a later phase waits: the place for a gate. next is that phase.
func (f *Frontier) PhaseBoundary() (done, next int, ok bool) {
	for n := range f.s.Nodes {
		phase := f.s.Units[n].Phase
		switch {
		case phase > f.s.Phase:
			if !ok || phase < next {
				next, ok = phase, true
			}
		case !f.phaseDone(n) || f.s.Nodes[n].State == contract.NodeRunning:
			return f.s.Phase, 0, false
		}
	}
	return f.s.Phase, next, ok
}

// OpenPhase lets the nodes of a phase run; earlier ones stay open.
func (f *Frontier) OpenPhase(phase int) {
	if phase <= f.s.Phase {
		return
	}
	f.s.Phase = phase
	for n := range f.s.Nodes {
		f.ix.refresh(&f.s, n)
	}
}

// BlockStranded gives up waiting for the nodes stranded with these causes: when
// the run has nothing else to do, the open items of what no pool can ever take
// (empty_pool, escalated) become blocked and go to triage. Nodes come in plan order.
func (f *Frontier) BlockStranded(causes ...contract.StrandCause) []Blocked {
	var out []Blocked
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if st.State != contract.NodeStranded || !slices.Contains(causes, st.Cause) {
			continue
		}
		before := f.snapshot(n)
		reason := orElse(st.Reason, string(st.Cause))
		f.blockPending(n, reason)
		st.State, st.Reason, st.Cause, st.NotBefore = f.standing(n), reason, "", nil
		out = append(out, Blocked{Node: f.s.Units[n].ID, Reason: reason, Items: f.changed(n, before)})
	}
	return out
}
