package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

var nodeStates = [...]contract.NodeState{
	contract.NodePending, contract.NodeRunning, contract.NodeLanded, contract.NodePartial,
	contract.NodeNoChange, contract.NodeBlocked, contract.NodeStranded, contract.NodeSkipped,
}

var itemStatuses = [...]contract.ItemStatus{
	contract.ItemPending, contract.ItemResolved, contract.ItemResolvedNoChange, contract.ItemBlocked,
	contract.ItemNeedsClarification, contract.ItemIgnored, contract.ItemDeemedInappropriate, contract.ItemAbandoned,
}

// Progress counts nodes per state and items per status.
func (f *Frontier) Progress() contract.Progress {
	p := contract.Progress{Total: len(f.s.Nodes), Phase: f.s.Phase}
	nodes, items := map[contract.NodeState]int{}, map[contract.ItemStatus]int{}
	for n := range f.s.Nodes {
		nodes[f.s.Nodes[n].State]++
		if f.s.Nodes[n].State == contract.NodeRunning {
			p.Level = max(p.Level, f.s.Units[n].Depth)
		}
	}
	for i := range f.s.Items {
		items[f.s.Items[i].Status]++
	}
	for _, state := range nodeStates {
		p.Nodes = append(p.Nodes, contract.NodeCount{State: state, N: nodes[state]})
	}
	for _, status := range itemStatuses {
		p.Items = append(p.Items, contract.ItemCount{Status: status, N: items[status]})
	}
	return p
}

// Nodes returns the rows of the node table from offset, at most limit (0: all), in plan order.
func (f *Frontier) Nodes(offset, limit int) []contract.NodeRow {
	to := len(f.s.Nodes)
	offset = min(max(offset, 0), to)
	if limit > 0 {
		to = min(to, offset+limit)
	}
	rows := make([]contract.NodeRow, 0, to-offset)
	for n := offset; n < to; n++ {
		rows = append(rows, f.nodeRow(n))
	}
	return rows
}

func (f *Frontier) nodeRow(n int) contract.NodeRow {
	st := &f.s.Nodes[n]
	return contract.NodeRow{
		ID: f.s.Units[n].ID, Level: f.s.Units[n].Depth, State: st.State, Opening: st.Opening,
		Attempts:  append([]contract.AttemptRow{}, st.Attempts...), // a list even when empty: scripts iterate over it
		NotBefore: st.NotBefore, Cause: st.Cause, Reason: st.Reason,
	}
}

// Items returns every finding of the run with its status, in plan order.
func (f *Frontier) Items() []contract.ItemRow {
	rows := make([]contract.ItemRow, 0, len(f.s.Items))
	for n := range f.s.Nodes {
		rows = append(rows, f.nodeItems(n)...)
	}
	return rows
}

func (f *Frontier) nodeItems(n int) []contract.ItemRow {
	from, to := f.itemRange(n)
	rows := make([]contract.ItemRow, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, f.itemRow(n, i))
	}
	return rows
}

// maxConflicts bounds how many nodes an explanation names.
const maxConflicts = 20

// Explain says all that the run knows about a node; ok is false for an unknown id.
func (f *Frontier) Explain(node string, now time.Time) (view contract.NodeView, ok bool) {
	n, ok := f.ix.byID[node]
	if !ok {
		return contract.NodeView{}, false
	}
	st := &f.s.Nodes[n]
	return contract.NodeView{
		NodeRow: f.nodeRow(n), Items: f.nodeItems(n), Waits: f.waitsFor(n, now), Conflicts: f.conflicts(n),
		Overtaken: st.Overtaken, Charged: st.Charged, Refused: slices.Clone(st.Refused), Passed: slices.Clone(st.Passed),
	}, true
}

// waitsFor says in sentences what keeps a node from running.
func (f *Frontier) waitsFor(n int, now time.Time) []string {
	st := &f.s.Nodes[n]
	switch {
	case st.State == contract.NodePending:
		return f.pendingOn(n)
	case st.State != contract.NodeStranded:
		return nil
	case st.NotBefore != nil && now.Before(*st.NotBefore):
		return []string{fmt.Sprintf("%s until %s", st.Cause, st.NotBefore.UTC().Format(time.RFC3339))}
	}
	if remedy, ok := remedies[st.Cause]; ok {
		return []string{fmt.Sprintf("%s: %s", st.Cause, remedy)}
	}
	return []string{string(st.Cause)}
}

func (f *Frontier) pendingOn(n int) []string {
	var waits []string
	u := &f.s.Units[n]
	for _, id := range u.DependsOn {
		switch d, ok := f.ix.byID[id]; {
		case !ok:
			waits = append(waits, fmt.Sprintf("dependency %s is not in this run", id))
		case !f.ix.complete[d]:
			waits = append(waits, fmt.Sprintf("dependency %s is %s", id, f.s.Nodes[d].State))
		}
	}
	if u.Phase > f.s.Phase {
		waits = append(waits, fmt.Sprintf("phase %d is not open yet", u.Phase))
	}
	if len(waits) > 0 {
		return waits
	}
	for _, id := range f.conflictingNodes(n, func(x int) bool { return f.s.Nodes[x].State == contract.NodeRunning }) {
		waits = append(waits, fmt.Sprintf("its write scope overlaps %s, which runs", id))
	}
	for _, id := range f.conflictingNodes(n, func(x int) bool {
		return f.ix.inReady[x] && f.s.Nodes[x].Overtaken >= MaxOvertaken && f.s.Nodes[x].Ticket < f.s.Nodes[n].Ticket
	}) {
		waits = append(waits, fmt.Sprintf("%s waits longer and was overtaken %d times", id, MaxOvertaken))
	}
	if len(waits) == 0 {
		waits = append(waits, "a free slot")
	}
	return waits
}

// conflicts names the nodes whose scope overlaps the node's.
func (f *Frontier) conflicts(n int) []string {
	return f.conflictingNodes(n, func(int) bool { return true })
}

func (f *Frontier) conflictingNodes(n int, is func(int) bool) []string {
	var ids []string
	f.ix.conflicting(n, func(class int) {
		for _, x := range f.ix.classes[class].members {
			if x != n && is(x) {
				ids = append(ids, f.s.Units[x].ID)
			}
		}
	})
	slices.Sort(ids)
	return ids[:min(len(ids), maxConflicts)]
}

// OpenAt counts the nodes of a level that are not over: they run, wait or may
// still start there. A drive that has all of them gets no other.
func (f *Frontier) OpenAt(depth int) int {
	open := 0
	for n := range f.s.Nodes {
		if f.s.Units[n].Depth == depth && under(f.s.Nodes[n].State) {
			open++
		}
	}
	return open
}

// Unit returns a node of the run as the plan made it.
func (f *Frontier) Unit(id string) (plan.Unit, bool) {
	n, ok := f.ix.byID[id]
	if !ok {
		return plan.Unit{}, false
	}
	return f.s.Units[n], true
}
