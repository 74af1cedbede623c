package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// TerminalKind says how a run stands when it asks what to wait for.
type TerminalKind string

// Kinds of a terminal. "Nothing is left" and "nothing can be given out" are
// different answers.
const (
	TerminalDone    TerminalKind = "done"    // every item is terminal
	TerminalBusy    TerminalKind = "busy"    // something runs or may, or the next phase waits to be opened
	TerminalWaiting TerminalKind = "waiting" // all that may still move is stranded
	TerminalAsking  TerminalKind = "asking"  // only blocked items and questions are left
)

// Terminal is why a run has nodes left over that do not run, and which. The zero
// value is the terminal of nothing left over.
type Terminal struct {
	Kind      TerminalKind `json:"kind"`
	NotBefore *time.Time   `json:"not_before,omitempty"` // earliest instant that any node has
	Causes    []CauseNodes `json:"causes,omitempty"`     // in the order of the vocabulary
	Helpless  []Helpless   `json:"helpless,omitempty"`   // nodes that waiting does not help, by id
}

// CauseNodes are the nodes stranded with one cause.
type CauseNodes struct {
	Cause contract.StrandCause `json:"cause"`
	Nodes []string             `json:"nodes"` // by id
}

// Helpless is a node that waiting does not help.
type Helpless struct {
	Node   string               `json:"node"`
	Cause  contract.StrandCause `json:"cause"`
	Reason string               `json:"reason,omitempty"`
}

// strandCauses is the order in which causes are listed.
var strandCauses = [...]contract.StrandCause{
	contract.StrandQuotaPaused, contract.StrandBudgetExhausted, contract.StrandHeld, contract.StrandUnserved,
	contract.StrandNoCapablePool, contract.StrandEmptyPool, contract.StrandEscalated,
}

// waitingHelps reports whether time, a budget, a host or the end of a hold re-arms a cause.
func waitingHelps(cause contract.StrandCause) bool {
	switch cause {
	case contract.StrandQuotaPaused, contract.StrandBudgetExhausted, contract.StrandHeld, contract.StrandUnserved:
		return true
	default:
		return false
	}
}

// Fold adds up what drives returned. Every node keeps its own cause, the instant
// is the earliest present one, and the result depends neither on the order nor
// on repetitions. Of a node that is named more than once, the stranding of the
// later opening and attempt counts.
func Fold(strandings []contract.Stranding) Terminal {
	last := slices.Clone(strandings)
	slices.SortFunc(last, func(a, b contract.Stranding) int {
		if byNode := cmp.Compare(a.Node, b.Node); byNode != 0 {
			return byNode
		}
		switch {
		case newer(a, b):
			return -1
		case newer(b, a):
			return 1
		}
		return 0
	})
	last = slices.CompactFunc(last, func(a, b contract.Stranding) bool { return a.Node == b.Node })
	t := Terminal{Kind: TerminalDone}
	nodes := map[contract.StrandCause][]string{}
	for _, s := range last {
		t.Kind = TerminalWaiting
		nodes[s.Cause] = append(nodes[s.Cause], s.Node)
		if s.NotBefore != nil && (t.NotBefore == nil || s.NotBefore.Before(*t.NotBefore)) {
			t.NotBefore = s.NotBefore
		}
		if !waitingHelps(s.Cause) {
			t.Helpless = append(t.Helpless, Helpless{Node: s.Node, Cause: s.Cause, Reason: s.Reason})
		}
	}
	for _, cause := range strandCauses {
		if ids := nodes[cause]; len(ids) > 0 {
			slices.Sort(ids)
			t.Causes = append(t.Causes, CauseNodes{Cause: cause, Nodes: ids})
		}
	}
	slices.SortFunc(t.Helpless, func(a, b Helpless) int { return cmp.Compare(a.Node, b.Node) })
	return t
}

// newer orders two strandings of one node, the same whichever comes first.
func newer(a, b contract.Stranding) bool {
	return cmp.Or(
		cmp.Compare(a.Opening, b.Opening), cmp.Compare(a.NextAttempt, b.NextAttempt),
		cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Reason, b.Reason), compareInstants(a.NotBefore, b.NotBefore),
	) > 0
}

// compareInstants puts an absent instant last.
func compareInstants(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

// Waiting says what the run waits for. Call it when Admissions gave nothing.
func (f *Frontier) Waiting() Terminal {
	var strandings []contract.Stranding
	busy, open := false, false
	for n := range f.s.Nodes {
		st := &f.s.Nodes[n]
		switch st.State {
		case contract.NodeStranded:
			strandings = append(strandings, contract.Stranding{
				Node: f.s.Units[n].ID, Opening: st.Opening, NextAttempt: st.Next,
				Cause: st.Cause, NotBefore: st.NotBefore, Reason: st.Reason,
			})
		case contract.NodeRunning:
			busy = true
		case contract.NodePending:
			busy = busy || f.ix.inReady[n]
			open = true
		default:
			open = open || !f.every(n, contract.ItemStatus.Terminal)
		}
	}
	_, _, boundary := f.PhaseBoundary()
	t := Fold(strandings)
	switch {
	case busy || boundary:
		t.Kind = TerminalBusy
	case t.Kind == TerminalDone && open:
		t.Kind = TerminalAsking
	}
	return t
}

// HoldFor is the hold that a run takes when all that is left waits: quota with
// the earliest instant if any node has one, else the hold of its cause. ok is
// false when the terminal asks for none: something runs, nothing is left, or the
// nodes wait for the end of a hold that is there already. The reason lists apart
// the nodes that waiting does not help. Since and Lift are the caller's.
func HoldFor(t Terminal) (hold contract.Hold, ok bool) {
	if t.Kind == TerminalAsking {
		return contract.Hold{Kind: contract.HoldQuestion, Reason: "only blocked items and questions are left"}, true
	}
	if t.Kind != TerminalWaiting {
		return contract.Hold{}, false
	}
	has := func(cause contract.StrandCause) int {
		for _, c := range t.Causes {
			if c.Cause == cause {
				return len(c.Nodes)
			}
		}
		return 0
	}
	switch {
	case t.NotBefore != nil:
		hold = contract.Hold{Kind: contract.HoldQuota, Until: t.NotBefore, Reason: "every pool that could work is paused"}
	case has(contract.StrandUnserved) > 0:
		hold = contract.Hold{Kind: contract.HoldService, Reason: "no host takes attempts from the queues of the pools: start a worker that serves them"}
	case has(contract.StrandBudgetExhausted) > 0:
		hold = contract.Hold{Kind: contract.HoldBudget, Reason: "the next reservation does not fit into the budget"}
	case has(contract.StrandQuotaPaused) > 0:
		hold = contract.Hold{Kind: contract.HoldQuota, Reason: "every pool that could work is paused"}
	case has(contract.StrandNoCapablePool) > 0:
		hold = contract.Hold{Kind: contract.HoldQuota, Reason: "no pool can take what is left"}
	case len(t.Helpless) > 0:
		hold = contract.Hold{Kind: contract.HoldQuestion, Reason: "nothing else can run"}
	default:
		return contract.Hold{}, false
	}
	hold.Reason += helplessText(t.Helpless)
	return hold, true
}

// maxHelplessNamed bounds how many nodes a hold's text names.
const maxHelplessNamed = 5

// helplessText says which nodes waiting does not help, and what would.
func helplessText(helpless []Helpless) string {
	var parts []string
	for _, cause := range strandCauses {
		var ids []string
		for _, h := range helpless {
			if h.Cause == cause {
				ids = append(ids, h.Node)
			}
		}
		if len(ids) == 0 {
			continue
		}
		text := strings.Join(ids[:min(len(ids), maxHelplessNamed)], ", ")
		if more := len(ids) - maxHelplessNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text+" ("+remedies[cause]+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; waiting does not help " + strings.Join(parts, ", ")
}

// remedies says what re-arms the causes that time does not (dispatch.md, Stranding).
var remedies = map[contract.StrandCause]string{
	contract.StrandNoCapablePool: "no pool is large enough or allowed: change the pools",
	contract.StrandEmptyPool:     "every pool that could take it is exhausted: reopen one",
	contract.StrandEscalated:     "limited again and again where others succeed: triage",
}
