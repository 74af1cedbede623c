package dispatch

import (
	"fmt"

	"mendflow/internal/contract"
)

// waitsForAnswer reports whether an operator is asked about an item: a blocked
// one, or one with a question, that nobody has put off.
func (it *itemState) waitsForAnswer() bool {
	return it.Status == contract.ItemNeedsClarification || it.Status == contract.ItemBlocked && !it.Deferred
}

// CheckTriage says why a triage answer does not apply to a finding; nil: it does.
func (f *Frontier) CheckTriage(finding, action string) error {
	at, ok := f.ix.byFinding[finding]
	switch {
	case !ok:
		return fmt.Errorf("triage %s: no such finding in this run", finding)
	case action == TriageHalt:
		return nil
	case f.s.Items[at[1]].Status != contract.ItemBlocked:
		return fmt.Errorf("triage %s: the item is %s, not blocked", finding, f.s.Items[at[1]].Status)
	case action != TriageRetry && action != TriageIgnore:
		return fmt.Errorf("triage %s: unknown answer %q: want %s, %s or %s", finding, action, TriageRetry, TriageIgnore, TriageHalt)
	}
	return nil
}

// CheckAnswer says why an answer to a worker's question does not apply to a finding; nil: it does.
func (f *Frontier) CheckAnswer(finding, kind, text string) error {
	at, ok := f.ix.byFinding[finding]
	switch {
	case !ok:
		return fmt.Errorf("answer %s: no such finding in this run", finding)
	case f.s.Items[at[1]].Status != contract.ItemNeedsClarification:
		return fmt.Errorf("answer %s: the item is %s, nobody asked", finding, f.s.Items[at[1]].Status)
	case kind == AnswerClarified && text == "":
		return fmt.Errorf("answer %s: the text is empty", finding)
	case kind != AnswerClarified && kind != AnswerReject && kind != AnswerDefer:
		return fmt.Errorf("answer %s: unknown answer %q: want %s, %s or %s", finding, kind, AnswerClarified, AnswerReject, AnswerDefer)
	}
	return nil
}

// Asked counts the items that wait for an operator's answer.
func (f *Frontier) Asked() (blocked, questions int) {
	for i := range f.s.Items {
		switch it := &f.s.Items[i]; {
		case !it.waitsForAnswer():
		case it.Status == contract.ItemBlocked:
			blocked++
		default:
			questions++
		}
	}
	return blocked, questions
}

// ItemPage returns at most limit (0: all) rows of the findings from offset, in
// plan order; with asked only those that wait for an answer, counted among themselves.
func (f *Frontier) ItemPage(offset, limit int, asked bool) []contract.ItemRow {
	rows := []contract.ItemRow{}
	for n := range f.s.Nodes {
		from, to := f.itemRange(n)
		for i := from; i < to; i++ {
			switch {
			case asked && !f.s.Items[i].waitsForAnswer():
			case offset > 0:
				offset--
			case limit > 0 && len(rows) == limit:
				return rows
			default:
				rows = append(rows, f.itemRow(n, i))
			}
		}
	}
	return rows
}

// Item returns the row of one finding; ok is false for an unknown one.
func (f *Frontier) Item(finding string) (row contract.ItemRow, ok bool) {
	at, ok := f.ix.byFinding[finding]
	if !ok {
		return contract.ItemRow{}, false
	}
	return f.itemRow(at[0], at[1]), true
}

// VerifyAgain names the first node, in plan order, whose blocked items may be
// repaired on the truth after all, and these items: its worker delivered
// something, did not itself call them blocked, and they were not verified on this
// truth before (gate-and-close.md, Triage). ok is false without one.
func (f *Frontier) VerifyAgain(truth string) (node string, findings []string, ok bool) {
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if under(st.State) || st.Again == truth || !f.delivered(n) {
			continue
		}
		from, to := f.itemRange(n)
		for i := from; i < to; i++ {
			if it := &f.s.Items[i]; it.Status == contract.ItemBlocked && !it.Said && !it.Deferred {
				findings = append(findings, f.s.Units[n].Findings[i-from])
			}
		}
		if len(findings) > 0 {
			return f.s.Units[n].ID, findings, true
		}
	}
	return "", nil, false
}

func (f *Frontier) delivered(n int) bool {
	for _, a := range f.s.Nodes[n].Attempts {
		if a.Delivered {
			return true
		}
	}
	return false
}

// VerifiedAgain takes the answer for a node: these findings need no change any
// more, the others stay blocked. What an operator decided meanwhile stands.
func (f *Frontier) VerifiedAgain(node, truth string, resolved []string, reason string) Changes {
	c := Changes{Node: node}
	n, ok := f.ix.byID[node]
	if !ok {
		c.Ignored = "node " + node + " is not in this run"
		return c
	}
	f.s.Nodes[n].Again = truth
	before := f.snapshot(n)
	if len(resolved) == 0 {
		return c
	}
	for _, finding := range resolved {
		at, ok := f.ix.byFinding[finding]
		if !ok || at[0] != n {
			continue
		}
		if it := &f.s.Items[at[1]]; it.Status == contract.ItemBlocked {
			it.Status, it.Reason = contract.ItemResolvedNoChange, reason
		}
	}
	f.settleItems(n)
	f.finishAnswer(n, before, &c)
	return c
}

// Ready reports whether a node may be admitted as far as edges and phases go.
func (f *Frontier) Ready() bool { return len(f.ix.ready) > 0 }

// Over reports whether a node has ended, in whatever state: it does not run, wait or may still start.
func (f *Frontier) Over(node string) bool {
	n, ok := f.ix.byID[node]
	return ok && !under(f.s.Nodes[n].State)
}
