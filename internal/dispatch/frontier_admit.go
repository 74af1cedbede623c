package dispatch

import (
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// MaxOvertaken is how often nodes that became eligible later, and whose scope
// conflicts, may go before a waiting node (dispatch.md, Scope admission).
const MaxOvertaken = 3

// LevelAdmission is a node to hand to a drive of its level.
type LevelAdmission struct {
	Depth     int
	Admission contract.Admission
}

// Admissions admits at most free nodes and returns them in order; they are
// running from here on. A node is admitted when its dependencies are
// verified-complete, its phase is open, no running node's scope conflicts, and no
// node that waits longer and was overtaken MaxOvertaken times conflicts. Order:
// nodes that come back from stranding, continuity, worst severity, id. Stranded
// nodes whose instant has come are taken up first.
//
// The line by which overtaking is counted is the order in which nodes became
// eligible. It never changes, so of two nodes that wait for each other's scope
// one is always first: nothing dead-locks, and an exclusive node at its bound
// stops the rest until it ran.
func (f *Frontier) Admissions(now time.Time, free int) []LevelAdmission {
	f.armDue(now)
	f.line()
	if free <= 0 {
		return nil
	}
	var out []LevelAdmission
	first := f.overtakenMost()
	for _, n := range slices.Clone(f.ix.ready) {
		if len(out) == free {
			break
		}
		if !f.ix.free(n) || f.barred(n, first) {
			continue
		}
		out = append(out, f.admit(n))
		first = f.overtakenMost()
	}
	return out
}

// armDue makes stranded nodes pending whose instant has come.
func (f *Frontier) armDue(now time.Time) {
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		if st.State == contract.NodeStranded && st.NotBefore != nil && !now.Before(*st.NotBefore) {
			f.arm(n)
		}
	}
}

func (f *Frontier) arm(n int) {
	st := &f.s.Nodes[n]
	st.State, st.Cause, st.NotBefore, st.Reason, st.Returned = contract.NodePending, "", nil, "", true
	f.ix.refresh(&f.s, n)
}

// Rearm makes the stranded nodes with these causes pending again, whatever their
// instant (a pool changed, a hold ended, `resume --now`), and returns their ids
// in plan order.
func (f *Frontier) Rearm(causes ...contract.StrandCause) []string {
	var ids []string
	for n := range f.s.Nodes {
		if f.s.Nodes[n].State == contract.NodeStranded && slices.Contains(causes, f.s.Nodes[n].Cause) {
			f.arm(n)
			ids = append(ids, f.s.Units[n].ID)
		}
	}
	return ids
}

// line sorts the ready nodes and gives a ticket to those that have none.
func (f *Frontier) line() {
	if !f.ix.unsorted {
		return
	}
	slices.SortFunc(f.ix.ready, f.order)
	for _, n := range f.ix.ready {
		if f.s.Nodes[n].Ticket == 0 {
			f.s.Tickets++
			f.s.Nodes[n].Ticket = f.s.Tickets
		}
	}
	f.ix.unsorted = false
}

func (f *Frontier) order(a, b int) int {
	if ra := f.s.Nodes[a].Returned; ra != f.s.Nodes[b].Returned {
		if ra {
			return -1
		}
		return 1
	}
	if c := f.ix.closeness[b] - f.ix.closeness[a]; c != 0 {
		return c
	}
	if c := f.s.Units[a].Severity - f.s.Units[b].Severity; c != 0 {
		return c
	}
	return strings.Compare(f.s.Units[a].ID, f.s.Units[b].ID)
}

// overtakenMost maps each class to the earliest ticket of its ready nodes that
// may not be overtaken again; nil when there is none, which is the usual case.
func (f *Frontier) overtakenMost() map[int]int {
	var first map[int]int
	for _, n := range f.ix.ready {
		st := &f.s.Nodes[n]
		if st.Overtaken < MaxOvertaken {
			continue
		}
		if first == nil {
			first = map[int]int{}
		}
		c := f.ix.class[n]
		if t, ok := first[c]; !ok || st.Ticket < t {
			first[c] = st.Ticket
		}
	}
	return first
}

// barred reports whether a node has to wait for one that it may not overtake again.
func (f *Frontier) barred(n int, first map[int]int) bool {
	if len(first) == 0 {
		return false
	}
	is := false
	f.ix.conflicting(n, func(class int) {
		t, ok := first[class]
		is = is || ok && t < f.s.Nodes[n].Ticket
	})
	return is
}

// admit makes a node running and counts whom it overtook.
func (f *Frontier) admit(n int) LevelAdmission {
	u, st := &f.s.Units[n], &f.s.Nodes[n]
	ticket := st.Ticket
	st.State, st.Ticket, st.Overtaken, st.Returned, st.Reason = contract.NodeRunning, 0, 0, false, ""
	f.ix.refresh(&f.s, n)
	f.ix.occupy(n, 1)
	f.ix.conflicting(n, func(class int) {
		for _, x := range f.ix.classes[class].members {
			if f.ix.inReady[x] && f.s.Nodes[x].Ticket < ticket {
				f.s.Nodes[x].Overtaken++
			}
		}
	})
	st.Given = f.openFindings(n)
	a := contract.Admission{
		Node: u.ID, Opening: st.Opening, NextAttempt: st.Next, Tier: string(u.Tier), Tokens: u.Tokens,
		Charged: st.Charged, Refused: st.Refused, FirstPool: st.FirstPool, Limited: st.Limited,
		Kept: st.Kept, Tail: cutTail(st.Tail, maxTail), Salvage: st.Salvage, Clarified: f.clarified(n),
	}
	if len(st.Given) < len(u.Findings) {
		a.Findings = st.Given
	}
	return LevelAdmission{Depth: u.Depth, Admission: a}
}

func (f *Frontier) openFindings(n int) []string {
	var open []string
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		if f.s.Items[i].Status == contract.ItemPending {
			open = append(open, f.s.Units[n].Findings[i-from])
		}
	}
	return open
}

// maxTail bounds what a prompt repeats of the last failure (contract.Admission.Tail).
const maxTail = 2048

// Bounds of the answers that travel with an admission.
const (
	maxQuestion  = 500
	maxClarified = 12 << 10 // of all of a node's, so that messages fit into payloads
)

// clarified are operators' answers about the open findings, for the next prompt.
func (f *Frontier) clarified(n int) []contract.Clarification {
	var all []contract.Clarification
	size := 0
	from, to := f.itemRange(n)
	for i := from; i < to; i++ {
		it := &f.s.Items[i]
		if it.Status != contract.ItemPending || it.Answer == "" {
			continue
		}
		c := contract.Clarification{Finding: f.s.Units[n].Findings[i-from], Question: cutHead(it.Question, maxQuestion), Answer: it.Answer}
		if size += len(c.Finding) + len(c.Question) + len(c.Answer); size > maxClarified {
			break
		}
		all = append(all, c)
	}
	return all
}

// cutHead keeps the first n bytes of s, at a rune border.
func cutHead(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// cutTail keeps the last n bytes of s, at a rune border.
func cutTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	for from < len(s) && s[from]&0xC0 == 0x80 {
		from++
	}
	return s[from:]
}
