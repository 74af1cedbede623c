package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// register makes every handler known before the first blocking call.
func (r *remediation) register(ctx workflow.Context) error {
	r.inbox.on(ctx, contract.SignalReport, func(p *commonpb.Payload) { r.takeReport(ctx, p) })
	r.inbox.on(ctx, contract.SignalPoolState, func(p *commonpb.Payload) { r.takePoolState(ctx, p) })
	r.admitted(ctx)
	for _, command := range []struct {
		name string
		obey command
	}{
		{contract.CommandPause, r.orderPause},
		{contract.CommandResume, r.orderResume},
		{contract.CommandCancel, r.orderCancel},
		{contract.CommandPools, r.orderPools},
		{contract.CommandBudget, r.orderBudget},
		{contract.CommandReconcile, r.orderReconcile},
		{contract.CommandGateRetry, r.orderGateRetry},
		{contract.CommandRecover, r.orderRecover},
		{contract.CommandTriage, r.orderTriage},
		{contract.CommandAnswer, r.orderAnswer},
		{contract.CommandNodeClaim, r.orderClaim},
		{contract.CommandNodeAccept, r.orderAccept},
		{contract.CommandNodeRelease, r.orderRelease},
		{contract.CommandQuiesce, r.orderQuiesce},
	} {
		refuse := func(order contract.Operator) error { return r.refuse(command.name, order) }
		obey := once(&r.requests, command.name, command.obey)
		take := func(order contract.Operator) {
			if err := refuse(order); err != nil {
				workflow.GetLogger(ctx).Warn("ignore message", "signal", command.name, "error", err)
				if r.takesOrders() { // whoever sent it hears nothing otherwise
					r.badMessage(command.name, oneLine(err.Error()))
				}
				return
			}
			if _, err := obey(ctx, order); err != nil {
				r.badMessage(command.name, oneLine(err.Error()))
			}
		}
		r.commands[command.name] = take
		r.inbox.onOrder(ctx, command.name, func(p *commonpb.Payload) {
			order, ok := decodeOperator(p)
			if !ok {
				r.badMessage(command.name, fmt.Sprintf("a %s signal could not be read: send no payload, a JSON string or a JSON object", command.name))
				return
			}
			take(order)
		})
		err := workflow.SetUpdateHandlerWithOptions(ctx, command.name,
			func(ctx workflow.Context, order contract.Operator) (contract.OperatorAnswer, error) {
				// Right after continue-as-new the state may still be on its way.
				if err := workflow.Await(ctx, func() bool { return r.restored }); err != nil {
					return contract.OperatorAnswer{}, err
				}
				if err := refuse(order); err != nil {
					return contract.OperatorAnswer{}, err
				}
				answer, err := obey(ctx, order)
				r.dirty = true
				return answer, err
			},
			workflow.UpdateHandlerOptions{Validator: func(order contract.Operator) error {
				if _, _, err := r.requests.Recall(order.RequestID, asked(command.name, order)); err != nil {
					return reused(err)
				}
				return refuse(order)
			}})
		if err != nil {
			return fmt.Errorf("register %s: %w", command.name, err)
		}
	}
	if err := registerRetry(ctx, &r.inbox, r.orderPublishRetry); err != nil {
		return err
	}
	return r.registerQueries(ctx)
}

func (r *remediation) registerQueries(ctx workflow.Context) error {
	handlers := []struct {
		name   string
		answer any
	}{
		{contract.QueryStatus, func() (contract.RunView, error) { return r.view(), nil }},
		{contract.QueryNodes, func(q contract.NodesQuery) ([]contract.NodeRow, error) {
			if r.front == nil {
				return []contract.NodeRow{}, nil
			}
			return r.front.Nodes(q.Offset, q.Limit), nil
		}},
		{contract.QueryClaims, func() ([]contract.ClaimRow, error) { return r.claims.rows(), nil }},
		{contract.QueryItems, func(q contract.ItemsQuery) ([]contract.ItemRow, error) {
			if r.front == nil {
				return []contract.ItemRow{}, nil
			}
			return r.front.ItemPage(q.Offset, q.Limit, q.Asked), nil
		}},
		{contract.QueryExplain, func(node string) (contract.NodeView, error) {
			if r.front != nil {
				if v, ok := r.front.Explain(node, workflow.Now(ctx)); ok {
					return v, nil
				}
			}
			return contract.NodeView{}, fmt.Errorf("explain %s: the run has no such node", node)
		}},
	}
	for _, h := range handlers {
		if err := workflow.SetQueryHandler(ctx, h.name, h.answer); err != nil {
			return fmt.Errorf("register query %s: %w", h.name, err)
		}
	}
	return nil
}

// refuse rejects orders that come too late. A repetition of what was carried out
// is answered at any time.
func (r *remediation) refuse(name string, order contract.Operator) error {
	_, known, err := r.requests.Recall(order.RequestID, asked(name, order))
	switch {
	case !known && r.takesOrders() && (name == contract.CommandTriage || name == contract.CommandAnswer):
		return r.refuseAnswer(name, order)
	case r.takesOrders(), known && err == nil:
		return nil // obey answers a request that is known, or refuses it
	case known:
		return reused(err)
	}
	return temporal.NewNonRetryableApplicationError(
		fmt.Sprintf("the run is closing as %s: nothing can be changed any more", r.verdict), contract.ErrorRunClosing, nil)
}

// takesOrders reports whether an order still finds something to change.
func (r *remediation) takesOrders() bool { return r.stage != stageClose && r.stage != stageDone }

// badMessage records a signal that could not be obeyed, since nobody is there to be answered.
func (r *remediation) badMessage(name, note string) {
	r.friction.Add(contract.Friction{Type: contract.FrictionBadMessage, Discriminator: name, Severity: "warning", Note: note})
}

func (r *remediation) held() bool { return !r.holds.Empty() }

// hold places a hold and tells it.
func (r *remediation) hold(ctx workflow.Context, kind contract.HoldKind, reason, by string, until *time.Time) {
	r.holds.Place(contract.Hold{Kind: kind, Reason: reason, By: cmp.Or(by, "the run"), Since: workflow.Now(ctx), Until: until})
	r.event(ctx, "held (%s): %s", kind, reason)
	r.dirty = true
}

// orderPause places the operator's hold; a second pause may turn finish into interrupt.
func (r *remediation) orderPause(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	mode := contract.StopInterrupt
	if order.Finish {
		mode = contract.StopFinish
	}
	done := "paused by an operator; running attempts are stopped and their work is kept"
	if order.Finish {
		done = "paused by an operator; running attempts go to their end, nothing starts"
	}
	if r.pause == nil || *r.pause != contract.StopInterrupt {
		r.pause = &mode
	}
	reason := order.Reason
	if reason == "" {
		reason = "paused by an operator"
	}
	r.hold(ctx, contract.HoldOperator, reason, cmp.Or(order.By, "somebody without a name"), nil)
	r.obeyHolds(ctx)
	return r.answer(done)
}

// orderResume lifts what an operator may lift.
func (r *remediation) orderResume(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	var done []string
	if order.Budget > 0 {
		limit := r.ownCaps()
		limit.Tokens = order.Budget
		done = r.setBudget(ctx, limit)
	}
	lifted, _ := r.holds.Resume(order.Now, order.Budget > 0)
	if order.Now || slices.Contains(lifted, contract.HoldQuota) {
		r.probe(ctx, order)
	}
	for _, kind := range lifted {
		done = append(done, fmt.Sprintf("lifted the hold %s", kind))
		r.lifted(ctx, kind)
	}
	if len(done) == 0 {
		done = append(done, "nothing to lift")
	}
	return r.answer(done...)
}

// lifted follows the end of a hold.
func (r *remediation) lifted(ctx workflow.Context, kind contract.HoldKind) {
	r.event(ctx, "the hold %s is lifted", kind)
	r.dirty = true
	switch kind {
	case contract.HoldOperator:
		r.pause = nil
	case contract.HoldQuota:
		if r.front != nil {
			r.front.Rearm(waitsForPools...)
		}
	case contract.HoldBudget:
		if r.front != nil {
			r.front.Rearm(contract.StrandBudgetExhausted)
		}
	case contract.HoldGate:
		if r.stage == stageBaseline {
			r.base = nil // measured again
		}
	default:
	}
}

// orderGateRetry runs a gate again that holds the run.
func (r *remediation) orderGateRetry(ctx workflow.Context, _ contract.Operator) contract.OperatorAnswer {
	if !r.holds.Lift(run.LiftedByGateRetry) {
		return r.answer("no gate holds the run")
	}
	r.lifted(ctx, contract.HoldGate)
	return r.answer("the gate runs again")
}

// orderCancel ends the run; giving the order twice changes nothing.
func (r *remediation) orderCancel(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	if r.cancel {
		return r.answer("the run is being cancelled already")
	}
	r.cancel = true
	if r.verdict != "" { // a cancel of the workflow itself while it closes: the verdict stands
		return r.answer("the run is closing already")
	}
	r.reason = order.Reason
	if r.reason == "" {
		r.reason = "cancelled by an operator"
	}
	r.event(ctx, "cancel: %s", r.reason)
	r.obeyHolds(ctx)
	r.dirty = true
	return r.answer("cancelled; running attempts are stopped, branch, salvage and report stay")
}

func (r *remediation) answer(done ...string) contract.OperatorAnswer {
	return contract.OperatorAnswer{Status: r.status, Done: done, Holds: r.holdRows()}
}

// obeyHolds stops what must not go on: drives and the interruptible job.
func (r *remediation) obeyHolds(ctx workflow.Context) {
	if r.holds.Due(workflow.Now(ctx)) {
		r.lifted(ctx, contract.HoldQuota)
	}
	mode := r.stopMode()
	switch {
	case r.ending():
		r.stopDrives(ctx, contract.StopCancel)
	case mode != nil:
		r.stopDrives(ctx, *mode)
		if !r.quiet() {
			r.setStatus(contract.RunPausing)
		}
	default:
		return
	}
	if r.ending() || *mode == contract.StopInterrupt {
		r.stopJob(r.work)
		r.stopJob(r.baseline)
	}
}

// stopJob interrupts a job that may be: it is started again when the run goes on.
func (r *remediation) stopJob(j *job) {
	if j != nil && !j.done && j.interruptible {
		j.stopped = true
		j.cancel()
	}
}

// stopDrives tells every drive to end, once per mode.
func (r *remediation) stopDrives(ctx workflow.Context, mode contract.StopMode) {
	for _, d := range r.drives {
		if d.Stop == mode || d.Stop == contract.StopCancel {
			continue
		}
		d.Stop = mode
		r.order(ctx, d, contract.DriveOrder{Stop: mode})
	}
}

// stoppedByUs reports whether a job ended because a hold or a cancel stopped it.
func (r *remediation) stoppedByUs(err error) bool {
	return temporal.IsCanceledError(err)
}
