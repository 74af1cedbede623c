package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// Landing lands what workers left, and releases their trees.
type Landing struct {
	Host *Host
}

// lostRaces is how many landings may lose before the host's landing lock is taken.
const lostRaces = 3

// LandWork judges a worker's end: commit, scope, merge, verification, landing.
// Every step looks at git first, so that it may be repeated after a crash anywhere.
func (a *Landing) LandWork(ctx context.Context, in contract.LandInput) (contract.LandEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "collect")
	defer heart.end()
	ctx, stop := a.Host.untilStopped(ctx)
	defer stop()
	ctx, leave, err := a.Host.turns.take(ctx, in.Run, in.Node, in.Attempt)
	if err != nil {
		return contract.LandEnd{Outcome: contract.OutcomeInterrupted, Reason: "stopped before it began"}, nil
	}
	defer leave()
	l := &lander{Landing: a, in: in, heart: heart}
	err = l.run(ctx)
	if err != nil && ctx.Err() != nil {
		l.end = contract.LandEnd{Outcome: contract.OutcomeInterrupted, Reason: "stopped during " + heart.now().Step, Alive: stillAlive(err)}
		err = nil
	}
	if err == nil && l.end.Commit != "" {
		l.giveUpTree(context.WithoutCancel(ctx))
	}
	if l.end.Released {
		a.Host.drain.paid(in.NodeInput)
	}
	l.end.Stopping = l.end.Commit == "" && hostStops(ctx)
	return l.end, translate(ctx, err)
}

// lander is one execution of LandWork.
type lander struct {
	*Landing
	in     contract.LandInput
	heart  *heart
	opened *openRun
	node   plan.Node
	unit   plan.Unit
	dir    string
	rec    record
	tree   *gitrepo.Worktree
	scope  *plan.Scope
	work   gitrepo.Work
	ended  run.Ended
	end    contract.LandEnd
}

func (l *lander) run(ctx context.Context) error {
	err := l.open(ctx)
	if l.rec.Landed != nil && (err == nil || errors.Is(err, gitrepo.ErrNoWorktree)) {
		l.end = *l.rec.Landed
		return nil
	}
	if err != nil {
		return err
	}
	state, err := l.opened.mirror.State(ctx, l.in.Run, l.opened.config.BaseCommit)
	if err != nil {
		return fmt.Errorf("read truth: %w", err)
	}
	if err := l.collect(ctx); err != nil {
		return err
	}
	step := run.Before(l.ended)
	if landing, ok := state.Landed(l.in.Node, l.in.Opening); ok && step.Final == nil {
		// Crashed between landing and record, or another attempt was first: git decides.
		judgement := run.After(l.ended, run.Checked{Verify: run.VerifyGreen})
		l.finish(judgement)
		l.end.Commit, l.end.VerifiedOn, l.end.LandedOn = landing.Commit, landing.Parent, landing.Parent
		return nil
	}
	switch {
	case step.Final != nil:
		l.finish(*step.Final)
	case step.Land:
		return l.land(ctx, state, step)
	default:
		return l.verifyTruth(ctx, state, step)
	}
	return nil
}

func (l *lander) open(ctx context.Context) error {
	if err := l.find(ctx); err != nil {
		return err
	}
	if !l.rec.Started {
		return fmt.Errorf("open worktree: no worker was started in it: %w", gitrepo.ErrNoWorktree)
	}
	return nil
}

// find opens the attempt's tree, with what is recorded of the attempt; an attempt
// that was killed early has a tree and no record of its own yet.
func (l *lander) find(ctx context.Context) error {
	var err error
	if l.opened, err = l.Host.run(ctx, l.in.Config); err != nil {
		return err
	}
	if l.node, l.unit, err = l.opened.node(l.in.Node); err != nil {
		return err
	}
	l.scope = plan.CompileScope(l.node.Write, l.opened.config.FoldCase)
	l.dir = l.Host.attemptDir(l.in.Run, l.in.Node, l.in.Attempt)
	l.rec, err = readRecord(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.rec.Attempt = gitrepo.Attempt{Run: l.in.Run, Node: l.in.Node, Opening: l.in.Opening, Number: l.in.Attempt}
	} else if err != nil {
		return err
	}
	if l.tree, err = l.opened.mirror.OpenWorktree(ctx, l.rec.Attempt); err != nil {
		return fmt.Errorf("open worktree: %w", err)
	}
	return nil
}

// giveUpTree releases the tree of what has landed: an activity of its own would
// cost more than the release does. Where it does not come as far, Released stays
// false and the workflow asks for the release.
func (l *lander) giveUpTree(ctx context.Context) {
	l.heart.step("release")
	if l.rec.Landed == nil {
		landed := l.end
		l.rec.Landed = &landed
		if err := writeRecord(l.dir, l.rec); err != nil {
			l.Host.Log.Warn("record landing", "attempt", l.rec.Attempt, "error", err)
			return
		}
	}
	if l.tree != nil { // nil: an earlier execution came as far
		if err := l.tree.Release(ctx, l.rec.release()); err != nil {
			l.end.Left = "not removed: " + oneLine(err.Error())
		}
	}
	l.end.Released = true
}

// collect computes from git what the worker left, and reads what it said.
func (l *lander) collect(ctx context.Context) error {
	var err error
	if l.work, err = l.tree.Collect(ctx, l.gitScope()); err != nil {
		return fmt.Errorf("collect work: %w", err)
	}
	l.ended = run.Ended{
		Node: l.in.Node, Opening: l.in.Opening, Findings: l.opened.findings(l.rec.Attempt.Findings),
		Command: l.command(), ExitCode: l.rec.Exit, Changed: l.work.Paths(),
	}
	result, friction, err := readResult(resultFile(l.dir), l.rec.Attempt.Findings)
	l.ended.Invalid = l.mask(result, friction, err)
	l.ended.Result = result
	l.end.Friction = append(l.end.Friction, friction...)
	return nil
}

// command reports whether the pool's program is a plain command, of which no result is expected.
func (l *lander) command() bool {
	pool, err := l.Host.pool(l.opened, l.in.NodeInput)
	if err != nil {
		return false
	}
	adapter, err := l.Host.Providers.Lookup(pool.Provider)
	return err == nil && !adapter.About().Agent
}

func (l *lander) gitScope() gitrepo.Scope {
	if l.scope.Exclusive() {
		return gitrepo.Scope{}
	}
	return gitrepo.Scope{Has: l.scope.Match, Ignored: l.scope.Match, Literal: l.scope.NamesLiterally}
}

// land commits, checks the scope, merges, verifies and lands.
func (l *lander) land(ctx context.Context, state gitrepo.RunState, step run.Step) error {
	var checked run.Checked
	changes := make([]run.Change, len(l.work.Changes))
	for i, c := range l.work.Changes {
		changes[i] = run.Change{Path: c.Path, Bytes: c.Size}
	}
	checked.Scope = run.CheckScope(changes, l.rules(state))
	l.Host.reach(PointScope)
	if len(checked.Scope.Refused) > 0 {
		return l.salvage(ctx, run.After(l.ended, checked))
	}
	commit, err := l.tree.Commit(ctx, gitrepo.CommitRequest{
		Attempt: l.rec.Attempt, Work: l.work, Message: l.message(), When: l.opened.config.OpenedAt,
	})
	if err != nil {
		return fmt.Errorf("commit work: %w", err)
	}
	return l.landCommit(ctx, state.Truth, commit, step, checked)
}

// landCommit merges, verifies and lands, again and again while others are faster.
func (l *lander) landCommit(ctx context.Context, truth string, commit gitrepo.Commit, step run.Step, checked run.Checked) error {
	verified := "" // the tree that verification passed on
	for race := 0; ; race++ {
		l.heart.step("merge")
		merged, err := l.opened.mirror.Merge(ctx, gitrepo.MergeRequest{
			Truth: truth, Base: l.tree.Base(), Commit: commit, SharedAppend: l.sharedAppend,
		})
		if err != nil {
			return fmt.Errorf("merge work: %w", err)
		}
		if checked.Conflicts = merged.Conflicts; !merged.Clean {
			return l.salvage(ctx, run.After(l.ended, checked))
		}
		if verified == "" || merged.Tree != verified && l.mustVerifyAgain(ctx, truth) {
			if err := l.verify(ctx, truth, merged, commit, step, &checked); err != nil {
				return err
			}
			verified, l.end.VerifiedOn = merged.Tree, truth
		}
		judgement := run.After(l.ended, checked)
		if !judgement.Land {
			return l.salvage(ctx, judgement)
		}
		done, next, err := l.swap(ctx, truth, merged.Tree, judgement, race >= lostRaces)
		if err != nil || done {
			return err
		}
		truth = next
	}
}

// mustVerifyAgain reports whether a moved truth makes the earlier verification
// void: under the strict policy always, else when what landed meanwhile touches
// paths of this node.
func (l *lander) mustVerifyAgain(ctx context.Context, truth string) bool {
	if l.opened.config.Plan.Policy.Landing == plan.LandingStrict {
		return true
	}
	moved, err := l.opened.mirror.ChangedPaths(ctx, l.end.VerifiedOn, truth)
	if err != nil {
		return true
	}
	ours := make(map[string]bool, len(l.work.Changes))
	for _, c := range l.work.Changes {
		ours[c.Path] = true
	}
	for _, path := range moved {
		if ours[path] || !l.scope.Exclusive() && l.scope.Match(path) {
			return true
		}
	}
	return false
}

// swap puts the tree on the truth; nothing interrupts it.
func (l *lander) swap(ctx context.Context, truth, tree string, judgement run.Judgement, locked bool) (done bool, next string, err error) {
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	l.heart.step("transaction")
	calm := context.WithoutCancel(ctx)
	if locked {
		unlock, err := l.Host.Git.LandingLock(calm, l.opened.mirror)
		if err != nil {
			return false, "", fmt.Errorf("take landing lock: %w", err)
		}
		defer unlock()
	}
	attempt := l.rec.Attempt
	attempt.Findings = resolved(judgement.Items) // what the commit repairs, for whoever finds it without our record
	landed, err := l.opened.mirror.Land(calm, gitrepo.LandRequest{
		Attempt: attempt, Fence: gitrepo.Fence{Attempt: l.rec.Attempt, OID: l.rec.Fence},
		Base: l.opened.config.BaseCommit, ExpectTruth: truth, Tree: tree, Message: l.message(), When: l.opened.config.OpenedAt,
	})
	if err != nil {
		return false, "", fmt.Errorf("land: %w", err)
	}
	switch landed.Status {
	case gitrepo.Landed:
		l.Host.reach(PointBeforeRecord)
		l.finish(judgement)
		l.end.Commit, l.end.LandedOn = landed.Commit, truth
		return true, "", nil
	case gitrepo.LostRace:
		return false, landed.Truth, nil
	case gitrepo.Fenced:
		return false, "", fmt.Errorf("land %s: %w", l.rec.Attempt, gitrepo.ErrFenced)
	default:
		return false, "", fmt.Errorf("land %s: %w", l.rec.Attempt, errBranchMoved)
	}
}

// resolved names the findings that were repaired.
func resolved(items []contract.ItemResult) []string {
	var ids []string
	for _, item := range items {
		if item.Status.VerifiedComplete() {
			ids = append(ids, item.Finding)
		}
	}
	return ids
}

// finish takes a judgement over into the result.
func (l *lander) finish(j run.Judgement) {
	friction := append(l.end.Friction, j.Friction...)
	verified, verify, salvage := l.end.VerifiedOn, l.end.Verify, l.end.Salvage
	l.end = contract.LandEnd{
		Outcome: j.Outcome, Cause: j.Cause, Reason: clip(l.whereabouts(j.Reason), 500), State: j.State, Items: boundItems(j.Items),
		Unverified: j.Unverified, Tail: clipHead(j.Tail, tailSize), Friction: friction,
		VerifiedOn: verified, Verify: verify, Salvage: salvage,
	}
	const paths = 20
	all := l.work.Paths()
	l.end.Paths = all[:min(len(all), paths)]
}

// salvage keeps what does not land before anything else happens to it.
func (l *lander) salvage(ctx context.Context, j run.Judgement) error {
	l.finish(j)
	if j.Tree != run.TreeSalvaged || l.end.Salvage != "" {
		return nil
	}
	l.heart.step("salvage")
	kept, err := l.tree.Salvage(ctx, l.gitScope(), l.opened.config.OpenedAt)
	if err != nil {
		return fmt.Errorf("salvage work: %w", err)
	}
	l.end.Salvage = kept.Ref
	return nil
}

// message is the commit's subject and body; git adds the trailers.
func (l *lander) message() string {
	subject := l.in.Node
	findings := l.ended.Findings
	if len(findings) > 0 {
		subject += ": " + findings[0].Title
		if len(findings) > 1 {
			subject += fmt.Sprintf(" (and %d more)", len(findings)-1)
		}
	}
	body := ""
	for _, f := range findings {
		body += fmt.Sprintf("\n- %s (%s): %s", f.ID, f.Severity, f.Title)
	}
	if l.ended.Result != nil && l.ended.Result.Summary != "" {
		body += "\n\n" + clip(l.ended.Result.Summary, 1000)
	}
	return clip(subject, 100) + "\n" + body
}

// verifyTimeout bounds one verify command.
func (l *lander) verifyTimeout() time.Duration {
	return time.Duration(l.opened.config.Plan.Policy.VerifyMinutes) * time.Minute
}
