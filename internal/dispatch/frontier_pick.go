package dispatch

import (
	"strings"
	"time"

	"mendflow/internal/contract"
)

// Pick admits one node out of turn, for somebody who claims it: the named one,
// or with an empty name the next that may start, then the first that waits for a
// pool. It may not go before nodes that were overtaken too often, and never
// beside one whose scope conflicts. ok is false with the reason.
func (f *Frontier) Pick(node string, now time.Time) (a LevelAdmission, why string, ok bool) {
	f.line()
	first := f.overtakenMost()
	may := func(n int) bool { return f.ix.free(n) && !f.barred(n, first) }
	if node != "" {
		return f.pickNamed(node, now, may)
	}
	for _, n := range f.ix.ready {
		if may(n) {
			return f.admit(n), "", true
		}
	}
	for n := range f.s.Nodes {
		if f.s.Nodes[n].State == contract.NodeStranded && may(n) {
			f.arm(n)
			f.line()
			return f.admit(n), "", true
		}
	}
	return a, "no node waits", false
}

func (f *Frontier) pickNamed(node string, now time.Time, may func(int) bool) (a LevelAdmission, why string, ok bool) {
	n, known := f.ix.byID[node]
	if !known {
		return a, "the run has no node " + node, false
	}
	switch state := f.s.Nodes[n].State; {
	case state == contract.NodeStranded && may(n):
		f.arm(n)
		f.line()
	case state != contract.NodePending && state != contract.NodeStranded:
		return a, "node " + node + " is " + string(state), false
	case !f.ix.inReady[n] || !may(n):
		return a, "node " + node + " waits: " + strings.Join(f.waitsFor(n, now), "; "), false
	}
	return f.admit(n), "", true
}
