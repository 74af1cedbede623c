package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
)

// Level is one drive of a dependency level: it decides where the nodes that the
// run hands it are worked on, asks the brokers for slots and starts attempts.
// It never continues as new: a drive takes a bounded number of attempts.
func Level(root workflow.Context, in contract.LevelInput) error {
	// A cancel is an order to stop; what must happen then happens in a context that it does not reach.
	ctx, cancel := workflow.NewDisconnectedContext(root)
	defer cancel()
	l := &level{in: in, drive: dispatch.NewDrive(in), attempts: map[string]workflow.CancelFunc{}}
	l.attend(ctx, in.Pools)
	l.run = &outbox[contract.DriveReport]{
		target: contract.RemediationID(in.Run), signal: contract.SignalReport, merge: mergeReports,
		lost: func(ctx workflow.Context, _ contract.DriveReport, err error) {
			workflow.GetLogger(ctx).Warn("the run has closed", "error", err)
			l.orphan, l.dirty = true, true
		},
	}
	l.inbox.on(ctx, contract.SignalOrder, func(p *commonpb.Payload) { l.obey(ctx, p) })
	l.inbox.on(ctx, contract.SignalGrants, func(p *commonpb.Payload) { l.receive(ctx, p) })
	if err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.LevelStatus, error) {
		return l.drive.Status(), nil
	}); err != nil {
		return fmt.Errorf("register query: %w", err)
	}
	if err := workflow.SetQueryHandler(ctx, contract.QueryExplain, func(node string) ([]contract.PoolReason, error) {
		reasons, _ := l.drive.Explain(node, workflow.Now(ctx))
		return reasons, nil
	}); err != nil {
		return fmt.Errorf("register query: %w", err)
	}
	l.lease(in.Lease)
	if in.Sealed {
		l.drive.Seal()
	}
	return l.loop(root, ctx)
}

type level struct {
	in       contract.LevelInput
	drive    *dispatch.Drive
	inbox    inbox
	alarm    alarm
	run      *outbox[contract.DriveReport]
	brokers  []*brokerLink // in order of the first message
	attempts map[string]workflow.CancelFunc
	running  []string // tickets under way, oldest first
	leaving  int      // kept trees that are being released
	ended    []contract.AttemptResult
	orders   int  // Seq of the last order taken
	reports  int  // Seq of the last report
	told     int  // orders that the last drained report knew
	orphan   bool // the run has closed: nobody to report to
	stop     contract.StopMode
	dirty    bool
}

func (l *level) loop(root, ctx workflow.Context) error {
	for {
		l.dirty = false
		l.inbox.drain()
		l.alarm.ring()
		if root.Err() != nil || l.orphan {
			l.halt(contract.StopCancel)
		}
		now := workflow.Now(ctx)
		for _, result := range l.ended {
			l.drive.Ended(result, now)
			if result.Recovery != "" { // nothing may go on: the run is told by what comes back
				l.halt(contract.StopFinish)
			}
		}
		l.ended = nil
		actions := l.drive.Decide(now)
		l.carryOut(ctx, actions)
		l.describe(ctx)
		if l.over() {
			return nil
		}
		at := actions.Wake
		if next := l.remind(ctx, now); at.IsZero() || !next.IsZero() && next.Before(at) {
			at = next
		}
		l.alarm.set(ctx, at, "a pool may be tried again")
		if err := wait(ctx, &l.alarm, func() bool {
			return l.dirty || l.inbox.pending() || len(l.ended) > 0 || root.Err() != nil && l.stop != contract.StopCancel || l.over()
		}); err != nil {
			return err
		}
	}
}

// over reports whether the drive has drained and everything was told.
func (l *level) over() bool {
	if !l.drive.Drained() || len(l.running) > 0 || l.leaving > 0 || len(l.ended) > 0 || l.inbox.pending() || l.dirty {
		return false
	}
	for _, link := range l.brokers {
		if !link.idle() {
			return false
		}
	}
	return l.run.idle()
}

// obey takes an order of the run. A repeated one changes nothing.
func (l *level) obey(ctx workflow.Context, payload *commonpb.Payload) {
	order, err := decode[contract.DriveOrder](payload)
	if err != nil {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalOrder, "error", err)
		return
	}
	if order.Seq <= l.orders {
		return
	}
	l.orders = order.Seq
	if order.Pools != nil {
		l.attend(ctx, order.Pools)
		l.drive.SetPools(order.Pools)
		l.in.Recomposed = true
	}
	l.lease(order.Lease)
	l.drive.Admit(order.Nodes)
	l.claims(ctx, order.Claims)
	if order.Seal {
		l.drive.Seal()
	}
	if order.Stop != "" {
		l.halt(order.Stop)
	}
}

func (l *level) lease(lease *contract.Lease) {
	if lease != nil {
		l.drive.SetLease(dispatch.Lease(*lease))
	}
}

// halt ends the drive early; interrupting modes cancel the running attempts.
func (l *level) halt(mode contract.StopMode) {
	if l.stop == mode || l.stop == contract.StopCancel {
		return
	}
	l.stop = mode
	l.drive.Stop(mode)
	if mode == contract.StopFinish {
		return
	}
	for _, ticket := range l.running {
		l.attempts[ticket]()
	}
}

// receive takes a broker's message and starts what it granted.
func (l *level) receive(ctx workflow.Context, payload *commonpb.Payload) {
	grants, err := decode[contract.Grants](payload)
	if err != nil {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalGrants, "error", err)
		return
	}
	l.heard(ctx, grants)
	for _, launch := range l.drive.Receive(grants, workflow.Now(ctx)) {
		l.launch(ctx, launch)
	}
}

// launch starts an attempt as a child workflow.
func (l *level) launch(ctx workflow.Context, launch dispatch.Launch) {
	in := launch.Input
	in.Limits = l.in.Policy.Limits
	if l.in.Recomposed { // else the configuration has it; a command line would be four times in the history
		in.Definition = &launch.Pool
	}
	attemptCtx, cancel := workflow.WithCancel(withNodeOptions(ctx, in))
	l.attempts[launch.Ticket] = cancel
	l.running = append(l.running, launch.Ticket)
	if launch.Leaves != nil {
		l.leave(ctx, in, *launch.Leaves)
	}
	started := workflow.Now(ctx)
	child := workflow.ExecuteChildWorkflow(attemptCtx, contract.WorkflowNode, in)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var result contract.AttemptResult
		if err := child.Get(ctx, &result); err != nil {
			result = contract.AttemptResult{
				Node: in.Node, Opening: in.Opening, Attempt: in.Attempt, Pool: in.Pool,
				Outcome: contract.OutcomeInterrupted, Reason: oneLine(err.Error()), Kept: in.Kept,
			}
			if child.GetChildWorkflowExecution().Get(ctx, nil) == nil { // it did start: what it used and left is unknown
				result.StartedAt, result.EndedAt, result.Kept = started, workflow.Now(ctx), nil
			}
		}
		l.running = slices.DeleteFunc(l.running, func(t string) bool { return t == launch.Ticket })
		delete(l.attempts, launch.Ticket)
		l.ended = append(l.ended, result)
	})
}

// leave salvages and releases the tree of an attempt that is not continued.
func (l *level) leave(ctx workflow.Context, in contract.NodeInput, kept contract.Kept) {
	in.Attempt, in.Pool, in.Kept = kept.Attempt, kept.Pool, nil
	l.leaving++
	workflow.Go(ctx, func(ctx workflow.Context) {
		actx := withGitOptions(ctx, kept.Host, 30, fmt.Sprintf("release the kept tree %s a%d", in.Node, kept.Attempt))
		if err := workflow.ExecuteActivity(actx, landing.ReleaseWorktree, contract.ReleaseInput{NodeInput: in}).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("release kept tree", "node", in.Node, "attempt", kept.Attempt, "error", err)
		}
		l.leaving--
	})
}

// carryOut sends what the drive decided.
func (l *level) carryOut(ctx workflow.Context, actions dispatch.Actions) {
	for _, m := range actions.Messages {
		l.link(ctx, m.Account).send(ctx, m.Tickets)
	}
	for _, report := range actions.Reports {
		l.report(ctx, report)
	}
	if l.drive.Drained() && l.told < l.orders {
		// An order crossed the drained report: say again that this is the end, with that order seen.
		l.report(ctx, contract.DriveReport{Drive: l.in.Drive, Drained: true})
	}
}

// report numbers a message to the run and sends it.
func (l *level) report(ctx workflow.Context, report contract.DriveReport) {
	l.reports++
	report.Seq, report.Orders = l.reports, l.orders
	if report.Drained {
		l.told = l.orders
	}
	l.run.send(ctx, report)
}

func mergeReports(older, newer contract.DriveReport) (contract.DriveReport, bool) {
	merged := newer
	merged.Settled = append(slices.Clone(older.Settled), newer.Settled...)
	merged.Stranded = append(slices.Clone(older.Stranded), newer.Stranded...)
	merged.Friction = append(slices.Clone(older.Friction), newer.Friction...)
	merged.Pools = append(slices.Clone(older.Pools), newer.Pools...)
	merged.Claims = append(slices.Clone(older.Claims), newer.Claims...)
	return merged, fits(merged)
}

// describe shows the drive in the Web UI.
func (l *level) describe(ctx workflow.Context) {
	s := l.drive.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "**level %d, drive %d** of `%s`\n\n", l.in.Depth, l.in.Drive, l.in.Run)
	if len(s.Running) > 0 {
		b.WriteString("| node | attempt | pool | since |\n|---|---|---|---|\n")
		for _, n := range s.Running {
			fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", n.Node, n.Attempt, n.Pool, n.StartedAt.UTC().Format(time.TimeOnly))
		}
	}
	if len(s.Waiting) > 0 {
		fmt.Fprintf(&b, "\nWaiting for a slot: %s\n", clip(strings.Join(s.Waiting, ", "), 2000))
	}
	for _, p := range s.Pools {
		fmt.Fprintf(&b, "\n- pool %s: %s %s, %d of %d", p.ID, p.State, p.Reason, p.Running, p.Max)
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
