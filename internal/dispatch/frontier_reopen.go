package dispatch

import (
	"fmt"
	"slices"

	"mendflow/internal/contract"
)

// Triage answers for a blocked item (gate-and-close.md, Triage).
const (
	TriageRetry  = contract.TriageRetry
	TriageIgnore = contract.TriageIgnore
	TriageHalt   = contract.TriageHalt
)

// Answers to a worker's question.
const (
	AnswerClarified = contract.AnswerClarified
	AnswerReject    = contract.AnswerReject
	AnswerDefer     = contract.AnswerDefer
)

// Reopen begins the next opening of a node that is not running: its items but
// skipped and abandoned ones are pending again. charge counts what was undone as
// one charged work attempt of the new opening (a culprit has one try less);
// without it the counts start at nothing. When the node satisfied edges, those of
// its dependants whose work counted, directly or further on, are re-opened too,
// not charged. tail is what the next prompt says about the reason.
func (f *Frontier) Reopen(node, reason string, charge bool, tail string) Changes {
	c := Changes{Node: node}
	n, ok := f.ix.byID[node]
	switch {
	case !ok:
		c.Ignored = fmt.Sprintf("node %s is not in this run", node)
		return c
	case f.s.Nodes[n].State == contract.NodeRunning:
		c.Ignored = "the node is running"
		return c
	}
	was := f.ix.complete[n]
	f.reset(n, reason, tail, &c)
	if charge {
		f.s.Nodes[n].Charged.Work = 1
	}
	if was {
		f.reopenDependants(n, &c)
	}
	c.State = f.s.Nodes[n].State
	f.freeDeadEnds(&c)
	f.sortChanges(&c)
	return c
}

// Reblock is the coarse re-opening of the whole run: every node that is not
// running begins its next opening with all its items but skipped and abandoned
// ones. Nodes that have nothing else stay as they are.
func (f *Frontier) Reblock(reason, tail string) Changes {
	var c Changes
	f.freeDeadEnds(&c)
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if st.State == contract.NodeRunning || st.State == contract.NodePending {
			continue
		}
		f.reset(n, reason, tail, &c)
	}
	f.sortChanges(&c)
	return c
}

// reset makes a node's items pending and begins its next opening, where there is
// an item to reset.
func (f *Frontier) reset(n int, reason, tail string, c *Changes) {
	before := f.snapshot(n)
	some := false
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		it := &f.s.Items[i]
		if it.Status.Skip() || it.Status == contract.ItemAbandoned {
			continue
		}
		*it = itemState{Status: contract.ItemPending, Question: asked(it), Answer: it.Answer}
		some = true
	}
	if !some {
		return
	}
	st := &f.s.Nodes[n]
	st.Charged, st.Tail, st.Salvage = contract.Charged{}, tail, ""
	f.open(n, reason, c)
	f.satisfy(n)
	c.Items = append(c.Items, f.changed(n, before)...)
}

// reopenDependants re-opens those that stand on a node's work.
func (f *Frontier) reopenDependants(n int, c *Changes) {
	for _, d := range f.ix.dependants[n] {
		st := &f.s.Nodes[d]
		if !st.Landed && !f.ix.complete[d] || st.State == contract.NodeRunning {
			continue
		}
		was := f.ix.complete[d]
		f.reset(d, fmt.Sprintf("depends on %s, which was re-opened", f.s.Units[n].ID), "", c)
		if was {
			f.reopenDependants(d, c)
		}
	}
}

// Reject blocks a node whose work was taken back for good: its items but skipped
// and abandoned ones become blocked, in the next opening, so that nothing of the
// old one counts. Dependants whose work stood on it are re-opened as by Reopen
// and wait for it; DeadEnds blocks them.
func (f *Frontier) Reject(node, reason string) Changes {
	c := f.Reopen(node, reason, false, "")
	if c.Ignored == "" {
		f.block(f.ix.byID[node], reason, &c)
		c.State = f.s.Nodes[f.ix.byID[node]].State
	}
	return c
}

// RejectAll is the end of a run whose gate stays red: every item of every node
// that is not running becomes blocked, but skipped and abandoned ones.
func (f *Frontier) RejectAll(reason string) Changes {
	c := f.Reblock(reason, "")
	for n := range f.s.Nodes {
		f.block(n, reason, &c)
	}
	return c
}

// block blocks the pending items of a node that waits to run.
func (f *Frontier) block(n int, reason string, c *Changes) {
	st := &f.s.Nodes[n]
	if st.State != contract.NodePending {
		return
	}
	before := f.snapshot(n)
	f.blockPending(n, reason)
	st.State, st.Reason, st.Ticket, st.Overtaken = f.standing(n), reason, 0, 0
	f.ix.refresh(&f.s, n)
	for _, row := range f.changed(n, before) {
		c.Items = slices.DeleteFunc(c.Items, func(old contract.ItemRow) bool { return old.Finding == row.Finding })
		c.Items = append(c.Items, row)
	}
	f.sortChanges(c)
}

// Triage answers for blocked items, all in the same way: retry begins the next
// opening of their nodes with new bounds, ignore skips them, halt asks the host to
// close the run and changes nothing here. An error, CheckTriage's, changes nothing.
func (f *Frontier) Triage(action string, findings ...string) (Changes, error) {
	for _, finding := range findings {
		if err := f.CheckTriage(finding, action); err != nil {
			return Changes{}, err
		}
	}
	var c Changes
	if action == TriageHalt {
		c.Halt = true
		return c, nil
	}
	for _, finding := range findings { // dead ends are freed when all is said: an answer for one stands on its own
		at := f.ix.byFinding[finding]
		n, it := at[0], &f.s.Items[at[1]]
		before := f.snapshot(n)
		if action == TriageRetry {
			*it = itemState{Status: contract.ItemPending, Question: asked(it), Answer: it.Answer}
			f.tryAgain(n, "retried by an operator", true, &c)
		} else {
			it.Status, it.Reason = contract.ItemIgnored, "ignored by an operator: "+it.Reason
			f.settleItems(n)
		}
		f.satisfy(n)
		c.Node, c.Items = f.s.Units[n].ID, append(c.Items, f.changed(n, before)...)
	}
	f.freeDeadEnds(&c)
	if n, ok := f.ix.byID[c.Node]; ok {
		c.State = f.s.Nodes[n].State
	}
	f.sortChanges(&c)
	return c, nil
}

// Answer answers a worker's question about a finding: clarified begins the
// node's next opening with the text in its prompt and the charged counts carried
// over, reject finds the finding inappropriate, defer blocks it. The error is CheckAnswer's.
func (f *Frontier) Answer(finding, kind, text string) (Changes, error) {
	if err := f.CheckAnswer(finding, kind, text); err != nil {
		return Changes{}, err
	}
	at := f.ix.byFinding[finding]
	n, it := at[0], &f.s.Items[at[1]]
	before, c := f.snapshot(n), Changes{Node: f.s.Units[n].ID}
	switch kind {
	case AnswerClarified:
		*it = itemState{Status: contract.ItemPending, Question: it.Question, Answer: cutHead(text, maxAnswer), Omitted: it.Omitted}
		f.tryAgain(n, "clarified by an operator", false, &c)
	case AnswerReject:
		it.Status, it.Reason = contract.ItemDeemedInappropriate, orElse(text, "rejected by an operator")
		f.settleItems(n)
	case AnswerDefer:
		it.Status, it.Reason, it.Deferred = contract.ItemBlocked, orElse(text, "the question was deferred: "+it.Question), true
		f.settleItems(n)
	}
	f.finishAnswer(n, before, &c)
	return c, nil
}

// maxAnswer bounds an operator's answer, so that a prompt has room for the rest.
const maxAnswer = 1000

// asked is the question that an item's answer belongs to.
func asked(it *itemState) string {
	if it.Answer == "" {
		return ""
	}
	return it.Question
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// tryAgain lets a node with a newly pending item run: a settled one in its next
// opening, one that runs or waits anyway as soon as it can.
func (f *Frontier) tryAgain(n int, reason string, fresh bool, c *Changes) {
	st := &f.s.Nodes[n]
	switch {
	case st.DeadEnd:
		st.State, st.DeadEnd, st.Reason = contract.NodePending, false, ""
		f.ix.refresh(&f.s, n)
	case !under(st.State):
		if fresh {
			st.Charged = contract.Charged{}
		}
		f.open(n, reason, c)
	}
}

// settleItems gives a node whose items changed without a worker its state.
func (f *Frontier) settleItems(n int) {
	if st := &f.s.Nodes[n]; !under(st.State) {
		st.State = f.standing(n)
	}
}

func (f *Frontier) finishAnswer(n int, before []contract.ItemStatus, c *Changes) {
	f.satisfy(n)
	c.Items = f.changed(n, before)
	f.freeDeadEnds(c)
	c.State = f.s.Nodes[n].State
	f.sortChanges(c)
}

// Abandon ends the run for its items: whatever is not terminal becomes abandoned
// and keeps its reason, else gets this one. Nodes that run are left alone; the
// host stops them first.
func (f *Frontier) Abandon(reason string) Changes {
	var c Changes
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if st.State == contract.NodeRunning || f.every(n, contract.ItemStatus.Terminal) {
			continue
		}
		before := f.snapshot(n)
		from, to := f.itemRange(n)
		for i := from; i < to; i++ {
			if it := &f.s.Items[i]; !it.Status.Terminal() {
				it.Status, it.Reason = contract.ItemAbandoned, orElse(it.Reason, orElse(it.Question, reason))
			}
		}
		st.State, st.Reason = f.standing(n), orElse(st.Reason, reason)
		st.Cause, st.NotBefore, st.DeadEnd, st.Ticket, st.Overtaken = "", nil, false, 0, 0
		f.ix.refresh(&f.s, n)
		c.Items = append(c.Items, f.changed(n, before)...)
	}
	return c
}
