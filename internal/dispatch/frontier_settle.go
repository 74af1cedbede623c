package dispatch

import (
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// maxOmitted is how often a result may leave a finding out before it is blocked.
const maxOmitted = 2

// Settle takes a node that needs no further attempt in its drive. Items change
// by what its attempts said, terminal ones never. A finding that a result left
// out stays pending once; what a partial landing left over is retried while the
// node's work bound allows: both begin the next opening at once and carry the
// charged counts over. A node that settles as blocked after an error reached its
// bound: its open items become blocked.
func (f *Frontier) Settle(s contract.Settlement, _ time.Time) Changes {
	n, ignored := f.reported(s.Node, s.Opening, s.NextAttempt)
	if ignored != "" {
		return Changes{Node: s.Node, Ignored: ignored}
	}
	st, before := &f.s.Nodes[n], f.snapshot(n)
	given := st.Given
	f.leave(n)
	f.record(n, s.Attempts, s.NextAttempt)
	st.Charged, st.Kept, st.Limited, st.Passed = s.Charged, nil, nil, nil
	if tail, salvage := lastFailure(s.Attempts); tail != "" || salvage != "" {
		st.Tail, st.Salvage = tail, salvage
	}
	st.Landed = st.Landed || s.State == contract.NodeLanded || s.State == contract.NodePartial
	f.applyResults(n, s.Attempts)
	f.applyState(n, s, given)
	f.retryPartial(n, s)
	c := Changes{Node: s.Node, Items: f.changed(n, before)}
	f.close(n, s.Reason, &c)
	return c
}

// reported checks that a report is about an admission that is under way.
func (f *Frontier) reported(id string, opening, next int) (n int, ignored string) {
	n, ok := f.ix.byID[id]
	if !ok {
		return 0, fmt.Sprintf("node %s is not in this run", id)
	}
	st := &f.s.Nodes[n]
	switch {
	case opening != st.Opening:
		return n, fmt.Sprintf("the report is about opening %d, the node is in opening %d", opening, st.Opening)
	case st.State != contract.NodeRunning:
		return n, fmt.Sprintf("the node is not running (%s), its report was taken before", st.State)
	case next < st.Next:
		return n, fmt.Sprintf("the report ends before attempt %d, with which the node was admitted", st.Next)
	}
	return n, ""
}

// leave ends a node's admission: its scope is free again.
func (f *Frontier) leave(n int) {
	f.s.Nodes[n].State, f.s.Nodes[n].Given = contract.NodePending, nil
	f.ix.occupy(n, -1)
}

// record keeps the attempts' rows, each once, and where their work landed.
func (f *Frontier) record(n int, attempts []contract.AttemptResult, next int) {
	st := &f.s.Nodes[n]
	for _, a := range attempts {
		known := slices.ContainsFunc(st.Attempts, func(r contract.AttemptRow) bool { return r.K == a.Attempt })
		if !known {
			st.Attempts = append(st.Attempts, a.Row())
		}
		next = max(next, a.Attempt+1)
		if a.Commit != "" {
			f.recordPaths(a.Paths)
		}
	}
	st.Next = next
}

func lastFailure(attempts []contract.AttemptResult) (tail, salvage string) {
	for _, a := range slices.Backward(attempts) {
		if a.Tail != "" || a.Salvage != "" {
			return a.Tail, a.Salvage
		}
	}
	return "", ""
}

// applyResults changes items by what the attempts said about them, oldest first.
func (f *Frontier) applyResults(n int, attempts []contract.AttemptResult) {
	for _, a := range attempts {
		for _, r := range a.Items {
			at, ok := f.ix.byFinding[r.Finding]
			if !ok || at[0] != n {
				continue
			}
			f.applyItem(&f.s.Items[at[1]], r, a.Attempt)
		}
	}
	f.satisfy(n)
}

func (f *Frontier) applyItem(it *itemState, r contract.ItemResult, attempt int) {
	if it.Status.Terminal() {
		return
	}
	switch {
	case r.Omitted || r.Status == contract.ItemPending:
		if it.Omitted++; it.Omitted >= maxOmitted {
			it.Status, it.Attempt = contract.ItemBlocked, attempt
			it.Reason = fmt.Sprintf("left out of the worker's result %d times", it.Omitted)
		}
	case r.Status == contract.ItemNeedsClarification:
		it.Status, it.Reason, it.Question, it.Answer, it.Attempt = r.Status, r.Reason, r.Question, "", attempt
	case r.Status.VerifiedComplete() || r.Status == contract.ItemBlocked:
		it.Status, it.Reason, it.Attempt = r.Status, r.Reason, attempt
		it.Said, it.Deferred = r.Status == contract.ItemBlocked, false
		it.Question = asked(it)
	}
}

// applyState gives the items that no result named the meaning of the node's state.
func (f *Frontier) applyState(n int, s contract.Settlement, given []string) {
	last := contract.AttemptResult{}
	if len(s.Attempts) > 0 {
		last = s.Attempts[len(s.Attempts)-1]
	}
	var status contract.ItemStatus
	reason := s.Reason
	switch {
	case s.State == contract.NodeLanded:
		status = contract.ItemResolved
	case s.State == contract.NodeNoChange:
		status = contract.ItemResolvedNoChange
	case last.Outcome != contract.OutcomeSuccess:
		status = contract.ItemBlocked
		if reason == "" {
			reason = last.Reason
		}
	default:
		return // a success that left something over: its results said all
	}
	named := map[string]bool{}
	for _, r := range last.Items {
		named[r.Finding] = true
	}
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		it, finding := &f.s.Items[i], f.s.Units[n].Findings[i-from]
		if it.Status == contract.ItemPending && slices.Contains(given, finding) && !named[finding] {
			it.Status, it.Reason, it.Attempt = status, reason, last.Attempt
		}
	}
	f.satisfy(n)
}

// retryPartial makes what a partial landing left blocked pending again, charged
// to the node's work, while its bound allows another attempt.
func (f *Frontier) retryPartial(n int, s contract.Settlement) {
	st := &f.s.Nodes[n]
	if s.State != contract.NodePartial || st.Charged.Work+1 >= bound(contract.CauseWork) {
		return
	}
	said := false
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		it := &f.s.Items[i]
		if it.Status == contract.ItemBlocked && it.Omitted < maxOmitted {
			it.Status, said = contract.ItemPending, true
		}
	}
	if said {
		st.Charged.Work++
	}
}

// close gives a node that left its drive its state: the next opening when
// something is to be tried again, else what its items amount to.
func (f *Frontier) close(n int, reason string, c *Changes) {
	st := &f.s.Nodes[n]
	if f.any(n, contract.ItemPending) {
		f.open(n, reason, c)
		c.State = st.State
		return
	}
	st.State, st.Reason = f.standing(n), reason
	if f.any(n, contract.ItemNeedsClarification) {
		st.Reason = "a worker asked a question"
	}
	if f.every(n, contract.ItemStatus.Terminal) {
		st.Tail, st.Salvage, st.Refused = "", "", nil
	}
	c.State = st.State
	f.ix.refresh(&f.s, n)
}

// standing is the state that a node's items amount to when nothing of it runs or will.
func (f *Frontier) standing(n int) contract.NodeState {
	switch landed := f.s.Nodes[n].Landed; {
	case f.every(n, contract.ItemStatus.Skip):
		return contract.NodeSkipped
	case f.every(n, func(s contract.ItemStatus) bool { return s.VerifiedComplete() || s.Skip() }):
		if landed {
			return contract.NodeLanded
		}
		return contract.NodeNoChange
	case landed:
		return contract.NodePartial
	}
	return contract.NodeBlocked
}

// open begins a node's next opening.
func (f *Frontier) open(n int, reason string, c *Changes) {
	st := &f.s.Nodes[n]
	st.State, st.Reason, st.Landed, st.Kept, st.DeadEnd = contract.NodePending, reason, false, nil, false
	st.Cause, st.NotBefore, st.Limited, st.Returned = "", nil, nil, false
	if !f.ix.inReady[n] { // one that waits keeps its place in line
		st.Ticket, st.Overtaken = 0, 0
	}
	st.Opening++
	c.Opened = append(c.Opened, f.s.Units[n].ID)
	f.ix.unsorted = true
	f.ix.refresh(&f.s, n)
}

// satisfy updates the edges from a node after its items changed.
func (f *Frontier) satisfy(n int) {
	is := f.every(n, contract.ItemStatus.VerifiedComplete)
	if is == f.ix.complete[n] {
		return
	}
	f.ix.complete[n] = is
	by := 1
	if is {
		by = -1
	}
	for _, d := range f.ix.dependants[n] {
		f.ix.waits[d] += by
		f.ix.refresh(&f.s, d)
	}
}

// Strand takes a node that no pool can take now. It keeps everything that the
// next admission hands on, and frees the node's scope.
func (f *Frontier) Strand(s contract.Stranding, _ time.Time) Changes {
	n, ignored := f.reported(s.Node, s.Opening, s.NextAttempt)
	if ignored != "" {
		return Changes{Node: s.Node, Ignored: ignored}
	}
	st, before := &f.s.Nodes[n], f.snapshot(n)
	f.leave(n)
	f.record(n, s.Attempts, s.NextAttempt)
	st.Charged, st.Refused, st.FirstPool, st.Limited = s.Charged, s.Refused, s.FirstPool, s.Limited
	st.Kept, st.Passed = s.Kept, s.Passed
	if s.Tail != "" || s.Salvage != "" {
		st.Tail, st.Salvage = s.Tail, s.Salvage
	}
	c := Changes{Node: s.Node}
	f.applyResults(n, s.Attempts)
	if f.any(n, contract.ItemPending) {
		st.State, st.Cause, st.NotBefore, st.Reason = contract.NodeStranded, s.Cause, s.NotBefore, s.Reason
	} else {
		f.close(n, s.Reason, &c)
	}
	c.State, c.Items = st.State, f.changed(n, before)
	f.ix.refresh(&f.s, n)
	return c
}
