package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// outbox sends signals to one workflow in order, one in flight: signals sent
// without awaiting the one before arrive out of order, and those sent by the
// task that completes a workflow are lost. What queues up meanwhile is merged
// into one message, which keeps histories short under load.
type outbox[T any] struct {
	target string // workflow id
	signal string
	merge  func(older, newer T) T
	// lost is called when the target is not there; it may queue the message again.
	lost func(ctx workflow.Context, message T, err error)

	queued  *T
	sending bool
}

// send queues a message; it never blocks.
func (o *outbox[T]) send(ctx workflow.Context, message T) {
	if o.queued != nil {
		message = o.merge(*o.queued, message)
	}
	o.queued = &message
	if o.sending {
		return
	}
	o.sending = true
	workflow.Go(ctx, o.flush)
}

func (o *outbox[T]) flush(ctx workflow.Context) {
	for o.queued != nil {
		message := *o.queued
		o.queued = nil
		if err := workflow.SignalExternalWorkflow(ctx, o.target, "", o.signal, message).Get(ctx, nil); err != nil {
			o.lost(ctx, message, err)
		}
	}
	o.sending = false
}

// idle reports whether everything was sent and acknowledged.
func (o *outbox[T]) idle() bool { return !o.sending && o.queued == nil }
