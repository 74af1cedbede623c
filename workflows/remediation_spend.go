package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// orderBudget sets the run's caps; what waits for them is tried again.
func (r *remediation) orderBudget(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	limit := r.ownCaps()
	if order.Tokens != nil {
		limit.Tokens = max(*order.Tokens, 0)
	}
	if order.USDMicros != nil {
		limit.USDMicros = max(*order.USDMicros, 0)
	}
	if order.Tokens == nil && order.USDMicros == nil {
		return r.answer("nothing changed: the order names neither tokens nor usd_micros")
	}
	return r.answer(r.setBudget(ctx, limit)...)
}

// setBudget sets the caps and tells what follows. Before the run is open its
// plan would set them again.
func (r *remediation) setBudget(ctx workflow.Context, limit plan.Budget) []string {
	if r.front == nil {
		return []string{"nothing changed: the run has not opened its plan yet"}
	}
	r.setOwnCaps(ctx, limit)
	done := "the budget is " + budgetText(limit) + " now"
	r.event(ctx, "%s", done)
	return append([]string{done}, r.spendAgain(ctx)...)
}

// spendAgain gives drives what is left now and re-arms what waited for it.
func (r *remediation) spendAgain(ctx workflow.Context) []string {
	r.dirty = true
	for _, d := range r.drives {
		if r.budget.Cap == (plan.Budget{}) && d.Lease != nil { // the cap is gone: the drive's goes too
			d.Lease = &contract.Lease{}
			r.order(ctx, d, contract.DriveOrder{Lease: d.Lease})
			continue
		}
		r.topUp(ctx, d)
	}
	if r.holds.Lift(run.LiftedByBudget) {
		r.lifted(ctx, contract.HoldBudget)
		return []string{"lifted the hold budget"}
	}
	if r.front != nil {
		r.front.Rearm(contract.StrandBudgetExhausted)
	}
	return nil
}

func budgetText(limit plan.Budget) string {
	var parts []string
	if limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", limit.Tokens))
	}
	if limit.USDMicros > 0 {
		parts = append(parts, plan.FormatUSD(limit.USDMicros)+" USD")
	}
	if len(parts) == 0 {
		return "without a cap"
	}
	return strings.Join(parts, " and ")
}

// orderReconcile replaces what was charged without knowing by what an operator found out.
func (r *remediation) orderReconcile(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	var used dispatch.Spend
	if order.Tokens != nil {
		used.Tokens = max(*order.Tokens, 0)
	}
	if order.USDMicros != nil {
		used.USDMicros = max(*order.USDMicros, 0)
	}
	reconciled := 0
	for _, u := range slices.Clone(r.budget.Uncertain) {
		if order.Attempt != "" && order.Attempt != attemptName(u.Attempt) {
			continue
		}
		r.budget.Reconcile(u.Attempt, used)
		used = dispatch.Spend{} // of several the sum was told
		r.usage.Uncertain -= u.Tokens
		reconciled++
	}
	if reconciled == 0 {
		return r.answer("nothing changed: no such attempt is uncertain")
	}
	if order.Tokens != nil { // nobody told which way they went
		r.usage.InputTokens += max(*order.Tokens, 0)
	}
	if order.USDMicros != nil {
		r.usage.USD += float64(max(*order.USDMicros, 0)) / 1e6 // shown only
	}
	done := fmt.Sprintf("reconciled %d attempts", reconciled)
	r.event(ctx, "%s", done)
	return r.answer(append([]string{done}, r.spendAgain(ctx)...)...)
}

// attemptName is how operators name an attempt: NODE/K.
func attemptName(workflowID string) string {
	parts := strings.Split(workflowID, "/")
	if len(parts) < 2 {
		return workflowID
	}
	return parts[len(parts)-2] + "/" + strings.TrimPrefix(parts[len(parts)-1], "a")
}

// shownUncertain bounds the uncertain attempts in a status.
const shownUncertain = 50

// budgetView shows the budget; nil until the run is open.
func (r *remediation) budgetView() *contract.BudgetView {
	if r.front == nil {
		return nil
	}
	amount := func(s dispatch.Spend) contract.Amount { return contract.Amount(s) }
	reserved, uncertain := r.budget.Reserved(), r.budget.Unsure()
	v := &contract.BudgetView{
		Cap:     contract.Amount(r.budget.Cap),
		Settled: amount(r.budget.Settled), Reserved: amount(reserved), Uncertain: amount(uncertain),
	}
	for i, u := range r.budget.Uncertain {
		if i == shownUncertain {
			v.More = len(r.budget.Uncertain) - i
			break
		}
		v.Attempts = append(v.Attempts, contract.UncertainAttempt{Attempt: attemptName(u.Attempt), Amount: amount(u.Spend)})
	}
	return v
}
