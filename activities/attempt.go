package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
)

// Attempt launches workers.
type Attempt struct {
	Host *Host
	Now  func() time.Time
	// Jitter gives a fraction from 0 to 1, so that pools do not all reopen at once.
	Jitter func() float64
	// Local is the zone in which programs on this host print times without one.
	Local *time.Location
}

// RunWorker prepares the attempt's tree, runs the worker in it and says how it
// ended. It has one try: the workflow decides what follows a lost host.
func (a *Attempt) RunWorker(ctx context.Context, in contract.NodeInput) (contract.WorkerEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "prepare")
	defer heart.end()
	heart.tell() // whoever takes over after our death has to know where we were
	if a.Host.drain.draining() {
		return a.Host.turnedAway(in), nil
	}
	ctx, stop := a.Host.untilStopped(ctx)
	defer stop()
	ctx, leave, err := a.turn(ctx, in)
	if err != nil {
		return contract.WorkerEnd{Host: a.Host.ID, Outcome: contract.OutcomeInterrupted, Reason: "stopped before it began"}, nil
	}
	defer leave()
	l := &launch{Attempt: a, in: in, heart: heart, end: contract.WorkerEnd{Host: a.Host.ID, StartedAt: a.Now().UTC()}}
	err = l.run(ctx)
	err = l.rec.survived(l.dir, err)
	l.end.Alive = stillAlive(err)
	if err != nil && ctx.Err() != nil { // a pause, a cancel or the host's own stop, before the worker ran
		l.interrupted()
		err = nil
	}
	if err != nil && l.tree != nil { // the tree has to be salvaged and released: that takes a result that names this host
		l.failed(err)
		err = nil
	}
	if l.end.Alive != "" {
		l.end.Kept = nil // nobody may work in a tree that somebody else may still write to
	}
	l.end.EndedAt, l.end.Stopping = a.Now().UTC(), hostStops(ctx)
	if err == nil && l.end.Landed == "" {
		a.Host.drain.owes(in)
	}
	return l.end, translate(ctx, err)
}

// turn waits until nothing of this attempt, or of the one that it continues, is at work on this host.
func (a *Attempt) turn(ctx context.Context, in contract.NodeInput) (context.Context, func(), error) {
	if in.Kept != nil {
		_, leave, err := a.Host.turns.take(ctx, in.Run, in.Node, in.Kept.Attempt)
		if err != nil {
			return ctx, nil, err
		}
		leave()
	}
	return a.Host.turns.take(ctx, in.Run, in.Node, in.Attempt)
}

// launch is one execution of RunWorker.
type launch struct {
	*Attempt
	in     contract.NodeInput
	heart  *heart
	opened *openRun
	node   plan.Node
	pool   contract.Pool
	dir    string
	rec    record
	tree   *gitrepo.Worktree
	bare   bool     // no sandbox of ours holds the program
	landed []string // findings of the node that landed in earlier openings
	end    contract.WorkerEnd
}

func (l *launch) run(ctx context.Context) error {
	var err error
	if l.opened, err = l.Host.run(ctx, l.in.Config); err != nil {
		return err
	}
	if l.node, _, err = l.opened.node(l.in.Node); err != nil {
		return err
	}
	if l.pool, err = l.Host.pool(l.opened, l.in); err != nil {
		return err
	}
	if landed, err := l.alreadyLanded(ctx); err != nil || landed {
		return err
	}
	if err := l.Host.Git.CheckSpace(l.Host.DiskFloor); err != nil {
		return fmt.Errorf("start attempt on %s: %w", l.Host.ID, err)
	}
	if err := l.prepare(ctx); err != nil {
		if errors.Is(err, errSetup) {
			return nil
		}
		return err
	}
	if l.in.Claim != nil {
		return l.offer(ctx)
	}
	if l.delivered() { // an interrupted attempt whose result is there goes on with landing
		l.end.Outcome, l.end.Delivered, l.end.ExitCode = contract.OutcomeSuccess, true, l.rec.Exit
		return nil
	}
	return l.work(ctx)
}

// alreadyLanded asks git, before anything runs, whether this opening is on the truth.
func (l *launch) alreadyLanded(ctx context.Context) (bool, error) {
	state, err := l.opened.mirror.State(ctx, l.in.Run, l.opened.config.BaseCommit)
	if err != nil {
		return false, fmt.Errorf("read truth: %w", err)
	}
	if state.BranchMoved() {
		return false, fmt.Errorf("check truth of %s: %w", l.in.Run, errBranchMoved)
	}
	if landing, ok := state.Landed(l.in.Node, l.in.Opening); ok {
		l.end.Outcome, l.end.Landed, l.end.Resolved = contract.OutcomeSuccess, landing.Commit, landing.Findings
		return true, nil
	}
	for _, landing := range state.Landings {
		if landing.Node == l.in.Node && landing.RevertedBy == "" {
			l.landed = append(l.landed, landing.Findings...)
		}
	}
	l.rec.Base = state.Truth
	return false, nil
}

// prepare takes the fence and brings the attempt's tree and folder about.
func (l *launch) prepare(ctx context.Context) error {
	l.rec.Attempt = gitrepo.Attempt{Run: l.in.Run, Node: l.in.Node, Opening: l.in.Opening, Number: l.in.Attempt, Findings: l.findings()}
	l.dir = l.Host.attemptDir(l.in.Run, l.in.Node, l.in.Attempt)
	for _, folder := range []string{"tmp", resultFolder} {
		if err := os.MkdirAll(filepath.Join(l.dir, folder), 0o700); err != nil {
			return fmt.Errorf("make attempt folder: %w", err)
		}
	}
	if err := l.openTree(ctx); err != nil {
		return err
	}
	l.heart.update(func(b *contract.Beat) { b.Tree = true })
	l.heart.tell() // from now on there is something to come back for
	if err := writeRecord(l.dir, l.rec); err != nil {
		return err
	}
	if l.rec.Started {
		return nil
	}
	l.heart.step("setup")
	return l.setup(ctx)
}

// openTree continues the kept tree where the attempt names one that is as it was left, else makes a fresh one.
func (l *launch) openTree(ctx context.Context) error {
	if l.in.Kept != nil {
		tree, fence, err := l.opened.mirror.Continue(ctx, gitrepo.Attempt{
			Run: l.in.Run, Node: l.in.Node, Opening: l.in.Opening, Number: l.in.Kept.Attempt,
		}, l.rec.Attempt)
		switch {
		case err == nil:
			l.tree, l.rec.Base, l.rec.Fence = tree, tree.Base(), fence.OID
			l.rec.Started = true // a worker was in it: what is there counts, also if this attempt dies at once
			return nil
		case !errors.Is(err, gitrepo.ErrNoWorktree) && !errors.Is(err, gitrepo.ErrOutOfPlace):
			return fmt.Errorf("continue tree of attempt %d: %w", l.in.Kept.Attempt, err)
		}
		l.end.Friction = append(l.end.Friction, contract.Friction{
			Type: contract.FrictionWorktreeMismatch, Discriminator: l.in.Node, Severity: "warning",
			Note: fmt.Sprintf("the tree of attempt %d is not as it was left (%v): the node starts clean", l.in.Kept.Attempt, err),
		})
		l.in.Kept = nil
	}
	fence, err := l.opened.mirror.SetFence(ctx, l.rec.Attempt)
	if err != nil {
		return fmt.Errorf("set fence: %w", err)
	}
	l.rec.Fence = fence.OID
	tree, err := l.opened.mirror.AddWorktree(ctx, l.rec.Attempt, l.rec.Base, gitrepo.WorktreeOptions{Sparse: sparsePatterns(l.node, l.opened.findings(l.rec.Attempt.Findings))})
	if err != nil {
		return fmt.Errorf("add worktree: %w", err)
	}
	l.tree, l.rec.Base = tree, tree.Base()
	return nil
}

// findings are the ones that this attempt works on.
func (l *launch) findings() []string {
	if len(l.in.Findings) > 0 {
		return l.in.Findings
	}
	_, unit, err := l.opened.node(l.in.Node)
	if err != nil {
		return l.node.Findings
	}
	return unit.Findings
}

// setup runs the plan's setup commands in a fresh tree.
func (l *launch) setup(ctx context.Context) error {
	for i, command := range l.opened.config.Plan.Setup {
		exit, err := l.Host.check(ctx, l.opened, checkRequest{
			Command: command, Dir: l.tree.Path(), Tree: l.tree.Path(),
			Mark:    fmt.Sprintf("%s/%s/%s/a%d/setup", l.Host.Mark(), l.in.Run, l.in.Node, l.in.Attempt),
			Timeout: time.Duration(l.opened.config.Plan.Policy.SetupMinutes) * time.Minute,
			Log:     fmt.Sprintf("runs/%s/nodes/%s/a%d/setup-%d.log", l.in.Run, l.in.Node, l.in.Attempt, i+1),
		})
		if err != nil {
			return fmt.Errorf("set up the tree: %w", err)
		}
		if exit.Code != 0 {
			l.end.Outcome, l.end.Cause = contract.OutcomeError, contract.CauseHost
			l.end.Reason = fmt.Sprintf("setup `%s` failed with exit code %d", command, exit.Code)
			l.end.Tail, l.end.Log = clipHead(exit.Tail, tailSize), exit.Log
			return errSetup
		}
	}
	return nil
}

// errSetup says that the end is filled in already.
var errSetup = errors.New("setup failed")

// tailSize bounds the tail of a failure in payloads.
const tailSize = 2000

func (l *launch) resultFile() string { return resultFile(l.dir) }

// failed says that this host, not the worker, ended the attempt.
func (l *launch) failed(err error) {
	l.end.Outcome, l.end.Cause, l.end.Reason = contract.OutcomeError, contract.CauseHost, oneLine(err.Error())
	switch typeOf(err) {
	case contract.ErrorSuperseded, contract.ErrorDiskFull, contract.ErrorWorktreeMissing: // nobody's fault
		l.end.Outcome, l.end.Cause = contract.OutcomeInterrupted, ""
	}
}

// interrupted says that the attempt was stopped and what it leaves.
func (l *launch) interrupted() {
	l.end.Outcome, l.end.Cause = contract.OutcomeInterrupted, ""
	if l.end.Reason == "" {
		l.end.Reason = "stopped during " + l.heart.now().Step
	}
	if l.tree != nil && !l.rec.Alive {
		l.end.Kept = &contract.Kept{
			Attempt: l.in.Attempt, Host: l.Host.ID, Pool: l.in.Pool, Session: l.rec.Session, Step: l.heart.now().Step,
		}
	}
}
