package workflows

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// publisher carries a closing action out: a try is an activity that looks first,
// waits between tries are durable. What follows from an answer is the state's to say.
type publisher struct {
	state  *run.Publication
	in     contract.PublishInput
	report *contract.ReportEnd // the report with the result, once it is written
	hurry  bool                // an operator ended the wait
	tell   func(ctx workflow.Context, format string, args ...any)
}

// run works until nothing follows by itself, and writes the result into the report.
// The error is one of the report, or a cancel.
func (p *publisher) run(ctx workflow.Context) error {
	for {
		step, until := p.state.Next(workflow.Now(ctx))
		switch step {
		case run.PublishDone:
			return p.amend(ctx)
		case run.PublishWait:
			p.hurry = false
			if _, err := workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), func() bool { return p.hurry }); err != nil {
				return err
			}
		case run.PublishTry, run.PublishLook:
			if err := p.try(ctx, step == run.PublishLook); err != nil {
				return err
			}
		}
	}
}

func (p *publisher) try(ctx workflow.Context, look bool) error {
	p.state.Begin()
	in := p.in
	in.Look = look
	summary := fmt.Sprintf("%s, try %d", p.state.View.Action, p.state.View.Attempts)
	if look {
		summary = "look whether the last try did it"
	}
	var end contract.PublishEnd
	err := workflow.ExecuteActivity(withPublishOptions(ctx, summary), publication.Publish, in).Get(ctx, &end)
	switch {
	case temporal.IsCanceledError(err):
		return err
	case err != nil:
		p.state.Lost(oneLine(err.Error()), workflow.Now(ctx))
	default:
		p.state.Answer(end, workflow.Now(ctx))
	}
	v := p.state.View
	p.tell(ctx, "%s is %s after try %d: %s", v.Action, v.State, v.Attempts, v.Detail)
	return nil
}

// orderRetry ends a wait for the next try.
func (p *publisher) orderRetry() contract.OperatorAnswer {
	if p == nil || p.state.View.State.Over() || p.state.View.Until == nil {
		return contract.OperatorAnswer{Done: []string{"nothing waits for another try"}}
	}
	p.hurry = true
	p.state.Hurry()
	return contract.OperatorAnswer{Done: []string{"the next try begins now"}}
}

func (p *publisher) amend(ctx workflow.Context) error {
	var end contract.ReportEnd
	in := contract.AmendInput{Run: p.in.Run, Publication: p.state.View}
	if err := workflow.ExecuteActivity(withLightOptions(ctx, "write the result into the report"), publication.AmendReport, in).Get(ctx, &end); err != nil {
		return err
	}
	p.report = &end
	return nil
}

// registerRetry makes the order to try at once known, as an update and a signal.
func registerRetry(ctx workflow.Context, in *inbox, obey func() contract.OperatorAnswer) error {
	in.on(ctx, contract.CommandPublishRetry, func(*commonpb.Payload) { obey() })
	err := workflow.SetUpdateHandler(ctx, contract.CommandPublishRetry, func(workflow.Context, contract.Operator) (contract.OperatorAnswer, error) {
		return obey(), nil
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", contract.CommandPublishRetry, err)
	}
	return nil
}

// Publication tries the closing action of a closed run once more (`starter publish retry`).
func Publication(ctx workflow.Context, in contract.PublicationInput) (contract.PublicationResult, error) {
	var box inbox
	p := &publisher{
		state: run.NewPublication(in.Action), in: in.Publish,
		tell: func(ctx workflow.Context, format string, args ...any) {
			workflow.GetLogger(ctx).Info(fmt.Sprintf(format, args...))
		},
	}
	result := func() contract.PublicationResult {
		return contract.PublicationResult{Run: in.Publish.Run, Publication: p.state.View}
	}
	if err := registerRetry(ctx, &box, p.orderRetry); err != nil {
		return result(), err
	}
	if err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.PublicationResult, error) { return result(), nil }); err != nil {
		return result(), fmt.Errorf("register query %s: %w", contract.QueryStatus, err)
	}
	done := false
	workflow.Go(ctx, func(ctx workflow.Context) { // signals end waits too
		for !done {
			if workflow.Await(ctx, func() bool { return done || box.pending() }) != nil {
				return
			}
			box.drain()
		}
	})
	err := p.run(ctx)
	done = true
	if err != nil {
		return result(), err
	}
	return result(), workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}
