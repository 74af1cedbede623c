package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// Changes of what a run does about its gates and its findings. Earlier executions
// closed as blocked at the first red gate, and with the first blocked finding.
const (
	changeAttribution = "attribute-red-gate"
	changeTriage      = "triage-before-close"
	changeRecord      = "report-every-gate"
)

// gateBook is where a run stands with its gates, and what an operator's halt
// says. It is carried as it is; the zero value is a run that was not gated.
type gateBook struct {
	State    run.Gate             `json:"state,omitzero"`
	Rounds   []contract.GateRound `json:"rounds,omitempty"`
	Search   *attribution         `json:"search,omitempty"` // of the red gate that is being attributed
	Measured int                  `json:"measured,omitempty"`
	Halted   string               `json:"halted,omitempty"`   // why an operator ended the run at once
	Answered bool                 `json:"answered,omitempty"` // an answer may have opened something again while gates run
}

// note keeps a gate for the report, without what its stored result has as well.
func (g *gateBook) note(purpose string, round int, end contract.GateEnd) {
	end.Tail, end.Friction = "", nil
	g.Rounds = append(g.Rounds, contract.GateRound{Purpose: purpose, Round: round, End: end})
}

// attributed keeps what the last gate was attributed to.
func (g *gateBook) attributed(a contract.GateAttribution) {
	a.Detail = clip(a.Detail, 500)
	g.Rounds[len(g.Rounds)-1].Attribution = &a
}

// attributions are those of the run so far.
func (g *gateBook) attributions() []contract.GateAttribution {
	var all []contract.GateAttribution
	for _, r := range g.Rounds {
		if r.Attribution != nil {
			all = append(all, *r.Attribution)
		}
	}
	return all
}

// gateThen runs the gate on the truth; green carries on after one that is not red.
func (r *remediation) gateThen(ctx workflow.Context, purpose string, green func(workflow.Context)) {
	r.setStatus(contract.RunGating)
	var end contract.GateEnd
	r.launch(ctx, true, func(ctx workflow.Context) error {
		in := contract.GateInput{
			Run: r.in.Run, Config: r.opened.Config, Purpose: purpose, Round: r.round + 1,
			Baseline: r.opened.Baseline, Base: r.base,
		}
		actx := withGateOptions(ctx, r.opened.Policy.GateMinutes, fmt.Sprintf("%s gate, round %d", purpose, r.round+1))
		return workflow.ExecuteActivity(actx, gateRunner.RunGate, in).Get(ctx, &end)
	}, func(ctx workflow.Context, err error) {
		if err != nil {
			r.gateFailed(ctx, "run the gate", err)
			return
		}
		r.round++
		r.gate = &end
		r.gates.note(purpose, r.round, end)
		r.event(ctx, "%s gate %s in %ds: %s", purpose, end.Verdict, end.Seconds, end.Detail)
		for _, f := range end.Friction {
			r.friction.Add(f)
		}
		r.dirty = true
		if end.Verdict == gateRed && workflow.GetVersion(ctx, changeAttribution, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			r.closeRed(ctx)
			return
		}
		onRed := cmp.Or(plan.OnRed(r.opened.GateOnRed), plan.OnRedAttribute)
		step := r.gates.State.Record(run.GateKind(end.Kind), run.GateVerdict(end.Verdict), end.Commit, onRed)
		if step == run.GateProceed {
			green(ctx)
			return
		}
		r.followRed(ctx, step)
	})
}

// gateFailed ends a job of the gate that gave no answer.
func (r *remediation) gateFailed(ctx workflow.Context, what string, err error) {
	switch {
	case r.stoppedByUs(err):
	case branchMoved(err):
		r.recovery(ctx, contract.RecoveryBranchMoved, oneLine(err.Error()))
	default:
		r.fail(fmt.Errorf("%s: %w", what, err))
	}
}

// branchMoved reports whether an activity found the truth written to by somebody else.
func branchMoved(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == contract.ErrorBranchMoved
}

// closeRed is what executions before changeAttribution did about a red gate.
func (r *remediation) closeRed(ctx workflow.Context) {
	if r.opened.GateOnRed == string(plan.OnRedPause) {
		r.holdRed(ctx)
		return
	}
	r.close(contract.RunBlocked, fmt.Sprintf("the gate is red: `%s` fails on %s", r.gate.Failing, shortCommit(r.gate.Commit)))
}

func (r *remediation) holdRed(ctx workflow.Context) {
	r.hold(ctx, contract.HoldGate, fmt.Sprintf("the gate is red: `%s` fails", r.gate.Failing), "", nil)
}

// followRed does what a red gate asks for, before or after it was attributed.
func (r *remediation) followRed(ctx workflow.Context, step run.GateStep) {
	failing := fmt.Sprintf("`%s` fails on %s", r.gate.Failing, shortCommit(r.gate.Commit))
	switch step {
	case run.GateHold:
		r.holdRed(ctx)
	case run.GateAttribute:
		r.gates.Search = &attribution{Gate: *r.gate}
		r.stage = stageAttribute
		r.event(ctx, "looking for what made %s", failing)
	case run.GateReblock:
		changes := r.front.Reblock("the gate is red: "+failing, run.RedForPrompt(r.gate.Failing, r.gate.Tail))
		r.stage = stageImplement
		r.event(ctx, "the gate is red: %d nodes are opened again (%d of %d times)", len(changes.Opened), r.gates.State.Reblocks, run.MaxReblocks)
	case run.GateEnd:
		reason := fmt.Sprintf("%s: %s", r.gates.State.Ended, failing)
		r.front.RejectAll(reason)
		r.close(contract.RunBlocked, reason)
	default: // proceed and the outcomes of a search are carried out where they arise
	}
	r.dirty = true
}

// judged closes the run after a gate that is not red.
func (r *remediation) judged(workflow.Context) {
	if r.openedAgain() {
		return
	}
	r.front.Abandon("the run ended before it was repaired")
	left := 0
	for _, item := range r.front.Items() {
		if !item.Status.VerifiedComplete() && !item.Status.Skip() {
			left++
		}
	}
	switch {
	case left > 0:
		r.close(contract.RunBlocked, fmt.Sprintf("%d findings are left", left))
	case r.opened.Gate == 0:
		r.close(contract.RunCompleted, "completed, ungated")
	default:
		r.close(contract.RunCompleted, "")
	}
}

// openedAgain goes back to the levels when an operator's answer opened a node
// while the gate was about to run or ran.
func (r *remediation) openedAgain() bool {
	if !r.gates.Answered || !r.front.Ready() {
		return false
	}
	r.gates.Answered = false
	r.stage, r.dirty = stageImplement, true
	return true
}

// settleRecord makes every item terminal before the report is written, and says
// whether the report tells about every gate.
func (r *remediation) settleRecord(ctx workflow.Context) {
	if r.front == nil {
		return
	}
	open := slices.ContainsFunc(r.front.Items(), func(i contract.ItemRow) bool { return !i.Status.Terminal() })
	if !open && len(r.gates.Rounds) < 2 && len(r.gates.attributions()) == 0 {
		return // the record is as it always was
	}
	if workflow.GetVersion(ctx, changeRecord, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		r.gates.Rounds = nil
		return
	}
	r.front.Abandon(cmp.Or(r.reason, "the run ended before it was repaired"))
}
