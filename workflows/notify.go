package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// changeNotify: a run tells its plan's receivers about changes of its state.
const changeNotify = "notify"

// noticeBook remembers what was told, so that each change of state is told once.
type noticeBook struct {
	Sent     int  `json:"sent,omitempty"` // notices so far, of all receivers
	Started  bool `json:"started,omitempty"`
	Paused   bool `json:"paused,omitempty"`
	Question bool `json:"question,omitempty"`
	Closed   bool `json:"closed,omitempty"`

	starting int // deliveries that the server does not know yet
}

// changes are the events that became true since the last call.
func (b *noticeBook) changes(opened, paused, question, closed bool) []plan.NotifyOn {
	var events []plan.NotifyOn
	for _, c := range []struct {
		event plan.NotifyOn
		was   *bool
		is    bool
	}{
		{plan.NotifyStarted, &b.Started, opened || b.Started},
		{plan.NotifyPaused, &b.Paused, paused},
		{plan.NotifyQuestion, &b.Question, question},
		{plan.NotifyClosed, &b.Closed, closed},
	} {
		if c.is && !*c.was {
			events = append(events, c.event)
		}
		*c.was = c.is
	}
	return events
}

// notify tells what changed. Each delivery is a workflow of its own that the run
// neither waits for nor takes along: a receiver that fails, or hangs, is never in its way.
func (r *remediation) notify(ctx workflow.Context) {
	if len(r.opened.Notify) == 0 || workflow.GetVersion(ctx, changeNotify, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	for _, event := range r.notices.changes(r.front != nil, r.status == contract.RunPaused, r.holds.Has(contract.HoldQuestion), r.stage == stageDone) {
		for i, receiver := range r.opened.Notify {
			if slices.Contains(receiver, event) {
				r.deliver(ctx, i, event)
			}
		}
	}
}

func (r *remediation) deliver(ctx workflow.Context, receiver int, event plan.NotifyOn) {
	r.notices.Sent++
	n := r.notices.Sent
	v := r.view()
	in := contract.NotificationInput{Config: r.opened.Config, Receiver: receiver, Notice: contract.Notice{
		Version: 1, ID: fmt.Sprintf("%s/%d", r.in.Run, n), Event: event, At: workflow.Now(ctx).UTC(), Run: r.in.Run, PlanID: v.PlanID,
		Status: v.Status, Reason: v.Reason, Holds: v.Holds, Repository: v.Repository, Branch: v.Branch, HeadCommit: v.HeadCommit, Publication: v.Publication,
	}}
	r.notices.starting++
	workflow.Go(ctx, func(ctx workflow.Context) {
		child := workflow.ExecuteChildWorkflow(withNoticeOptions(ctx, r.in.Run, n, event), contract.WorkflowNotification, in)
		if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("notify", "event", event, "error", err)
		}
		r.notices.starting--
		r.dirty = true
	})
}

// Notification delivers one notice, again and again until its receiver takes it or
// its time is over. Nobody waits for it.
func Notification(ctx workflow.Context, in contract.NotificationInput) error {
	summary := fmt.Sprintf("tell receiver %d: %s", in.Receiver, in.Notice.Event)
	return workflow.ExecuteActivity(withNotifyOptions(ctx, summary), publication.Notify, in).Get(ctx, nil)
}
