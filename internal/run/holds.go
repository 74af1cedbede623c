package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// Holds is the set of reasons why a run may not proceed: at most one of each
// kind, each lifted by its own lifter only (control.md). The zero value holds
// nothing. It marshals as the list of its holds.
type Holds struct {
	list []contract.Hold
}

// holdOrder is the order in which holds are listed.
var holdOrder = []contract.HoldKind{
	contract.HoldOperator, contract.HoldScheduler, contract.HoldQuota, contract.HoldBudget,
	contract.HoldService, contract.HoldQuestion, contract.HoldGate, contract.HoldRecovery,
}

// Place adds a hold, or renews the one of its kind: that keeps its Since and the
// one who placed it, and takes the new reason and instant. It reports whether the
// kind is new. Lift is filled in by List.
func (h *Holds) Place(hold contract.Hold) bool {
	hold.Lift = ""
	if i := h.index(hold.Kind); i >= 0 {
		old := h.list[i]
		hold.Since, hold.By = old.Since, cmp.Or(old.By, hold.By)
		hold.Reason = cmp.Or(hold.Reason, old.Reason)
		h.list[i] = hold
		return false
	}
	h.list = append(h.list, hold)
	slices.SortFunc(h.list, func(a, b contract.Hold) int {
		return cmp.Compare(slices.Index(holdOrder, a.Kind), slices.Index(holdOrder, b.Kind))
	})
	return true
}

func (h *Holds) index(kind contract.HoldKind) int {
	return slices.IndexFunc(h.list, func(x contract.Hold) bool { return x.Kind == kind })
}

// Has reports whether a hold of this kind is there.
func (h *Holds) Has(kind contract.HoldKind) bool { return h.index(kind) >= 0 }

// Empty reports that nothing holds the run.
func (h *Holds) Empty() bool { return len(h.list) == 0 }

// List returns the holds in the order of control.md, each with the command that
// lifts it for this run.
func (h *Holds) List(run string) []contract.Hold {
	out := make([]contract.Hold, 0, len(h.list))
	for _, hold := range h.list {
		hold.Lift = LiftCommand(hold, run)
		out = append(out, hold)
	}
	return out
}

// Lifter is an event that may lift holds.
type Lifter string

// Lifters; resume is the method Resume.
const (
	LiftedByScheduler Lifter = "scheduler"  // the scheduler was enabled
	LiftedByPools     Lifter = "pools"      // a pool was reopened or the composition changed
	LiftedByBudget    Lifter = "budget"     // a cap was raised
	LiftedByHosts     Lifter = "hosts"      // a host polls the queue that was missing
	LiftedByAnswers   Lifter = "answers"    // nothing is left to ask
	LiftedByGateRetry Lifter = "gate-retry" // the operator asked to run the gate again
	LiftedByRecover   Lifter = "recover"    // the operator chose how to recover
)

// lifts says which kind each lifter lifts.
var lifts = map[Lifter]contract.HoldKind{
	LiftedByScheduler: contract.HoldScheduler,
	LiftedByPools:     contract.HoldQuota,
	LiftedByBudget:    contract.HoldBudget,
	LiftedByHosts:     contract.HoldService,
	LiftedByAnswers:   contract.HoldQuestion,
	LiftedByGateRetry: contract.HoldGate,
	LiftedByRecover:   contract.HoldRecovery,
}

// Lift lifts what the lifter may lift and reports whether it was there.
func (h *Holds) Lift(by Lifter) bool { return h.drop(lifts[by]) }

func (h *Holds) drop(kind contract.HoldKind) bool {
	i := h.index(kind)
	if i < 0 {
		return false
	}
	h.list = slices.Delete(h.list, i, i+1)
	return true
}

// Due lifts the quota hold when its instant has come and reports whether it did.
// A hold without an instant waits for a pool.
func (h *Holds) Due(now time.Time) bool {
	i := h.index(contract.HoldQuota)
	if i < 0 || h.list[i].Until == nil || now.Before(*h.list[i].Until) {
		return false
	}
	return h.drop(contract.HoldQuota)
}

// Until is the instant at which the quota hold ends by itself; nil without one.
func (h *Holds) Until() *time.Time {
	if i := h.index(contract.HoldQuota); i >= 0 {
		return h.list[i].Until
	}
	return nil
}

// Resume is an operator's resume. It lifts the operator hold; a quota hold only
// when there was no operator hold, or with now; a budget hold only when a new cap
// came along; a gate hold only when it was the only one. lifted and left are the
// kinds that went and that still hold the run.
func (h *Holds) Resume(now, budget bool) (lifted, left []contract.HoldKind) {
	operator, only := h.Has(contract.HoldOperator), len(h.list) == 1
	may := func(kind contract.HoldKind) bool {
		switch kind {
		case contract.HoldOperator:
			return true
		case contract.HoldQuota:
			return !operator || now
		case contract.HoldBudget:
			return budget
		case contract.HoldGate:
			return only
		default:
			return false
		}
	}
	for _, kind := range holdOrder {
		if !h.Has(kind) {
			continue
		}
		if may(kind) {
			h.drop(kind)
			lifted = append(lifted, kind)
		} else {
			left = append(left, kind)
		}
	}
	return lifted, left
}

// LiftCommand is the exact command that lifts a hold of a run.
func LiftCommand(hold contract.Hold, run string) string {
	switch hold.Kind {
	case contract.HoldOperator:
		return "starter resume " + run
	case contract.HoldScheduler:
		return "starter scheduler enable"
	case contract.HoldQuota:
		return "starter resume " + run + " --now"
	case contract.HoldBudget:
		return "starter resume " + run + " --budget N"
	case contract.HoldService:
		return "worker --pools FILE" // on any host; lifts by itself once one polls
	case contract.HoldQuestion:
		return "starter triage " + run
	case contract.HoldGate:
		return "starter gate retry " + run
	case contract.HoldRecovery:
		return "starter recover " + run + " continue|clean|abandon"
	}
	return ""
}

// MarshalJSON writes the list of holds.
func (h Holds) MarshalJSON() ([]byte, error) {
	if h.list == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(h.list)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Holds) UnmarshalJSON(data []byte) error {
	var list []contract.Hold
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*h = Holds{}
	for _, hold := range list {
		h.Place(hold)
	}
	return nil
}
