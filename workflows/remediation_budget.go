package workflows

import (
	"go.temporal.io/sdk/workflow"

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
		want.Tokens += leasedAttempts * spend.Tokens
		want.USDMicros += leasedAttempts * spend.USDMicros
	}
	lease := contract.Lease(r.budget.Lease(d.Number, want))
	return &lease
}

// leasedAttempts is how many attempts a lease covers for each node: the drive
// retries by itself, and tells the run only when it is through.
const leasedAttempts = 2

// leaseIfNew is the drive's lease when it differs from the last one told.
func (r *remediation) leaseIfNew(d *drive) *contract.Lease {
	lease := r.lease(d)
	if lease == nil || d.Lease != nil && equal(lease.Tokens, d.Lease.Tokens) && equal(lease.USDMicros, d.Lease.USDMicros) {
		return nil
	}
	d.Lease = lease
	return lease
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// topUp gives a drive more to spend after it told what it used.
func (r *remediation) topUp(ctx workflow.Context, d *drive) {
	if len(d.Nodes) == 0 || d.Stop != "" {
		return
	}
	if lease := r.leaseIfNew(d); lease != nil {
		r.order(ctx, d, contract.DriveOrder{Lease: lease})
	}
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
