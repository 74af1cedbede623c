package dispatch

import (
	"cmp"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// overheadTokens is what an agent adds to a node's estimate: its own prompt,
// its tools and room to answer (dispatch.md, Selection).
const overheadTokens = 15_000

// Phase is what a pool can do now; the values are those of contract.PoolState.
type Phase string

// Phases. The zero value counts as live.
const (
	PhaseLive     Phase = "live"
	PhaseRamping  Phase = "ramping"  // live, and not yet trusted with all its slots
	PhasePaused   Phase = "paused"   // comes back by itself
	PhaseAway     Phase = "away"     // no host takes what is given to it; comes back by itself
	PhaseSettled  Phase = "settled"  // exhausted: not offered again in this run
	PhaseExcluded Phase = "excluded" // by the operator
)

// NodeView is a node as selection sees it.
type NodeView struct {
	Tier      plan.Tier
	Tokens    int      // estimate of prompt and files; 0: unknown, fits everywhere
	Refused   []string // pools that refused it for its size
	FirstPool string   // first in order at its first attempt; empty: not attempted yet
	Kept      string   // pool that keeps its tree; empty: none
	Tickets   []string // pools where it waits for a slot already: these count as free for it
}

// PoolView is a pool as selection sees it.
type PoolView struct {
	contract.Pool
	Phase    Phase
	Until    time.Time // of a pause or an absence
	Reason   string    // of a phase that is not live
	Attended bool      // takes nodes by claims only, never by selection
	Demoted  bool      // declared free, but charged
	Free     int       // slots that nobody was promised
	InFlight int64     // tokens of the attempts that it runs
	TooLarge int       // nodes estimated above it are too large; 0: not learned
}

// open reports whether the pool takes work at all now.
func (p *PoolView) open(now time.Time) bool {
	switch p.Phase {
	case PhasePaused, PhaseAway:
		return !p.Until.After(now)
	case PhaseSettled, PhaseExcluded:
		return false
	case PhaseLive, PhaseRamping:
	}
	return true
}

// Choice is what selection decided for a node.
type Choice struct {
	Pool    string    // reserve a slot here; empty: none is free
	Order   []string  // the pools that may take the node now, best first, busy or not; empty: none
	Relaxed plan.Tier // the tier used when no pool is live at the node's tier or above; else empty
	// Of a node that no pool may take now: why, and the earliest instant that helps.
	Cause     contract.StrandCause
	NotBefore *time.Time
	// Passed says for every pool but the chosen one why the node does not go there, in the order of the composition.
	Passed []contract.PoolReason
}

// Select decides which pool takes a node now (dispatch.md, Selection): pools
// that are closed, refused it or are too small drop out; the tier floor is
// relative to those that remain; then spill and order. It depends on nothing
// but its arguments, and ties end at the pool's id.
func Select(node NodeView, pools []PoolView, spill plan.Spill, now time.Time) Choice {
	s := newSelection(node, pools, spill, now)
	choice := Choice{Relaxed: s.relaxed}
	for _, p := range s.order {
		choice.Order = append(choice.Order, p.ID)
	}
	if best := s.best(); best != nil {
		choice.Pool = best.ID
	}
	if len(s.order) == 0 {
		choice.Cause, choice.NotBefore = s.cause()
	}
	choice.Passed = s.passed(choice.Pool)
	return choice
}

// selection is one decision under way.
type selection struct {
	node    *NodeView
	pools   []PoolView
	spill   plan.Spill
	now     time.Time
	floor   plan.Tier
	relaxed plan.Tier
	order   []*PoolView // that may take the node now, best first
	offered *PoolView   // an attended pool from which it may be claimed; nil: none
}

func newSelection(node NodeView, pools []PoolView, spill plan.Spill, now time.Time) *selection {
	s := &selection{node: &node, pools: pools, spill: spill, now: now, floor: node.Tier}
	left := make([]*PoolView, 0, len(pools))
	for i := range pools {
		switch p := &pools[i]; {
		case !p.open(now) || !s.capable(p):
		case p.Attended:
			s.offered = p
		default:
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		return s
	}
	if kept := slices.IndexFunc(left, func(p *PoolView) bool { return p.ID == node.Kept }); kept >= 0 {
		s.order = left[kept : kept+1]
		return s
	}
	s.setFloor(left)
	s.order = s.spilled(left)
	slices.SortFunc(s.order, s.compare)
	if spill == plan.SpillNever {
		first := s.first()
		s.order = s.order[first : first+1]
	}
	return s
}

// first is the only pool of a node that may not spill: the first in order, or
// one of equal worth where it waits already, since the load must not move it.
func (s *selection) first() int {
	return max(0, slices.IndexFunc(s.order, func(p *PoolView) bool { return s.waitsAt(p) && s.worth(p, s.order[0]) == 0 }))
}

// capable reports whether the pool could take the node if it were open. With
// spill never, only the node's first pool can.
func (s *selection) capable(p *PoolView) bool {
	return p.Phase != PhaseExcluded && (p.Attended || s.fits(p) && !s.elsewhere(p))
}

func (s *selection) fits(p *PoolView) bool {
	if slices.Contains(s.node.Refused, p.ID) {
		return false
	}
	if s.node.Tokens == 0 {
		return true
	}
	if p.ContextTokens > 0 {
		return s.node.Tokens+overheadTokens <= p.ContextTokens
	}
	return p.TooLarge == 0 || s.node.Tokens <= p.TooLarge
}

func (s *selection) elsewhere(p *PoolView) bool {
	return s.spill == plan.SpillNever && s.node.FirstPool != "" && s.node.FirstPool != p.ID
}

// setFloor takes the node's tier, or the highest tier below it when no pool is left at or above.
func (s *selection) setFloor(left []*PoolView) {
	top := slices.MaxFunc(left, func(a, b *PoolView) int { return cmp.Compare(a.Tier.Rank(), b.Tier.Rank()) })
	if top.Tier.Rank() < s.node.Tier.Rank() {
		s.floor, s.relaxed = top.Tier, top.Tier
	}
}

// spilled keeps the pools that the spill policy lets the node use.
func (s *selection) spilled(left []*PoolView) []*PoolView {
	left = slices.DeleteFunc(left, func(p *PoolView) bool { return p.Tier.Rank() < s.floor.Rank() })
	if s.spill == plan.SpillAllowPaid {
		return left
	}
	lowest := slices.MinFunc(left, func(a, b *PoolView) int { return cmp.Compare(a.Tier.Rank(), b.Tier.Rank()) })
	tier := lowest.Tier.Rank()
	return slices.DeleteFunc(left, func(p *PoolView) bool { return p.Tier.Rank() != tier })
}

// compare orders the pools that may take the node, best first.
func (s *selection) compare(a, b *PoolView) int {
	return cmp.Or(s.worth(a, b), cmp.Compare(a.InFlight, b.InFlight), cmp.Compare(a.ID, b.ID))
}

// worth is the part of the order that does not change with the load.
func (s *selection) worth(a, b *PoolView) int {
	price := compareCost(a.Cost, b.Cost)
	if s.node.Tier == plan.TierDeep {
		price = -price
	}
	return cmp.Or(compareBool(a.Demoted, b.Demoted), price, cmp.Compare(a.Rank, b.Rank))
}

// compareCost orders free, known ascending, unknown. A price is the sum of both directions.
func compareCost(a, b *contract.Cost) int {
	class := func(c *contract.Cost) (int, int64) {
		switch {
		case c == nil:
			return 2, 0
		case c.Free():
			return 0, 0
		}
		return 1, c.InputMicros + c.OutputMicros
	}
	classA, priceA := class(a)
	classB, priceB := class(b)
	return cmp.Or(cmp.Compare(classA, classB), cmp.Compare(priceA, priceB))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// best is the first pool in order with a free slot; nil when all are busy.
func (s *selection) best() *PoolView {
	for _, p := range s.order {
		if p.Free > 0 || s.waitsAt(p) {
			return p
		}
	}
	return nil
}

func (s *selection) waitsAt(p *PoolView) bool { return slices.Contains(s.node.Tickets, p.ID) }

// cause says why no pool takes the node, from the pools that could if they were
// open: a pause among them ends by itself, and so does the absence of hosts; an
// exhaustion does not, and without any of them waiting will not help. Tiers are relative and never a cause.
func (s *selection) cause() (contract.StrandCause, *time.Time) {
	cause, away := contract.StrandNoCapablePool, false
	var first time.Time
	for i := range s.pools {
		p := &s.pools[i]
		if !s.capable(p) {
			continue
		}
		switch p.Phase {
		case PhasePaused:
			first = earliest(first, p.Until)
		case PhaseAway:
			away = true
		default:
			cause = contract.StrandEmptyPool
		}
	}
	if away { // a host that comes back is noticed; a pause that ends first helps as well
		cause = contract.StrandUnserved
	}
	switch {
	case first.IsZero():
		return cause, nil
	case away:
		return cause, &first
	}
	return contract.StrandQuotaPaused, &first
}
