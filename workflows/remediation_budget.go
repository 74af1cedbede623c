package workflows

import (
	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
)

// lease is what a drive may spend in all, topped up for the nodes that it has;
// nil when the run has no budget.
func (r *remediation) lease(d *drive) *contract.Lease {
	if r.budget.Cap == (plan.Budget{}) {
		return nil
	}
	var want dispatch.Spend
	for _, a := range d.Nodes {
		spend := r.reservation(a.Node, "")
		want.Tokens += spend.Tokens
		want.USDMicros += spend.USDMicros
	}
	lease := contract.Lease(r.budget.Lease(d.Number, want))
	return &lease
}

// reservation is what an attempt of the node on the pool sets aside; without a
// pool, the dearest that there is.
func (r *remediation) reservation(node, pool string) dispatch.Spend {
	tier := plan.TierStandard
	if unit, ok := r.front.Unit(node); ok {
		tier = unit.Tier
	}
	spend := dispatch.Spend{Tokens: dispatch.Allowance(r.opened.Policy.AttemptTokens, tier, nil)}
	for _, p := range r.pools.pools {
		if pool == "" || pool == p.ID {
			spend.USDMicros = max(spend.USDMicros, dispatch.Price(p.Cost, spend.Tokens))
		}
	}
	return spend
}

// charge counts what an attempt used: as told, or in full when nothing usable was told.
func (r *remediation) charge(d *drive, a contract.AttemptResult) {
	r.usage.InputTokens += a.Usage.InputTokens
	r.usage.OutputTokens += a.Usage.OutputTokens
	r.usage.USD += float64(a.Usage.USDMicros) / 1e6 // shown only; no decision reads it
	if a.StartedAt.IsZero() {
		return
	}
	reserved := r.reservation(a.Node, a.Pool)
	if _, uncertain := dispatch.Charge(reserved, a.Usage); uncertain {
		r.usage.Uncertain += reserved.Tokens
	}
	r.budget.Settle(d.Number, contract.NodeID(r.in.Run, d.Number, a.Node, a.Attempt), reserved, a.Usage)
}
