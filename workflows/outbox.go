package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"
)

// messageLimit bounds a merged message, far under the 64 KiB of a payload.
const messageLimit = 40 << 10

// fits reports whether messages may be merged into this one.
func fits(message any) bool {
	data, err := json.Marshal(message)
	return err == nil && len(data) <= messageLimit
}

// outbox sends signals to one workflow in order, one in flight: signals sent
// without awaiting the one before arrive out of order, and those sent by the
// task that completes a workflow are lost. What queues up meanwhile is merged,
// which keeps histories short under load.
type outbox[T any] struct {
	target string // workflow id
	signal string
	// merge joins two messages into one; false when the result would grow too large.
	merge func(older, newer T) (T, bool)
	// lost is called when the target is not there.
	lost func(ctx workflow.Context, message T, err error)

	queue   []T
	sending bool
}

// send queues a message; it never blocks.
func (o *outbox[T]) send(ctx workflow.Context, message T) {
	if n := len(o.queue); n > 0 {
		if merged, ok := o.merge(o.queue[n-1], message); ok {
			o.queue[n-1] = merged
			return
		}
	}
	o.queue = append(o.queue, message)
	if o.sending {
		return
	}
	o.sending = true
	workflow.Go(ctx, o.flush)
}

func (o *outbox[T]) flush(ctx workflow.Context) {
	for len(o.queue) > 0 {
		message := o.queue[0]
		o.queue = o.queue[1:]
		if err := workflow.SignalExternalWorkflow(ctx, o.target, "", o.signal, message).Get(ctx, nil); err != nil {
			o.lost(ctx, message, err)
		}
	}
	o.sending = false
}

// idle reports whether everything was sent and acknowledged.
func (o *outbox[T]) idle() bool { return !o.sending && len(o.queue) == 0 }
