package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// changePublish: a run carries its closing action out between the report and its end.
const changePublish = "publish-at-close"

// preparePublication decides, before the report is written, whether the closing
// action is carried out, so that the report says so.
func (r *remediation) preparePublication(ctx workflow.Context) {
	action := r.opened.Policy.Close
	if action == "" || action == string(plan.CloseNone) ||
		workflow.GetVersion(ctx, changePublish, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	state := run.NewPublication(action)
	switch {
	case r.verdict == contract.RunBlocked && !r.in.AllowPartial:
		state = run.SkippedPublication(action, "the run is not green: `starter publish retry "+r.in.Run+" --allow-partial` publishes what landed")
	case r.verdict != contract.RunCompleted && r.verdict != contract.RunBlocked:
		state = run.SkippedPublication(action, fmt.Sprintf("the run is %s", r.verdict))
	case r.opened.Truth == r.opened.BaseCommit:
		state = run.SkippedPublication(action, "nothing landed")
	}
	r.publishing = &publisher{state: state, tell: r.event}
}

// publish carries the closing action out, where there is one, and ends the run.
func (r *remediation) publish(ctx workflow.Context) {
	p := r.publishing
	if p == nil || p.state.View.State.Over() {
		r.finish(ctx)
		return
	}
	if r.report == nil {
		p.state.Answer(contract.PublishEnd{State: contract.PublishFailed, Detail: "there is no report"}, workflow.Now(ctx))
		r.finish(ctx)
		return
	}
	r.setStatus(contract.RunPublishing)
	p.in = contract.PublishInput{Run: r.in.Run, Config: r.opened.Config, Head: r.report.Head}
	r.launch(ctx, false, p.run, func(ctx workflow.Context, err error) {
		switch {
		case err != nil:
			r.event(ctx, "the report lacks the result of %s: %s", p.state.View.Action, oneLine(err.Error()))
		default:
			r.report.Markdown, r.report.JSON = p.report.Markdown, p.report.JSON
		}
		r.finish(ctx)
	})
}

// publicationView is the closing action as a status shows it; nil: there is none.
func (r *remediation) publicationView() *contract.PublicationView {
	if r.publishing == nil {
		return nil
	}
	v := r.publishing.state.View
	return &v
}

// orderPublishRetry ends the wait for the next try.
func (r *remediation) orderPublishRetry() contract.OperatorAnswer {
	answer := r.publishing.orderRetry()
	r.dirty = true
	answer.Status = r.status
	return answer
}
