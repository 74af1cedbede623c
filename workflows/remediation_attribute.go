package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// attribution is the search for what turned a gate red, while it goes on. It is
// carried, and every answer of a trial is remembered by its tree: interrupted
// anywhere it goes on where it was.
type attribution struct {
	Gate   contract.GateEnd `json:"gate"`
	Search *run.Search      `json:"search,omitempty"` // nil: the suspects are still to be listed
	Trials int              `json:"trials,omitempty"`
}

// attribute takes the next step of the search: the suspects, a trial, or what the answer asks for.
func (r *remediation) attribute(ctx workflow.Context) {
	if r.held() {
		r.standStill(ctx)
		return
	}
	r.setStatus(contract.RunGating)
	a := r.gates.Search
	if a.Search == nil {
		r.listSuspects(ctx, a)
		return
	}
	switch trial, found := a.Search.Next(); {
	case trial != nil:
		r.runTrial(ctx, a, *trial)
	case found.Verdict == run.Unattributable:
		r.conclude(ctx, *found, contract.RevertEnd{Refused: found.Reason})
	default:
		r.revert(ctx, *found)
	}
}

// listSuspects reads, page by page, what landed since the last green gate.
func (r *remediation) listSuspects(ctx workflow.Context, a *attribution) {
	var landed []run.Landed
	r.launch(ctx, true, func(ctx workflow.Context) error {
		in := contract.SuspectsInput{Run: r.in.Run, Config: r.opened.Config, Green: r.gates.State.LastGreen, Truth: a.Gate.Commit}
		for {
			var page contract.SuspectsResult
			actx := withRepositoryOptions(ctx, "list what landed since the last green gate")
			if err := workflow.ExecuteActivity(actx, gateRunner.Suspects, in).Get(ctx, &page); err != nil {
				return err
			}
			for _, s := range page.Commits {
				landed = append(landed, run.Landed{Node: s.Node, Commit: s.Commit})
			}
			if in.Offset = page.Next; page.Next == 0 {
				return nil
			}
		}
	}, func(ctx workflow.Context, err error) {
		if err != nil {
			r.gateFailed(ctx, "list what landed", err)
			return
		}
		run.Link(landed, func(node string) []string {
			unit, _ := r.front.Unit(node)
			return unit.DependsOn
		})
		a.Search = run.NewSearch(landed)
	})
}

// runTrial asks what the failing command says about some of the suspects.
func (r *remediation) runTrial(ctx workflow.Context, a *attribution, trial run.Trial) {
	var end contract.TrialEnd
	r.launch(ctx, true, func(ctx workflow.Context) error {
		in := contract.TrialInput{
			Run: r.in.Run, Config: r.opened.Config, Green: r.gates.State.LastGreen, Truth: a.Gate.Commit,
			Commits: trial.Commits, Prefix: trial.Prefix, Baseline: r.opened.Baseline, Base: r.base,
			Round: r.round, Number: a.Trials + 1,
		}
		if a.Gate.Result != nil {
			in.Gate = *a.Gate.Result
		}
		summary := fmt.Sprintf("trial %d of round %d: %d of %d commits", in.Number, in.Round, len(in.Commits), len(a.Search.Commits))
		actx := withGateOptions(ctx, r.opened.Policy.GateMinutes, summary)
		return workflow.ExecuteActivity(actx, gateRunner.RunTrial, in).Get(ctx, &end)
	}, func(ctx workflow.Context, err error) {
		switch {
		case err != nil && (r.stoppedByUs(err) || branchMoved(err)):
			r.gateFailed(ctx, "run a trial", err)
			return
		case err != nil: // a search that cannot go on must not end the run
			r.conclude(ctx, run.Attribution{Verdict: run.Unattributable, Runs: a.Search.Runs}, contract.RevertEnd{Refused: "a trial could not be run: " + oneLine(err.Error())})
			return
		case end.Cached:
			a.Search.Know(trial, run.TrialResult(end.Result))
		default:
			a.Search.Record(trial, run.TrialResult(end.Result))
		}
		a.Trials++
		r.event(ctx, "trial %d: %s with %d of %d commits", a.Trials, end.Result, len(trial.Commits), len(a.Search.Commits))
	})
}

// revert takes the culprit back. Nothing interrupts it: what the run believes and
// what is on the truth change together.
func (r *remediation) revert(ctx workflow.Context, found run.Attribution) {
	a := r.gates.Search
	var end contract.RevertEnd
	r.launch(ctx, false, func(ctx workflow.Context) error {
		in := contract.RevertInput{
			Run: r.in.Run, Config: r.opened.Config, Truth: a.Gate.Commit, Culprit: found.Culprit,
			Why: blame(found, a.Gate.Failing),
		}
		actx := withRepositoryOptions(ctx, "take back "+found.Culprit)
		return workflow.ExecuteActivity(actx, gateRunner.RevertCulprit, in).Get(ctx, &end)
	}, func(ctx workflow.Context, err error) {
		if err != nil {
			r.gateFailed(ctx, "take the culprit back", err)
			return
		}
		r.conclude(ctx, found, end)
	})
}

// blame says in one line what a search found.
func blame(found run.Attribution, command string) string {
	if found.Verdict == run.Interaction {
		return fmt.Sprintf("`%s` fails with %s and %s together", command, found.Partner, found.Culprit)
	}
	return fmt.Sprintf("`%s` fails with %s", command, found.Culprit)
}

// conclude ends the search: the culprit is opened again, or blocked when it was
// before, or everything is opened again where nobody can be blamed.
func (r *remediation) conclude(ctx workflow.Context, found run.Attribution, reverted contract.RevertEnd) {
	a := r.gates.Search
	step := r.gates.State.Attributed(found, reverted.Refused == "")
	told := contract.GateAttribution{
		Verdict: string(found.Verdict), Culprit: found.Culprit, Partner: found.Partner, Runs: found.Runs,
		Reverted: reverted.Nodes[:min(len(reverted.Nodes), 20)], Commit: reverted.Commit, Detail: reverted.Refused,
	}
	r.gates.Search = nil
	if reverted.Commit != "" {
		r.opened.Truth = reverted.Commit
	}
	switch step {
	case run.GateReopen, run.GateReject:
		told.Detail = r.takeBack(step, found, a.Gate, reverted.Nodes)
		r.stage = stageImplement
	default:
		if found.Culprit != "" { // the evidence names it, although reverting it is no way out
			told.Verdict, told.Detail = string(run.Unattributable), blame(found, a.Gate.Failing)+"; "+reverted.Refused
		}
		r.followRed(ctx, step)
	}
	r.gates.attributed(told)
	r.event(ctx, "%s: %s", told.Verdict, told.Detail)
	r.dirty = true
}

// takeBack opens the culprit again, or blocks it, and opens again whoever's work went with it.
func (r *remediation) takeBack(step run.GateStep, found run.Attribution, gate contract.GateEnd, gone []string) string {
	why := blame(found, gate.Failing)
	detail := why + "; it is opened again"
	if step == run.GateReject {
		detail = why + ", for the second time; it is blocked"
		r.front.Reject(found.Culprit, why+", for the second time")
	}
	if step == run.GateReopen {
		r.front.Reopen(found.Culprit, why, true, found.ForPrompt(gate.Failing, gate.Tail))
	}
	for _, node := range gone { // those that share its paths, which no plan edge opened
		if node != found.Culprit && r.front.Over(node) {
			r.front.Reopen(node, fmt.Sprintf("was taken back with %s", found.Culprit), false, "")
		}
	}
	if found.Textual {
		detail += "; it does not merge without the others"
	}
	return detail
}
