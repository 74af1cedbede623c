package workflows

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/run"
)

// orderPools changes the composition while the run goes on: drives take it over
// at once, and everything that waits for a pool is tried again.
func (r *remediation) orderPools(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	if err := dispatch.CheckComposition(order.Pools); err != nil {
		r.friction.Add(contract.Friction{
			Type: contract.FrictionBadMessage, Discriminator: contract.CommandPools, Severity: "warning", Note: oneLine(err.Error()),
		})
		return r.answer("nothing changed: " + oneLine(err.Error()))
	}
	redefined := dispatch.Redefined(r.pools.pools, order.Pools)
	r.in.Pools, r.in.Recomposed = order.Pools, true
	r.pools = r.pools.recomposed(order.Pools, redefined)
	for _, d := range r.drives {
		r.order(ctx, d, contract.DriveOrder{Pools: order.Pools})
	}
	done := fmt.Sprintf("the run uses %d pools now", len(order.Pools))
	r.event(ctx, "%s", done)
	r.dirty = true
	if r.front == nil {
		return r.answer(done)
	}
	for _, node := range r.front.Disown(redefined) {
		r.friction.Add(contract.Friction{
			Type: contract.FrictionCompositionChanged, Discriminator: node, Severity: "info",
			Note: "the definition of the pool that kept its tree changed: node " + node + " starts fresh",
		})
	}
	r.served(ctx, "what waits for a host is tried on the new pools")
	if r.holds.Lift(run.LiftedByPools) {
		r.lifted(ctx, contract.HoldQuota)
		return r.answer(done, "lifted the hold quota")
	}
	r.front.Rearm(waitsForPools...)
	return r.answer(done)
}

// waitsForPools are the causes that a change of what pools can do re-arms.
var waitsForPools = []contract.StrandCause{contract.StrandQuotaPaused, contract.StrandNoCapablePool, contract.StrandEmptyPool}

// takePoolState follows a broker's word that something was lifted before its
// time: what waits for a pool is tried again.
func (r *remediation) takePoolState(ctx workflow.Context, payload *commonpb.Payload) {
	grants, err := decode[contract.Grants](payload)
	if err != nil {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalPoolState, "error", err)
		return
	}
	r.pools.reopened(grants.Account, grants.States)
	r.event(ctx, "account %s is tried again", grants.Account)
	r.dirty = true
	if r.holds.Lift(run.LiftedByPools) {
		r.lifted(ctx, contract.HoldQuota)
		return
	}
	if r.front != nil {
		r.reopened.awaited = true
		r.front.Rearm(contract.StrandQuotaPaused, contract.StrandEmptyPool)
	}
}

// late tells a node that waits for a pool since before a broker's word of its
// reopening, which overtook the drive's: a drive asks the broker as soon as a
// wait is ended early, and may do so before the broker has heard of that.
type late struct {
	awaited bool // an account was reopened, and nothing was tried since
	came    bool // a node waits all the same, without having been tried
}

// changeReopened: from then on such a node is tried once more instead of waiting
// for a reset that was called off.
const changeReopened = "try-what-waited-for-the-reopened"

func (l *late) strand(s contract.Stranding) {
	switch {
	case len(s.Attempts) > 0:
		l.awaited = false
	case s.Cause == contract.StrandQuotaPaused:
		l.came = l.awaited
	}
}

// tryReopened re-arms what waits although the account was reopened: once for each such word.
func (r *remediation) tryReopened(ctx workflow.Context) {
	if !r.reopened.came {
		return
	}
	r.reopened = late{}
	if workflow.GetVersion(ctx, changeReopened, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		r.front.Rearm(contract.StrandQuotaPaused)
	}
}

// probe asks the brokers to try what they have paused, with one attempt each:
// without it an early end of the wait would only be refused again.
func (r *remediation) probe(ctx workflow.Context, order contract.Operator) {
	for _, account := range r.pools.accounts() {
		r.probing++
		workflow.Go(ctx, func(ctx workflow.Context) {
			ask := contract.Operator{By: order.By, Reason: order.Reason, Now: true}
			err := workflow.SignalExternalWorkflow(ctx, contract.BrokerID(account), "", contract.CommandReopen, ask).Get(ctx, nil)
			if err != nil {
				workflow.GetLogger(ctx).Warn("probe account", "account", account, "error", err)
			}
			r.probing--
			r.dirty = true
		})
	}
}
