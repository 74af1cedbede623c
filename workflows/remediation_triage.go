package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/run"
)

// ask goes through what is blocked when nothing else can run: first what may be
// repaired on the truth after all is verified again, then people are asked,
// unless the plan says that none are there. It reports whether the run waits for that.
func (r *remediation) ask(ctx workflow.Context) bool {
	if workflow.GetVersion(ctx, changeTriage, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return false
	}
	if node, findings, ok := r.front.VerifyAgain(r.opened.Truth); ok {
		r.verifyAgain(ctx, node, findings)
		return true
	}
	blocked, questions := r.front.Asked()
	if r.opened.Policy.Unattended || blocked+questions == 0 {
		return false
	}
	r.hold(ctx, contract.HoldQuestion, askedText(blocked, questions), "", nil)
	return true
}

// askedText says what waits for an answer.
func askedText(blocked, questions int) string {
	var parts []string
	if blocked > 0 {
		parts = append(parts, fmt.Sprintf("%d blocked %s", blocked, plural(blocked, "finding")))
	}
	if questions > 0 {
		parts = append(parts, fmt.Sprintf("%d %s of %s", questions, plural(questions, "question"), plural(questions, "a worker")))
	}
	verb := "wait"
	if blocked+questions == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s %s for an answer; nothing else can run", strings.Join(parts, " and "), verb)
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return strings.TrimPrefix(noun, "a ") + "s"
}

// verifyAgain asks whether others repaired what is blocked.
func (r *remediation) verifyAgain(ctx workflow.Context, node string, findings []string) {
	truth := r.opened.Truth
	var end contract.ReverifyEnd
	r.launch(ctx, true, func(ctx workflow.Context) error {
		in := contract.ReverifyInput{Run: r.in.Run, Config: r.opened.Config, Node: node, Findings: findings}
		actx := withGateOptions(ctx, 2*r.opened.Policy.Limits.Land, "verify what is blocked of "+node+" again")
		return workflow.ExecuteActivity(actx, gateRunner.Reverify, in).Get(ctx, &end)
	}, func(ctx workflow.Context, err error) {
		switch {
		case err != nil && (r.stoppedByUs(err) || branchMoved(err)):
			r.gateFailed(ctx, "verify "+node+" again", err)
			return
		case err != nil: // then people decide
			end = contract.ReverifyEnd{Reason: oneLine(err.Error())}
		}
		changes := r.front.VerifiedAgain(node, truth, end.Resolved, end.Reason)
		r.event(ctx, "%s verified again: %d of %d findings are repaired: %s", node, len(changes.Items), len(findings), end.Reason)
	})
}

// refuseAnswer rejects an answer that does not apply, before it is recorded.
func (r *remediation) refuseAnswer(command string, order contract.Operator) error {
	err := r.checkAnswer(command, order)
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(oneLine(err.Error()), contract.ErrorAnswerRefused, nil)
}

func (r *remediation) checkAnswer(command string, order contract.Operator) error {
	switch {
	case order.Run != "" && order.Run != r.in.Run:
		return fmt.Errorf("%s %s: the answer is for run %s, this is %s", command, order.Item, order.Run, r.in.Run)
	case r.front == nil:
		return fmt.Errorf("%s %s: the run is not open yet", command, order.Item)
	case r.ending():
		return fmt.Errorf("%s %s: the run is ending: %s", command, order.Item, cmp.Or(r.gates.Halted, r.reason))
	}
	if row, ok := r.front.Item(order.Item); ok && order.Asked > 0 && row.Attempt != order.Asked {
		return fmt.Errorf("%s %s: attempt %d said something since, look again: starter triage %s", command, order.Item, row.Attempt, r.in.Run)
	}
	if command == contract.CommandAnswer {
		return r.front.CheckAnswer(order.Item, order.Action, order.Text)
	}
	findings := r.triaged(order.Item)
	if len(findings) == 0 && order.Action != contract.TriageHalt {
		return r.front.CheckTriage(order.Item, order.Action)
	}
	for _, finding := range findings {
		if err := r.front.CheckTriage(finding, order.Action); err != nil {
			return err
		}
	}
	return nil
}

// triaged are the findings that a triage order is about: the named one, or the
// blocked ones of a node or of the run that wait for an answer.
func (r *remediation) triaged(item string) []string {
	if _, ok := r.front.Item(item); ok {
		return []string{item}
	}
	var findings []string
	for _, row := range r.front.ItemPage(0, 0, true) {
		if row.Status == contract.ItemBlocked && (item == contract.EveryItem || row.Node == item) {
			findings = append(findings, row.Finding)
		}
	}
	return findings
}

// orderTriage takes an operator's decision about blocked findings.
func (r *remediation) orderTriage(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	if order.Action == contract.TriageHalt {
		return r.halt(ctx, order)
	}
	findings := r.triaged(order.Item)
	changes, err := r.front.Triage(order.Action, findings...)
	if err != nil { // it was checked before
		return r.answered(ctx, []string{err.Error()})
	}
	var done []string
	for _, finding := range findings {
		done = append(done, r.tellAnswer(ctx, finding, order.Action, changes))
	}
	return r.answered(ctx, done)
}

// orderAnswer takes an operator's answer to a worker's question.
func (r *remediation) orderAnswer(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	changes, err := r.front.Answer(order.Item, order.Action, order.Text)
	if err != nil {
		return r.answered(ctx, []string{err.Error()})
	}
	return r.answered(ctx, []string{r.tellAnswer(ctx, order.Item, order.Action, changes)})
}

// tellAnswer says what an answer did to its finding.
func (r *remediation) tellAnswer(ctx workflow.Context, finding, action string, changes dispatch.Changes) string {
	row, _ := r.front.Item(finding)
	text := fmt.Sprintf("%s: %s, now %s", finding, action, row.Status)
	if slices.Contains(changes.Opened, row.Node) {
		text += "; " + row.Node + " is opened again"
	}
	r.event(ctx, "%s", text)
	return text
}

// answered lifts the question hold once something can run again, or nothing is
// left to ask; otherwise it says what is still open.
func (r *remediation) answered(ctx workflow.Context, done []string) contract.OperatorAnswer {
	r.gates.Answered, r.dirty = true, true
	for _, b := range r.front.DeadEnds() {
		r.event(ctx, "%s blocked: %s", b.Node, b.Reason)
	}
	if r.holds.Has(contract.HoldQuestion) {
		blocked, questions := r.front.Asked()
		if r.front.Waiting().Kind != dispatch.TerminalAsking || blocked+questions == 0 {
			r.holds.Lift(run.LiftedByAnswers)
			r.lifted(ctx, contract.HoldQuestion)
		} else {
			r.holds.Place(contract.Hold{Kind: contract.HoldQuestion, Reason: askedText(blocked, questions), Since: workflow.Now(ctx)})
		}
	}
	return r.answer(done...)
}

// halt closes the run at once and keeps everything.
func (r *remediation) halt(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	r.gates.Halted = "halted by an operator"
	if why := cmp.Or(order.Text, order.Reason); why != "" {
		r.gates.Halted += ": " + clip(why, 300)
	}
	r.event(ctx, "%s", r.gates.Halted)
	r.obeyHolds(ctx)
	r.dirty = true
	return r.answer("halted; the run closes at once, what landed and what was salvaged stays")
}

// ending reports whether an operator ended the run: whatever is alive is stopped, then it closes.
func (r *remediation) ending() bool { return r.cancel || r.gates.Halted != "" }

// end closes a run that an operator ended, once nothing of it is alive.
func (r *remediation) end() {
	if r.gates.Halted != "" {
		r.close(contract.RunBlocked, r.gates.Halted)
		return
	}
	r.close(contract.RunCancelled, r.reason)
}
