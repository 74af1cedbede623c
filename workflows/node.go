package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// Node is one attempt: RunWorker, LandWork, ReleaseWorktree. How a worker ended
// is a value; an error is returned only when the workflow itself is broken.
func Node(ctx workflow.Context, in contract.NodeInput) (contract.AttemptResult, error) {
	n := &node{in: in, result: contract.AttemptResult{
		Node: in.Node, Opening: in.Opening, Attempt: in.Attempt, Pool: in.Pool,
		StartedAt: workflow.Now(ctx),
	}}
	if err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (string, error) { return n.step, nil }); err != nil {
		return n.result, fmt.Errorf("register query: %w", err)
	}
	if in.Claim != nil {
		if err := n.openDesk(ctx); err != nil {
			return n.result, err
		}
	}
	n.run(ctx)
	n.result.EndedAt = workflow.Now(ctx)
	n.measure(ctx)
	return n.result, nil
}

type node struct {
	in     contract.NodeInput
	step   string
	silent bool // the host stopped answering while an activity was at work there
	result contract.AttemptResult
	desk   *desk // of an attended attempt
}

func (n *node) run(ctx workflow.Context) {
	end, ok := n.work(ctx)
	if !ok {
		return
	}
	if end.Alive != "" { // the tree is whoever's may still write there: it is salvaged and put aside
		n.unproven(end.Host, end.Alive)
		n.release(ctx, false, false)
		return
	}
	if end.Landed != "" { // git decides: an earlier attempt of this opening landed and its record was lost
		n.found(end)
		return
	}
	if n.desk != nil && end.Outcome == contract.OutcomeSuccess {
		if end, ok = n.attend(ctx, end); !ok {
			return
		}
	}
	if end.Outcome != contract.OutcomeSuccess {
		n.release(ctx, keeps(end.Outcome), false)
		return
	}
	n.land(ctx, end)
}

// found takes over a landing whose record was lost: its commit names what it repaired.
func (n *node) found(end contract.WorkerEnd) {
	r := &n.result
	r.Outcome, r.State, r.Commit, r.LandedOn = contract.OutcomeSuccess, contract.NodeLanded, end.Landed, end.Landed
	for _, finding := range n.in.Findings {
		item := contract.ItemResult{Finding: finding, Status: contract.ItemResolved}
		if !slices.Contains(end.Resolved, finding) {
			item.Status, item.Omitted, item.Reason = contract.ItemPending, true, "the landed commit does not name it"
			r.State = contract.NodePartial
		}
		r.Items = append(r.Items, item)
	}
}

// keeps reports whether the outcome's tree is kept for continuation (dispatch.md).
func keeps(o contract.Outcome) bool {
	switch o {
	case contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeCreditExhausted,
		contract.OutcomeAuthFailed, contract.OutcomeQuotaUnclassified, contract.OutcomeInterrupted:
		return true
	default:
		return false
	}
}

// work launches the worker and takes over how it ended; ok is false when there is no tree to go on with.
func (n *node) work(ctx workflow.Context) (contract.WorkerEnd, bool) {
	n.setStep(ctx, "worker")
	var end contract.WorkerEnd
	err := workflow.ExecuteActivity(withWorkerOptions(ctx, n.in), attempt.RunWorker, n.in).Get(ctx, &end)
	if err != nil {
		n.lost(err, "worker")
		if r := &n.result; r.Host == "" && r.Kept == nil && r.Outcome == contract.OutcomeError && n.in.Kept != nil {
			r.Host = n.in.Kept.Host // it failed before it had taken that tree over
		}
		if n.result.Host != "" {
			n.release(ctx, keeps(n.result.Outcome), false)
		} else if n.silent {
			n.unproven("", n.result.Reason)
		}
		return end, false
	}
	r := &n.result
	r.Host, r.Outcome, r.Cause, r.Reason = end.Host, end.Outcome, end.Cause, end.Reason
	r.Limit, r.Windows, r.Usage, r.Log, r.Tail, r.Kept = end.Limit, end.Windows, end.Usage, end.Log, end.Tail, end.Kept
	r.Friction, r.Stopping = end.Friction, end.Stopping
	if !end.StartedAt.IsZero() {
		r.StartedAt = end.StartedAt
	} else if end.Stopping {
		r.StartedAt = time.Time{} // its host turned it away: it used nothing
	}
	return end, true
}

func (n *node) land(ctx workflow.Context, end contract.WorkerEnd) {
	n.setStep(ctx, "landing")
	in := contract.LandInput{NodeInput: n.in, Delivered: end.Delivered, ExitCode: end.ExitCode}
	var landed contract.LandEnd
	actx := withGitOptions(ctx, end.Host, n.in.Limits.Land, fmt.Sprintf("land %s a%d", n.in.Node, n.in.Attempt))
	if err := workflow.ExecuteActivity(actx, landing.LandWork, in).Get(ctx, &landed); err != nil {
		n.lost(err, "landing")
		if n.result.Unproven != nil {
			n.release(ctx, false, false)
			return
		}
		n.release(ctx, n.result.Outcome == contract.OutcomeInterrupted, false)
		return
	}
	r := &n.result
	r.Delivered = true
	r.Outcome, r.Cause, r.Reason, r.State, r.Items = landed.Outcome, landed.Cause, landed.Reason, landed.State, landed.Items
	r.Commit, r.VerifiedOn, r.LandedOn, r.Unverified = landed.Commit, landed.VerifiedOn, landed.LandedOn, landed.Unverified
	r.Paths, r.Salvage, r.Stopping = landed.Paths, landed.Salvage, landed.Stopping
	r.Friction = append(r.Friction, landed.Friction...)
	if landed.Tail != "" {
		r.Tail = landed.Tail
	}
	if landed.Verify != nil && landed.Outcome != contract.OutcomeSuccess {
		r.Log = landed.Verify
	}
	if landed.Released {
		if landed.Left != "" {
			n.addReason(landed.Left)
		}
		return
	}
	if landed.Alive != "" {
		n.unproven(end.Host, landed.Alive)
		n.release(ctx, false, landed.Commit != "")
		return
	}
	n.release(ctx, landed.Outcome == contract.OutcomeInterrupted, landed.Commit != "")
}

// unproven says that something of the attempt may still be alive on a host.
func (n *node) unproven(host, why string) {
	n.result.Unproven = &contract.Unproven{Host: host, Node: n.in.Node, Attempt: n.in.Attempt, Why: why}
	n.result.Kept = nil
}

// release ends the attempt's tree. It runs in a disconnected context: a cancel
// must not leave a tree that nobody owns.
func (n *node) release(ctx workflow.Context, keep, landed bool) {
	host := n.result.Host
	if host == "" && n.result.Kept != nil {
		host = n.result.Kept.Host
	}
	if host == "" {
		return
	}
	stopped := ctx.Err() != nil
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	step := n.step
	n.setStep(ctx, "release")
	in := contract.ReleaseInput{NodeInput: n.in, Landed: landed, Keep: keep, Step: step}
	actx := withGitOptions(ctx, host, 30, fmt.Sprintf("release %s a%d", n.in.Node, n.in.Attempt))
	var end contract.ReleaseEnd
	if err := workflow.ExecuteActivity(actx, landing.ReleaseWorktree, in).Get(ctx, &end); err != nil {
		workflow.GetLogger(ctx).Warn("release worktree", "error", err)
		n.notReleased(host, stopped && keep, err)
		n.addReason("the worktree could not be released: " + oneLine(err.Error()))
		return
	}
	n.result.Kept = end.Kept
	if end.Salvage != "" {
		n.result.Salvage = end.Salvage
		n.tellSalvage(end)
	}
	if end.Left != "" {
		n.addReason(end.Left)
	}
}

// notReleased follows when the tree's host does not answer. After a pause or a
// cancel there is time: the tree is continued if the host is back by then.
func (n *node) notReleased(host string, mayReturn bool, err error) {
	kept := n.result.Kept
	if n.silent {
		n.unproven(host, n.result.Reason)
	}
	n.result.Kept = nil
	var timeout *temporal.TimeoutError
	if mayReturn && errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		n.result.Kept = kept
	}
}

// tellSalvage records that work was put aside, unless it is continued or was told already.
func (n *node) tellSalvage(end contract.ReleaseEnd) {
	told := slices.ContainsFunc(n.result.Friction, func(f contract.Friction) bool { return f.Type == contract.FrictionNodeSalvaged })
	if told || end.Kept != nil {
		return
	}
	n.result.Friction = append(n.result.Friction, contract.Friction{
		Type: contract.FrictionNodeSalvaged, Discriminator: n.in.Node, Severity: "info",
		Note: "changes of a worker did not land and were kept: " + end.Salvage,
	})
}

// lost turns a failed activity into an outcome: what the host's death or our
// own cancel ended is interrupted and not charged, anything else is charged to the host.
func (n *node) lost(err error, step string) {
	r := &n.result
	r.Outcome, r.Cause, r.Reason = contract.OutcomeError, contract.CauseHost, oneLine(err.Error())
	var timeout *temporal.TimeoutError
	var app *temporal.ApplicationError
	switch {
	case temporal.IsCanceledError(err): // one that had begun answers with a value
		r.Outcome, r.Cause, r.Reason = contract.OutcomeInterrupted, "", "stopped before the "+step+" began"
		if step == "worker" {
			r.Kept, r.StartedAt = n.in.Kept, time.Time{}
		}
	case errors.As(err, &timeout):
		n.timedOut(timeout, step)
	case errors.As(err, &app) && app.Type() == contract.ErrorProcessAlive:
		r.Reason = oneLine(app.Message())
		n.unproven(r.Host, r.Reason)
	case errors.As(err, &app) && app.Type() == contract.ErrorSuperseded:
		r.Outcome, r.Cause, r.Reason = contract.OutcomeInterrupted, "", "superseded: "+oneLine(app.Message())
	case errors.As(err, &app) && app.Type() == contract.ErrorBranchMoved:
		r.Outcome, r.Cause, r.Reason = contract.OutcomeInterrupted, "", oneLine(app.Message())
		r.Recovery = contract.RecoveryBranchMoved
	case errors.As(err, &app) && (app.Type() == contract.ErrorDiskFull || app.Type() == contract.ErrorWorktreeMissing || app.Type() == contract.ErrorWorktreeBusy):
		r.Outcome, r.Cause, r.Reason = contract.OutcomeInterrupted, "", oneLine(app.Message())
	case errors.As(err, &app):
		r.Reason = oneLine(app.Message())
	}
}

func (n *node) timedOut(timeout *temporal.TimeoutError, step string) {
	r := &n.result
	// What waits for its host in vain has beaten only if it was at work there before.
	n.silent = timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START || timeout.HasLastHeartbeatDetails()
	switch timeout.TimeoutType() {
	case enumspb.TIMEOUT_TYPE_HEARTBEAT:
		r.Outcome, r.Cause = contract.OutcomeInterrupted, ""
		r.Reason = fmt.Sprintf("the host stopped answering during the %s", step)
		var beat contract.Beat
		if timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&beat) == nil && beat.Host != "" {
			// The last beat may be older than the tree: the release looks what is there.
			r.Host = beat.Host
			r.Kept = &contract.Kept{Attempt: n.in.Attempt, Host: beat.Host, Pool: n.in.Pool, Session: beat.Session, Step: beat.Step}
		}
	case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		r.Outcome, r.Cause = contract.OutcomeInterrupted, ""
		r.Reason = fmt.Sprintf("no host took the %s in time", step)
		if n.in.Kept != nil && step == "worker" {
			r.Reason = "host " + n.in.Kept.Host + " did not come back: starting clean"
		}
		r.Unserved = step == "worker" && n.in.Kept == nil
	default:
		r.Reason = fmt.Sprintf("the %s did not end within its limit", step)
	}
}

func (n *node) setStep(ctx workflow.Context, step string) {
	n.step = step
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** attempt %d on pool `%s`: %s since %s",
		n.in.Node, n.in.Attempt, n.in.Pool, step, workflow.Now(ctx).UTC().Format(time.TimeOnly)))
}

func (n *node) addReason(text string) {
	if n.result.Reason != "" {
		text = n.result.Reason + "; " + text
	}
	n.result.Reason = clip(text, 500)
}
