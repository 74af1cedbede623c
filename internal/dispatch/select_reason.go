package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// passed says for every pool but the chosen one why the node does not go there.
func (s *selection) passed(chosen string) []contract.PoolReason {
	var reasons []contract.PoolReason
	for i := range s.pools {
		if p := &s.pools[i]; p.ID != chosen {
			reasons = append(reasons, contract.PoolReason{Pool: p.ID, Reason: s.reason(p, chosen)})
		}
	}
	return reasons
}

// reason says why the node does not go to this pool, in the order in which selection drops pools.
func (s *selection) reason(p *PoolView, chosen string) string {
	if text := s.closed(p); text != "" {
		return text
	}
	if p.Attended {
		return "attended: a node goes there when somebody claims it (`starter node claim`)"
	}
	if text := s.misfit(p); text != "" {
		return text
	}
	if s.elsewhere(p) {
		return "spill is never: only " + s.node.FirstPool + " may take it"
	}
	if !slices.Contains(s.order, p) {
		return s.notOffered(p)
	}
	switch {
	case p.Free <= 0 && !s.waitsAt(p) && p.Phase == PhaseRamping:
		return "busy: not more at once until it has proven itself"
	case p.Free <= 0 && !s.waitsAt(p):
		return fmt.Sprintf("busy: all %d slots are taken or asked for", p.MaxConcurrent)
	case s.waitsAt(p):
		return "waits there for a slot"
	}
	return "comes after " + chosen + " in order"
}

// closed says why the pool takes nothing now; empty when it is open.
func (s *selection) closed(p *PoolView) string {
	if p.open(s.now) {
		return ""
	}
	text := string(p.Phase)
	if p.Phase == PhasePaused || p.Phase == PhaseAway {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// misfit says why the node is too large for the pool; empty when it is not.
func (s *selection) misfit(p *PoolView) string {
	switch {
	case s.fits(p):
		return ""
	case slices.Contains(s.node.Refused, p.ID):
		return "refused this node for its size"
	case p.ContextTokens > 0:
		return fmt.Sprintf("too small: the node needs about %d tokens and %d for the agent, the pool has %d",
			s.node.Tokens, overheadTokens, p.ContextTokens)
	}
	return fmt.Sprintf("too small: it refused a node of about %d tokens, this one has %d", p.TooLarge, s.node.Tokens)
}

// notOffered says why an open pool that fits is not among those that may take the node.
func (s *selection) notOffered(p *PoolView) string {
	first := s.order[0]
	switch {
	case first.ID == s.node.Kept:
		return "the node's tree is kept for " + first.ID
	case p.Tier.Rank() < s.floor.Rank():
		return fmt.Sprintf("tier %s is below %s", p.Tier, s.floor)
	case s.spill == plan.SpillNever:
		return "spill is never: " + first.ID + " is first in order"
	case p.Tier.Rank() > first.Tier.Rank():
		return fmt.Sprintf("spill is %s: tier %s is not needed while %s is live", s.spill, p.Tier, strings.Join(s.tierIDs(), ", "))
	}
	return "not offered"
}

func (s *selection) tierIDs() []string {
	ids := make([]string, len(s.order))
	for i, p := range s.order {
		ids[i] = p.ID
	}
	return ids
}
