package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// Remediation is a run: it opens the repository, drives the dependency levels,
// gates the result and closes with a report.
func Remediation(ctx workflow.Context, in contract.RemediationInput) (contract.RemediationResult, error) {
	// A cancel of the workflow is an order like any other; the work itself runs
	// in a context that it does not reach, so that nothing is left half done.
	work, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	r := newRemediation(work, in)
	if err := r.register(work); err != nil {
		return contract.RemediationResult{}, err
	}
	return r.run(ctx, work)
}

// stage is how far a run has come; within a stage everything is event-driven.
type stage string

const (
	stageOpen      stage = "open"      // mirror, base, truth, units
	stageBaseline  stage = "baseline"  // the gate on the base, when it must be green first
	stageImplement stage = "implement" // levels
	stageGate      stage = "gate"
	stageAttribute stage = "attribute" // the search for what turned a gate red
	stageClose     stage = "close"     // report
	stageDone      stage = "done"
)

// remediation is the state of the workflow. Only the main loop writes it:
// through the inbox, through jobs that ended, and through update handlers,
// which set dirty.
type remediation struct {
	in      contract.RemediationInput
	inbox   inbox
	alarm   alarm
	dirty   bool
	stage   stage
	status  contract.RunStatus
	verdict contract.RunStatus // how the run closes; empty while it is open
	reason  string

	opened   contract.OpenRunResult
	units    []plan.Unit
	front    *dispatch.Frontier
	holds    *run.Holds
	friction *run.FrictionBook
	drives   []*drive // open ones, by number
	launched int      // drives started so far
	pools    poolBook
	usage    contract.UsageView
	budget   dispatch.Budget
	probing  int // brokers being asked to try again
	reopened late
	claims   claimBook
	requests run.Requests[contract.OperatorAnswer]
	loose    []*loose // of what nothing proves that it has ended
	hosts    hosts
	told     measured

	work     *job // the one activity of the main line
	baseline *job // runs beside the nodes when the plan accepts a red base
	base     *contract.GateEnd
	gate     *contract.GateEnd
	round    int // gates run so far
	gates    gateBook

	scheduling *scheduling                        // nil: nobody admitted the run
	commands   map[string]func(contract.Operator) // what a scheduler passes on

	pause  *contract.StopMode // mode of the operator's pause while it holds
	cancel bool
	events []contract.Event
	shown  attributes
	report *contract.ReportEnd
	// publishing is the closing action; nil: there is none, or it is too early.
	publishing *publisher
	notices    noticeBook
	start      time.Time
	closed     *time.Time

	restored bool // what the execution before this one carried is in
}

func newRemediation(ctx workflow.Context, in contract.RemediationInput) *remediation {
	return &remediation{
		in: in, stage: stageOpen, status: contract.RunStarting,
		holds: &run.Holds{}, friction: &run.FrictionBook{},
		pools: newPoolBook(in.Pools), start: workflow.Now(ctx),
		scheduling: newScheduling(in), commands: map[string]func(contract.Operator){},
	}
}

// run is the main loop: take what arrived, decide, carry out, show, wait. Only
// root is reached by a cancel of the workflow.
func (r *remediation) run(root, ctx workflow.Context) (contract.RemediationResult, error) {
	cancelled := func() bool { return root.Err() != nil && !r.cancel }
	if err := r.restore(ctx); err != nil {
		return contract.RemediationResult{}, err
	}
	for r.stage != stageDone {
		r.dirty = false
		if cancelled() {
			r.orderCancel(ctx, contract.Operator{Reason: "the workflow was cancelled"})
		}
		r.inbox.drain()
		if r.alarm.ring() {
			r.checkDrives(ctx)
		}
		r.turn(ctx)
		r.tellScheduler(ctx)
		r.show(ctx)
		r.measure(ctx)
		if r.stage == stageDone || r.dirty {
			continue
		}
		renew := r.mayContinue(ctx)
		ready := func() bool { return r.dirty || r.inbox.pending() || cancelled() || r.mayContinue(ctx) }
		if renew {
			// Nothing is taken in any more: a steady stream of reports must not keep the history growing.
			ready = func() bool { return r.dirty || cancelled() || r.sent(ctx) }
		}
		at, what := r.wake()
		r.alarm.set(ctx, at, what)
		if err := wait(ctx, &r.alarm, ready); err != nil {
			return contract.RemediationResult{}, err
		}
		if renew && !r.dirty && !cancelled() && r.sent(ctx) {
			if err := r.continueAsNew(ctx, cancelled); err != nil {
				return contract.RemediationResult{}, err
			}
		}
	}
	over := func() bool {
		return workflow.AllHandlersFinished(ctx) && r.toldScheduler() && r.notices.starting == 0
	}
	if err := workflow.Await(ctx, over); err != nil {
		return contract.RemediationResult{}, err
	}
	r.inbox.drain()
	return r.result(), nil
}

// turn decides what follows from the present state and starts it.
func (r *remediation) turn(ctx workflow.Context) {
	if r.work != nil && r.work.done {
		finished := r.work
		r.work = nil
		finished.then(ctx, r.endOf(ctx, finished))
	}
	if r.baseline != nil && r.baseline.done {
		finished := r.baseline
		r.baseline = nil
		finished.then(ctx, r.endOf(ctx, finished))
	}
	r.obeyHolds(ctx)
	r.wantHosts(ctx)
	if r.work != nil {
		return
	}
	if r.ending() && r.stage != stageClose && r.stage != stageDone {
		if r.quiet() {
			r.end()
		}
		return
	}
	if r.status == contract.RunPausing && r.quiet() && len(r.loose) > 0 {
		r.standStill(ctx) // whatever was lifted meanwhile: it proves first that it stopped
		return
	}
	if r.awaitsSlot(ctx) {
		return
	}
	switch r.stage {
	case stageOpen:
		r.open(ctx)
	case stageBaseline:
		r.checkBaseline(ctx)
	case stageImplement:
		r.implement(ctx)
	case stageGate:
		r.runGate(ctx)
	case stageAttribute:
		r.attribute(ctx)
	case stageClose:
		r.writeReport(ctx)
	case stageDone:
	}
}

// open brings the repository and the run's units in.
func (r *remediation) open(ctx workflow.Context) {
	if r.held() {
		r.standStill(ctx)
		return
	}
	if r.opened.Config.URI == "" {
		r.setStatus(contract.RunStarting)
		r.launch(ctx, true, func(ctx workflow.Context) error {
			in := contract.OpenRunInput{Run: r.in.Run, Repository: r.in.Repository, Base: r.in.Base, Plan: r.in.Plan, PoolsFile: r.in.PoolsFile}
			return workflow.ExecuteActivity(withRepositoryOptions(ctx, "open "+r.in.Repository), repository.OpenRun, in).Get(ctx, &r.opened)
		}, func(_ workflow.Context, err error) {
			if err != nil && !r.stoppedByUs(err) {
				r.fail(fmt.Errorf("open run: %w", err))
			}
		})
		return
	}
	r.setStatus(contract.RunPreparing)
	r.launch(ctx, true, r.loadUnits, func(ctx workflow.Context, err error) {
		if err != nil && r.stoppedByUs(err) {
			return
		}
		if err != nil {
			r.fail(fmt.Errorf("load units: %w", err))
			return
		}
		r.budget.Cap = r.opened.Policy.Budget
		r.front = dispatch.NewFrontier(r.units, dispatch.FrontierOptions{FoldCase: r.opened.FoldCase})
		r.openedUnderLease(ctx)
		r.event(ctx, "opened at %s: %d nodes, %d gate commands", shortCommit(r.opened.BaseCommit), len(r.units), r.opened.Gate)
		r.stage = stageBaseline
	})
}

// loadUnits reads the units page by page and makes sure that every account has a broker.
func (r *remediation) loadUnits(ctx workflow.Context) error {
	if err := workflow.ExecuteActivity(withLightOptions(ctx, "start brokers"), service.EnsureBrokers, r.pools.accounts()).Get(ctx, nil); err != nil {
		return fmt.Errorf("start brokers: %w", err)
	}
	r.units = nil
	for offset := 0; ; {
		var page contract.LoadUnitsResult
		in := contract.LoadUnitsInput{Config: r.opened.Config, Offset: offset}
		if err := workflow.ExecuteActivity(withLightOptions(ctx, "load units"), repository.LoadUnits, in).Get(ctx, &page); err != nil {
			return err
		}
		r.units = append(r.units, page.Units...)
		if page.Next == 0 {
			return nil
		}
		offset = page.Next
	}
}

// fail closes the run because Mendflow itself could not go on.
func (r *remediation) fail(err error) { r.close(contract.RunFailed, oneLine(err.Error())) }

// close ends the run with a verdict; the report is still to be written.
func (r *remediation) close(status contract.RunStatus, reason string) {
	r.setStatus(contract.RunClosing)
	r.stage, r.verdict, r.reason = stageClose, status, reason
	r.dirty = true
}

func (r *remediation) event(ctx workflow.Context, format string, args ...any) {
	const kept = 20
	r.events = append(r.events, contract.Event{At: workflow.Now(ctx), Text: clip(fmt.Sprintf(format, args...), 300)})
	if n := len(r.events); n > kept {
		r.events = r.events[n-kept:]
	}
}

func (r *remediation) result() contract.RemediationResult {
	result := contract.RemediationResult{
		Run: r.in.Run, Status: r.status, Reason: r.reason, Branch: contract.RunBranch(r.in.Run),
	}
	if r.report != nil {
		result.HeadCommit, result.Report = r.report.Head, &r.report.Markdown
	}
	result.Publication = r.publicationView()
	return result
}

func shortCommit(commit string) string { return commit[:min(len(commit), 12)] }

// job is an activity (or a few in a row) that the main loop does not block on.
type job struct {
	interruptible bool
	cancel        workflow.CancelFunc
	stopped       bool // by a hold or a cancel
	done          bool
	err           error
	then          func(ctx workflow.Context, err error)
}

// launch starts the main line's job.
func (r *remediation) launch(ctx workflow.Context, interruptible bool, work func(workflow.Context) error, then func(workflow.Context, error)) {
	r.work = r.startJob(ctx, interruptible, work, then)
}

func (r *remediation) startJob(ctx workflow.Context, interruptible bool, work func(workflow.Context) error, then func(workflow.Context, error)) *job {
	jobCtx, cancel := workflow.WithCancel(ctx)
	j := &job{interruptible: interruptible, cancel: cancel, then: then}
	workflow.Go(jobCtx, func(ctx workflow.Context) {
		j.err = work(ctx)
		j.done, r.dirty = true, true
	})
	return j
}
