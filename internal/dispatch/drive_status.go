package dispatch

import (
	"time"

	"mendflow/internal/contract"
)

// Status answers the status query of the drive.
func (d *Drive) Status() contract.LevelStatus {
	s := contract.LevelStatus{Drive: d.in.Drive, Depth: d.in.Depth, Sealed: d.sealed}
	for _, n := range d.queue {
		if n.run == nil {
			s.Waiting = append(s.Waiting, n.Node)
			continue
		}
		s.Running = append(s.Running, contract.RunningNode{
			Node: n.Node, Attempt: n.run.attempt, Pool: n.run.pool.def.ID, StartedAt: n.run.at,
		})
	}
	for _, p := range d.pools {
		s.Pools = append(s.Pools, d.poolState(p))
	}
	return s
}

// poolState is a pool as it is told.
func (d *Drive) poolState(p *drivePool) contract.PoolState {
	phase, until, reason := d.phase(p)
	s := contract.PoolState{
		ID: p.def.ID, Account: p.def.Account, Model: p.def.Model, State: string(phase), Reason: reason,
		Running: p.running, Max: p.slots(), Used: p.used,
	}
	if phase == PhasePaused || phase == PhaseAway {
		s.Until = &until
	}
	if p.demoted && s.Reason == "" {
		s.Reason = "declared free, but charged: used last"
	}
	return s
}

// Explain says for every pool why the node does not run there; ok is false
// when the drive has no such node.
func (d *Drive) Explain(node string, now time.Time) (reasons []contract.PoolReason, ok bool) {
	n := d.node(node)
	if n == nil {
		return nil, false
	}
	if n.run != nil {
		reasons = append(reasons, contract.PoolReason{Pool: n.run.pool.def.ID, Reason: "runs there"})
	}
	s := newSelection(n.view(), d.views(), d.spill(), now)
	chosen := ""
	switch best := s.best(); {
	case n.run != nil:
		chosen = n.run.pool.def.ID
	case best != nil && !s.waitsAt(best):
		chosen = best.ID
		reasons = append(reasons, contract.PoolReason{Pool: chosen, Reason: d.comingReason(n, d.pool(chosen), now)})
	}
	return append(reasons, s.passed(chosen)...), true
}

// comingReason says what a node waits for whose pool has a free slot.
func (d *Drive) comingReason(n *driveNode, p *drivePool, now time.Time) string {
	switch {
	case n.notBefore.After(now):
		return "backs off until " + n.notBefore.UTC().Format(time.RFC3339)
	case d.closing():
		return "nothing starts any more in this drive"
	case !d.lease.covers(d.committed(n).plus(d.allowance(n, p))):
		return "could run there, but the attempt does not fit into the budget"
	}
	return "is next there"
}

func equalInstants(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
