package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// recovery holds the run because facts do not match what it left.
func (r *remediation) recovery(ctx workflow.Context, reason, text string) {
	if !r.holds.Has(contract.HoldRecovery) {
		r.hold(ctx, contract.HoldRecovery, reason+": "+text, "", nil)
		r.stopDrives(ctx, contract.StopFinish)
	}
}

// orderRecover goes on after the operator has put things right, lets the run put
// right what it can, or gives the run up.
func (r *remediation) orderRecover(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	if !r.holds.Has(contract.HoldRecovery) {
		return r.answer("nothing is to be recovered")
	}
	switch order.How {
	case contract.RecoverAbandon:
		if order.Reason == "" {
			order.Reason = "abandoned by an operator"
		}
		return r.orderCancel(ctx, order)
	case contract.RecoverClean:
		return r.recoverClean(ctx)
	case contract.RecoverContinue, "":
	default:
		r.badMessage(contract.CommandRecover, fmt.Sprintf("a run recovers by continue, clean or abandon, not %.40q", order.How))
		return r.answer(fmt.Sprintf("nothing was done: a run recovers by continue, clean or abandon, not %.40q", order.How))
	}
	r.holds.Lift(run.LiftedByRecover)
	r.lifted(ctx, contract.HoldRecovery)
	return r.answer("the run goes on; the truth is checked again before anything starts")
}

// recoverClean lets every node start clean and restores the truth; the hold is
// lifted when that is done.
func (r *remediation) recoverClean(ctx workflow.Context) contract.OperatorAnswer {
	if !r.quiet() {
		return r.answer("nothing was done: the run is still stopping, or being recovered")
	}
	done := []string{"the truth is put back to what the run landed, then the run goes on"}
	if r.front != nil {
		if nodes := r.front.DropKept(); len(nodes) > 0 {
			done = append(done, fmt.Sprintf("%d nodes start clean; what is in their trees is kept as salvage", len(nodes)))
		}
	}
	if r.opened.Config.URI == "" { // it was not opened yet: there is no truth
		r.holds.Lift(run.LiftedByRecover)
		r.lifted(ctx, contract.HoldRecovery)
		return r.answer(done...)
	}
	var end contract.RestoreEnd
	r.launch(ctx, false, func(ctx workflow.Context) error {
		in := contract.RestoreInput{Run: r.in.Run, Config: r.opened.Config, Known: []string{r.opened.Truth}}
		return workflow.ExecuteActivity(withRepositoryOptions(ctx, "restore the truth"), repository.RestoreTruth, in).Get(ctx, &end)
	}, func(ctx workflow.Context, err error) {
		if err != nil {
			r.holds.Place(contract.Hold{Kind: contract.HoldRecovery, Reason: "the truth could not be restored: " + oneLine(err.Error())})
			r.event(ctx, "the truth could not be restored: %s", oneLine(err.Error()))
			return
		}
		r.opened.Truth = end.Truth
		if end.Kept != "" {
			r.event(ctx, "the truth is at %s again; what was on it is kept as %s", shortCommit(end.Truth), end.Kept)
		}
		r.holds.Lift(run.LiftedByRecover)
		r.lifted(ctx, contract.HoldRecovery)
	})
	return r.answer(done...)
}
