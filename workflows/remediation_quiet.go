package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// changeLostJobs: from then on a job that was stopped and whose host is lost
// leaves something to be proven; earlier executions failed the run.
const changeLostJobs = "stopped-jobs-of-lost-hosts"

// loose is something of the run of which nothing proves that it has ended.
type loose struct {
	contract.Unproven
	proof workflow.CancelFunc // asks the host; nil: nobody was asked
}

// unprove remembers that something of the run may still be alive.
func (r *remediation) unprove(ctx workflow.Context, u *contract.Unproven) {
	if u == nil || slices.ContainsFunc(r.loose, func(l *loose) bool { return l.same(*u) }) {
		return
	}
	u.Since = workflow.Now(ctx)
	r.loose = append(r.loose, &loose{Unproven: *u})
	r.event(ctx, "%s", unprovenText(*u))
}

func (l *loose) same(u contract.Unproven) bool {
	return l.Host == u.Host && l.Node == u.Node && l.Attempt == u.Attempt
}

func unprovenText(u contract.Unproven) string {
	what, host := "the gate", "host "+u.Host
	if u.Node != "" {
		what = fmt.Sprintf("attempt %d of %s", u.Attempt, u.Node)
	}
	if u.Host == "" {
		host = "an unknown host"
	}
	text := fmt.Sprintf("nothing proves that %s has ended on %s", what, host)
	if u.Why != "" {
		text += " (" + u.Why + ")"
	}
	return text
}

// standStill sets the status of a run that its holds keep from going on: it has
// paused only when it is proven that nothing of it is alive.
func (r *remediation) standStill(ctx workflow.Context) {
	switch {
	case !r.quiet():
		if r.stopMode() != nil {
			r.setStatus(contract.RunPausing)
		}
	case len(r.loose) > 0:
		r.setStatus(contract.RunPausing)
		r.seekProof(ctx)
	case r.holds.Has(contract.HoldRecovery):
		r.setStatus(contract.RunRecovery)
	default:
		r.setStatus(contract.RunPaused)
	}
}

// seekProof asks the hosts of what is loose to end it and to say so.
func (r *remediation) seekProof(ctx workflow.Context) {
	for _, l := range r.loose {
		if l.proof != nil || l.Host == "" {
			continue
		}
		proofCtx, cancel := workflow.WithCancel(withQuietOptions(ctx, l.Host))
		l.proof = cancel
		workflow.Go(ctx, func(ctx workflow.Context) {
			in := contract.QuietInput{Run: r.in.Run, Node: l.Node, Attempt: l.Attempt}
			err := workflow.ExecuteActivity(proofCtx, landing.ProveQuiet, in).Get(ctx, nil)
			l.proof = nil
			r.dirty = true
			switch {
			case err == nil:
				r.loose = slices.DeleteFunc(r.loose, func(o *loose) bool { return o == l })
				r.event(ctx, "host %s says that what was lost there has ended", l.Host)
			case !temporal.IsCanceledError(err):
				l.Why = oneLine(err.Error())
			}
		})
	}
}

// endOf is how a job ended. One that was stopped and whose end nobody can prove
// is stopped all the same; that it may be alive is remembered.
func (r *remediation) endOf(ctx workflow.Context, j *job) error {
	if j.err == nil || !j.stopped {
		return j.err
	}
	u := lostTrack(j.err)
	if u == nil || workflow.GetVersion(ctx, changeLostJobs, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return j.err
	}
	r.unprove(ctx, u)
	return temporal.NewCanceledError()
}

// lostTrack reads an activity's error: what may still be alive after it, nil
// when the error tells that it ended or never began.
func lostTrack(err error) *contract.Unproven {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if app.Type() != contract.ErrorProcessAlive {
			return nil
		}
		u := &contract.Unproven{}
		if app.HasDetails() {
			_ = app.Details(u) // what cannot be read leaves it unknown where
		}
		return u
	}
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) || timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START && !timeout.HasLastHeartbeatDetails() {
		return nil
	}
	u := &contract.Unproven{Why: "its host stopped answering"}
	var beat contract.Beat
	if timeout.HasLastHeartbeatDetails() && timeout.LastHeartbeatDetails(&beat) == nil {
		u.Host = beat.Host
	}
	return u
}

// orderQuiesce says what of the run is alive; with force it gives up what does
// not end, which leaves a run that has to be recovered, never a paused one.
func (r *remediation) orderQuiesce(ctx workflow.Context, order contract.Operator) contract.OperatorAnswer {
	alive := r.alive()
	switch {
	case len(alive) == 0:
		return r.answer("nothing of the run is alive")
	case !order.Force:
		return r.answer(alive...)
	case r.stopMode() == nil && r.status != contract.RunPausing:
		return r.answer("nothing was given up: the run goes on; pause it first")
	}
	for _, d := range slices.Clone(r.drives) {
		r.order(ctx, d, contract.DriveOrder{Stop: contract.StopCancel})
		r.driveLost(ctx, d, "was given up by an operator")
	}
	for _, j := range []*job{r.work, r.baseline} {
		if j != nil {
			j.cancel()
		}
	}
	r.work, r.baseline = nil, nil
	for _, l := range r.loose {
		if l.proof != nil {
			l.proof()
		}
	}
	r.loose = nil
	r.recovery(ctx, contract.RecoveryHostLost, "given up by an operator: "+clip(strings.Join(alive, "; "), reasonSize))
	r.standStill(ctx)
	r.dirty = true
	return r.answer("what did not end was given up: the run has to be recovered")
}

// alive lists what of the run is alive, or may be.
func (r *remediation) alive() []string {
	var alive []string
	for _, d := range r.drives {
		text := fmt.Sprintf("drive L%02d runs", d.Number)
		if n := len(d.Nodes); n > 0 {
			ids := make([]string, 0, n)
			for _, a := range d.Nodes[:min(n, 10)] {
				ids = append(ids, a.Node)
			}
			text += fmt.Sprintf(" with %d nodes (%s)", n, strings.Join(ids, ", "))
		}
		alive = append(alive, text)
	}
	if r.work != nil {
		alive = append(alive, "the run is "+string(r.stage)+"ing")
	}
	if r.baseline != nil {
		alive = append(alive, "the gate runs on the base")
	}
	for _, l := range r.loose {
		alive = append(alive, unprovenText(l.Unproven))
	}
	return alive
}

// unproven is what the status shows of it.
func (r *remediation) unproven() []contract.Unproven {
	var list []contract.Unproven
	for _, l := range r.loose {
		list = append(list, l.Unproven)
	}
	return list
}
