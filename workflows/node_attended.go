package workflows

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// changeAttended: from then on nodes go to host pools by claims only; earlier
// drives placed them there as on any other pool.
const changeAttended = "attended-pools"

// attend makes the drive know attended pools once the composition has one.
func (l *level) attend(ctx workflow.Context, pools []contract.Pool) {
	for _, p := range pools {
		if p.Provider != contract.ProviderHost {
			continue
		}
		if workflow.GetVersion(ctx, changeAttended, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
			l.drive.Attend()
		}
		return
	}
}

// claims gives nodes to claims, or takes claims back.
func (l *level) claims(ctx workflow.Context, orders []contract.ClaimOrder) {
	for _, order := range orders {
		if order.Withdraw {
			l.drive.Unclaim(order.ID)
		} else {
			l.drive.Claim(order.Claim, workflow.Now(ctx))
		}
	}
}

// desk is the attended part of an attempt: somebody works in its tree, and
// nothing of ours runs there until the work is handed over. Its wait is the
// workflow's, so that neither a restart of the host nor of the server ends it.
type desk struct {
	view  contract.Desk
	inbox inbox
	alarm alarm
	life  time.Time // the last sign of life
	said  *contract.HandOver
}

// openDesk makes the handlers of an attended attempt known.
func (n *node) openDesk(ctx workflow.Context) error {
	c := n.in.Claim
	n.desk = &desk{view: contract.Desk{
		Claim: c.ID, By: c.By, Run: n.in.Run, Node: n.in.Node, Attempt: n.in.Attempt, Pool: n.in.Pool,
	}}
	n.desk.inbox.on(ctx, contract.SignalHandOver, func(p *commonpb.Payload) { n.desk.hear(ctx, p) })
	err := workflow.SetQueryHandler(ctx, contract.QueryDesk, func() (contract.Desk, error) {
		view := n.desk.view
		view.Step = n.step
		return view, nil
	})
	if err != nil {
		return fmt.Errorf("register query: %w", err)
	}
	return nil
}

// hear takes a message of the holder; the first decision counts.
func (d *desk) hear(ctx workflow.Context, payload *commonpb.Payload) {
	message, err := decode[contract.HandOver](payload)
	if err != nil || message.Claim != d.view.Claim {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalHandOver, "claim", message.Claim, "error", err)
		return
	}
	d.life = workflow.Now(ctx)
	if d.said == nil && message.Do != contract.HandOverRenew {
		d.said = &message
	}
}

// attend waits until the work is handed over, given back, or quiet for too long.
// ok is false when the tree was released with it.
func (n *node) attend(ctx workflow.Context, prepared contract.WorkerEnd) (contract.WorkerEnd, bool) {
	d := n.desk
	if prepared.Desk != nil {
		d.view.Host, d.view.Worktree = prepared.Desk.Host, prepared.Desk.Worktree
		d.view.PromptFile, d.view.ResultFile, d.view.Prompt = prepared.Desk.PromptFile, prepared.Desk.ResultFile, prepared.Desk.Prompt
	}
	n.setStep(ctx, "attended")
	d.life = workflow.Now(ctx)
	for {
		until := d.life.Add(time.Duration(n.in.Claim.Quiet) * time.Second)
		d.view.QuietUntil = &until
		d.alarm.set(ctx, until, "is "+d.view.By+" still at work?")
		if err := wait(ctx, &d.alarm, d.inbox.pending); err != nil {
			n.giveBack(ctx, "stopped while "+d.view.By+" worked on it", true)
			return prepared, false
		}
		d.inbox.drain()
		rang := d.alarm.ring()
		switch {
		case d.said != nil && d.said.Do == contract.HandOverAccept:
			return n.accept(ctx, prepared)
		case d.said != nil:
			n.giveBack(ctx, released(d.said), false)
			return prepared, false
		case rang && !workflow.Now(ctx).Before(d.life.Add(time.Duration(n.in.Claim.Quiet)*time.Second)) && !n.alive(ctx):
			return prepared, false
		}
	}
}

func released(message *contract.HandOver) string {
	text := "released by " + message.By
	if message.Reason != "" {
		text += ": " + message.Reason
	}
	return clip(text, 500)
}

// alive looks for changes in the tree since the last sign of life. Without any
// the claim is taken back, and so it is when the tree's host does not answer.
func (n *node) alive(ctx workflow.Context) bool {
	var sign contract.SignOfLife
	actx := withGitOptions(ctx, n.result.Host, 1, fmt.Sprintf("look for life in %s a%d", n.in.Node, n.in.Attempt))
	err := workflow.ExecuteActivity(actx, attempt.SignsOfLife, n.in).Get(ctx, &sign)
	switch {
	case err != nil && temporal.IsCanceledError(err):
		n.giveBack(ctx, "stopped while "+n.desk.view.By+" worked on it", true)
		return false
	case err != nil:
		n.giveBack(ctx, "the host of the tree did not answer: "+oneLine(err.Error()), false)
		return false
	case sign.LastChange.After(n.desk.life):
		n.desk.life = sign.LastChange
		if now := workflow.Now(ctx); n.desk.life.After(now) { // the host's clock is ahead
			n.desk.life = now
		}
		return true
	case n.desk.inbox.pending(): // it spoke meanwhile
		return true
	}
	n.giveBack(ctx, fmt.Sprintf("nothing was heard of %s for %s: the claim was taken back",
		n.desk.view.By, time.Duration(n.in.Claim.Quiet)*time.Second), false)
	return false
}

// accept takes over what was done.
func (n *node) accept(ctx workflow.Context, prepared contract.WorkerEnd) (contract.WorkerEnd, bool) {
	var end contract.WorkerEnd
	actx := withGitOptions(ctx, n.result.Host, 1, fmt.Sprintf("take over %s a%d", n.in.Node, n.in.Attempt))
	in := contract.HandOverInput{NodeInput: n.in, Result: n.desk.said.Result}
	if err := workflow.ExecuteActivity(actx, attempt.TakeOver, in).Get(ctx, &end); err != nil {
		n.lost(err, "take-over")
		n.release(ctx, n.result.Outcome == contract.OutcomeInterrupted, false)
		return prepared, false
	}
	end.Host = n.result.Host
	return end, true
}

// giveBack ends the attempt without a landing: uncharged, the tree kept or its work put aside.
func (n *node) giveBack(ctx workflow.Context, reason string, keep bool) {
	r := &n.result
	r.Outcome, r.Cause, r.Reason = contract.OutcomeInterrupted, "", clip(reason, 500)
	n.release(ctx, keep, false)
}
