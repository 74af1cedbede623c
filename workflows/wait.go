package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// alarm is an updatable timer on an absolute instant. The main loop sets it at
// every turn: an instant that is not earlier than the one that is set changes
// nothing, since a turn too many is cheaper than two events in the history.
type alarm struct {
	at     time.Time // zero: not set
	rang   bool
	cancel workflow.CancelFunc
}

// set makes the alarm ring at the instant at the latest; the zero instant asks for nothing.
func (a *alarm) set(ctx workflow.Context, at time.Time, summary string) {
	if at.IsZero() || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	if a.cancel != nil {
		a.cancel()
	}
	a.at, a.rang = at, false
	timerCtx, cancel := workflow.WithCancel(ctx)
	a.cancel = cancel
	delay := max(at.Sub(workflow.Now(ctx)), time.Millisecond)
	timer := workflow.NewTimerWithOptions(timerCtx, delay, workflow.TimerOptions{Summary: summary})
	workflow.Go(timerCtx, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && a.at.Equal(at) {
			a.rang, a.at, a.cancel = true, time.Time{}, nil
		}
	})
}

// ring reports whether the alarm went off since the last call.
func (a *alarm) ring() bool {
	rang := a.rang
	a.rang = false
	return rang
}

// wait is the only place where a main loop blocks: until ready says so or the
// alarm rings. The error is a cancellation of ctx.
func wait(ctx workflow.Context, a *alarm, ready func() bool) error {
	return workflow.Await(ctx, func() bool { return a.rang || ready() })
}
