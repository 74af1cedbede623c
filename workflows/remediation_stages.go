package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
)

// Gate verdicts and purposes, as the gate activity speaks them.
const (
	gateRed      = "red"
	gateBaseline = "baseline"
	gateFinal    = "final"
	gatePhase    = "phase"
)

// checkBaseline runs the gate on the base first, when the base must be green. A
// red one holds the run; it is measured again when the hold is lifted.
func (r *remediation) checkBaseline(ctx workflow.Context) {
	if r.held() {
		r.standStill(ctx)
		return
	}
	if r.opened.Gate == 0 || r.base != nil || r.opened.Baseline == string(plan.BaselineAccept) {
		r.begin(ctx)
		return
	}
	r.setStatus(contract.RunPreparing)
	r.launch(ctx, true, r.measureBaseline, func(ctx workflow.Context, err error) {
		r.baselineMeasured(ctx, err)
		if r.base == nil || r.base.Verdict != gateRed {
			return
		}
		r.friction.Add(contract.Friction{Type: contract.FrictionBaselineRed, Discriminator: r.base.Failing, Severity: "warning", Note: r.base.Detail})
		r.hold(ctx, contract.HoldGate, fmt.Sprintf("baseline_red: `%s` fails on the base commit %s; repair the base, or plan with gate.baseline: accept",
			r.base.Failing, shortCommit(r.opened.BaseCommit)), "", nil)
	})
}

func (r *remediation) begin(ctx workflow.Context) {
	r.stage, r.dirty = stageImplement, true
	r.event(ctx, "implementing")
}

func (r *remediation) measureBaseline(ctx workflow.Context) error {
	var end contract.GateEnd
	in := contract.GateInput{Run: r.in.Run, Config: r.opened.Config, Commit: r.opened.BaseCommit, Purpose: gateBaseline, Round: r.gates.Measured, Baseline: r.opened.Baseline}
	actx := withGateOptions(ctx, r.opened.Policy.GateMinutes, "gate on the base "+shortCommit(r.opened.BaseCommit))
	if err := workflow.ExecuteActivity(actx, gateRunner.RunGate, in).Get(ctx, &end); err != nil {
		return err
	}
	r.base = &end
	r.gates.Measured++
	return nil
}

func (r *remediation) baselineMeasured(ctx workflow.Context, err error) {
	switch {
	case err != nil && r.stoppedByUs(err):
	case err != nil:
		r.fail(fmt.Errorf("run the gate on the base: %w", err))
	default:
		r.event(ctx, "baseline %s in %ds: %s", r.base.Verdict, r.base.Seconds, r.base.Detail)
		for _, f := range r.base.Friction {
			r.friction.Add(f)
		}
	}
}

// implement drives the levels until nothing is left, or only waiting is.
func (r *remediation) implement(ctx workflow.Context) {
	for _, b := range r.front.DeadEnds() {
		r.event(ctx, "%s blocked: %s", b.Node, b.Reason)
	}
	if r.held() {
		r.standStill(ctx)
		return
	}
	r.setStatus(contract.RunImplementing)
	if r.opened.Gate > 0 && r.base == nil && r.baseline == nil { // beside the nodes, when a red base is accepted
		r.baseline = r.startJob(ctx, true, r.measureBaseline, r.baselineMeasured)
	}
	r.front.Rearm(contract.StrandHeld) // no hold is left that could hold them
	r.admit(ctx)
	r.seal(ctx)
	if r.outstanding() > 0 || len(r.drives) > 0 || r.baseline != nil {
		return
	}
	if done, next, ok := r.front.PhaseBoundary(); ok {
		r.phaseEnd(ctx, done, next)
		return
	}
	r.waitOrGate(ctx)
}

// waitOrGate follows when nothing runs and nothing may start: what waits holds
// the run, otherwise the gate judges what there is.
func (r *remediation) waitOrGate(ctx workflow.Context) {
	terminal := r.front.Waiting()
	if terminal.Kind == dispatch.TerminalAsking && r.ask(ctx) {
		return
	}
	if terminal.Kind != dispatch.TerminalWaiting {
		r.stage, r.dirty = stageGate, true
		return
	}
	// Nobody's pool will ever take these; once they are all that is left they are findings for people.
	hopeless := []contract.StrandCause{contract.StrandEmptyPool, contract.StrandEscalated}
	if !slices.ContainsFunc(terminal.Causes, func(c dispatch.CauseNodes) bool { return !slices.Contains(hopeless, c.Cause) }) {
		for _, b := range r.front.BlockStranded(hopeless...) {
			r.event(ctx, "%s blocked: %s", b.Node, b.Reason)
		}
		r.dirty = true
		return
	}
	if hold, ok := dispatch.HoldFor(terminal); ok {
		r.hold(ctx, hold.Kind, hold.Reason, "", hold.Until)
	}
}

// seal tells drives for whose level no node can follow, so that they end when
// idle. When no drive has a node left, nothing follows anywhere for now: what is
// stranded may come back much later, to a new drive.
func (r *remediation) seal(ctx workflow.Context) {
	idle := r.outstanding() == 0
	for _, d := range r.drives {
		if !d.Sealed && d.Stop == "" && (idle || r.front.OpenAt(d.Depth) == len(d.Nodes)) {
			d.Sealed = true
			r.order(ctx, d, contract.DriveOrder{Seal: true})
		}
	}
}

// phaseEnd gates a finished phase and opens the next.
func (r *remediation) phaseEnd(ctx workflow.Context, done, next int) {
	if r.opened.Gate == 0 {
		r.front.OpenPhase(next)
		r.dirty = true
		return
	}
	r.gateThen(ctx, gatePhase, func(ctx workflow.Context) {
		r.event(ctx, "phase %d is complete and green", done)
		r.front.OpenPhase(next)
	})
}

// runGate judges the truth as a whole once nothing is left to do.
func (r *remediation) runGate(ctx workflow.Context) {
	if r.openedAgain() {
		return
	}
	if r.opened.Gate == 0 {
		r.gate = &contract.GateEnd{Kind: "disabled", Verdict: "disabled", Detail: "the plan has no gate"}
		r.judged(ctx)
		return
	}
	if r.held() {
		r.standStill(ctx)
		return
	}
	r.gateThen(ctx, gateFinal, r.judged)
}

// writeReport stores the run's rows, renders the report pair, publishes and ends.
func (r *remediation) writeReport(ctx workflow.Context) {
	if r.report != nil || r.opened.Config.URI == "" {
		r.publish(ctx)
		return
	}
	if len(r.drives) > 0 { // a failed or cancelled run lets its drives end first
		r.stopDrives(ctx, contract.StopCancel)
		return
	}
	now := workflow.Now(ctx)
	r.closed = &now
	r.settleRecord(ctx)
	r.preparePublication(ctx)
	r.launch(ctx, false, func(ctx workflow.Context) error {
		parts, err := saveParts(ctx, r.in.Run, "record", r.record())
		if err != nil {
			return err
		}
		var end contract.ReportEnd
		in := contract.ReportInput{Run: r.in.Run, Config: r.opened.Config, State: parts}
		if err := workflow.ExecuteActivity(withRepositoryOptions(ctx, "write the report"), publication.WriteReport, in).Get(ctx, &end); err != nil {
			return err
		}
		r.report = &end
		return nil
	}, func(ctx workflow.Context, err error) {
		if err != nil {
			workflow.GetLogger(ctx).Error("write report", "error", err)
			r.event(ctx, "the report could not be written: %s", oneLine(err.Error()))
		}
		r.publish(ctx)
	})
}

func (r *remediation) finish(ctx workflow.Context) {
	if r.closed == nil {
		now := workflow.Now(ctx)
		r.closed = &now
	}
	r.setStatus(r.verdict)
	r.stage = stageDone
	r.event(ctx, "closed: %s %s", r.status, r.reason)
}

// wake is the next instant at which something happens by itself.
func (r *remediation) wake() (time.Time, string) {
	var at time.Time
	what := ""
	if until := r.holds.Until(); until != nil {
		at, what = *until, "quota reopens"
	}
	if r.stage == stageImplement && !r.held() && !r.cancel && r.mayWork() { // otherwise nobody takes it up
		if next := r.front.Waiting().NotBefore; next != nil {
			at, what = *next, "a stranded node may go on"
		}
	}
	for _, d := range r.drives {
		if check := d.Heard.Add(driveCheckEvery); at.IsZero() || check.Before(at) {
			at, what = check, "check silent drives"
		}
	}
	return at, what
}
