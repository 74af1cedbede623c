package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// hosts is the wait for a host, while nodes are stranded because none takes them.
type hosts struct {
	wanted bool // something waits for one
	cancel workflow.CancelFunc
}

// wantHosts begins to wait for a host that serves one of the run's pools.
func (r *remediation) wantHosts(ctx workflow.Context) {
	if !r.hosts.wanted || r.hosts.cancel != nil || r.cancel || r.verdict != "" {
		return
	}
	waitCtx, cancel := workflow.WithCancel(withHostsOptions(ctx))
	r.hosts.cancel = cancel
	workflow.Go(ctx, func(ctx workflow.Context) {
		var pool string
		err := workflow.ExecuteActivity(waitCtx, service.AwaitHosts, r.pools.ids()).Get(ctx, &pool)
		r.hosts.cancel = nil
		r.dirty = true
		switch {
		case err == nil:
			r.served(ctx, "a host serves the pool "+pool)
		case !temporal.IsCanceledError(err):
			workflow.GetLogger(ctx).Warn("wait for a host", "error", err)
		}
	})
}

// served lets go on what waited for a host.
func (r *remediation) served(ctx workflow.Context, why string) {
	if !r.hosts.wanted {
		return
	}
	r.hosts.wanted = false
	if r.hosts.cancel != nil {
		r.hosts.cancel()
	}
	r.event(ctx, "%s", why)
	r.front.Rearm(contract.StrandUnserved)
	for _, hold := range []struct {
		by   run.Lifter
		kind contract.HoldKind
	}{{run.LiftedByHosts, contract.HoldService}, {run.LiftedByPools, contract.HoldQuota}} {
		// A pool that serves again can also take what waits for others.
		if r.holds.Lift(hold.by) {
			r.lifted(ctx, hold.kind)
		}
	}
}

// unserved notes that a node waits for a host.
func (r *remediation) unserved(s contract.Stranding) {
	r.hosts.wanted = r.hosts.wanted || s.Cause == contract.StrandUnserved
}
