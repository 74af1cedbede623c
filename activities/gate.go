package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/gitrepo"
)

// Gate runs gate commands.
type Gate struct {
	Host *Host
}

// RunGate runs the gate in a throw-away tree of the commit, the truth when none
// is named. What an execution of the same round stored before it was killed counts.
func (a *Gate) RunGate(ctx context.Context, in contract.GateInput) (contract.GateEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "gate")
	defer heart.end()
	ctx, stop := a.Host.untilStopped(ctx)
	defer stop()
	began := time.Now()
	end, err := a.run(ctx, in, heart)
	if err != nil {
		err = &hostError{a.Host.ID, err}
	} else {
		activity.GetMetricsHandler(ctx).WithTags(map[string]string{contract.TagPurpose: in.Purpose, contract.TagVerdict: end.Verdict}).
			Timer(contract.MetricGate).Record(time.Since(began))
	}
	return end, translate(ctx, err)
}

func (a *Gate) run(ctx context.Context, in contract.GateInput, heart *heart) (contract.GateEnd, error) {
	var none contract.GateEnd
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return none, err
	}
	commit := in.Commit
	if commit == "" {
		state, err := a.truth(ctx, opened, in.Run)
		if err != nil {
			return none, err
		}
		commit = state.Truth
	}
	known := cacheKey(in.Run, in.Config, in.Purpose, fmt.Sprint(in.Round), commit)
	var result gate.Result
	if found, err := a.recall(ctx, known, &result); err != nil {
		return none, err
	} else if found {
		return a.keep(ctx, in, result)
	}
	baseline, err := a.stored(ctx, in.Base)
	if err != nil {
		return none, err
	}
	if baseline != nil && commit == baseline.Commit && baseline.Verdict == gate.VerdictGreen {
		return a.keep(ctx, in, *baseline) // nothing landed: what the base gave counts
	}
	request := gate.Request{
		Commands: opened.config.Gate, Commit: commit, All: in.Purpose == "baseline" && in.Baseline == "accept",
	}
	if in.Baseline == "accept" && in.Purpose != "baseline" {
		request.Baseline = baseline
	}
	a.Host.reach(PointGating)
	if result, err = a.judge(ctx, opened, fmt.Sprintf("%s-%d", in.Purpose, in.Round), request, heart); err != nil {
		return none, err
	}
	if err := a.remember(ctx, known, result); err != nil {
		return none, err
	}
	return a.keep(ctx, in, result)
}

// truth reads what the hub says about the run; foreign commits are an error.
func (a *Gate) truth(ctx context.Context, opened *openRun, run string) (gitrepo.RunState, error) {
	state, err := opened.mirror.State(ctx, run, opened.config.BaseCommit)
	if err != nil {
		return state, fmt.Errorf("read truth: %w", err)
	}
	if state.BranchMoved() {
		return state, fmt.Errorf("check truth of %s: %w", run, errBranchMoved)
	}
	return state, nil
}

// judge runs the request in a throw-away tree of its commit, set up as every tree of the run.
func (a *Gate) judge(ctx context.Context, opened *openRun, name string, request gate.Request, heart *heart) (result gate.Result, err error) {
	run := opened.config.Run
	tree, release, err := a.tree(ctx, opened, name, request.Commit)
	if err != nil {
		return gate.Result{}, err
	}
	defer func() { release(err == nil) }()
	root, err := os.OpenRoot(tree.Path())
	if err != nil {
		return gate.Result{}, fmt.Errorf("open tree of the gate: %w", err)
	}
	defer func() { _ = root.Close() }()
	runner := &gateRunner{host: a.Host, run: opened, tree: tree, heart: heart, mark: fmt.Sprintf("%s/%s/gate/%s", a.Host.Mark(), run, name)}
	for _, command := range opened.config.Plan.Setup {
		exit, err := runner.Run(ctx, gate.Job{Command: command, Timeout: time.Duration(opened.config.Plan.Policy.SetupMinutes) * time.Minute, Output: discard{}})
		if err != nil {
			return gate.Result{}, err
		}
		if exit.Code != 0 {
			return gate.Result{}, fmt.Errorf("set up the tree of the gate: `%s` failed with exit code %d", command, exit.Code)
		}
	}
	request.Root, request.Tree, request.Residual = tree.Path(), root.FS(), opened.config.GateResidual
	request.Timeout = time.Duration(opened.config.Plan.Policy.GateMinutes) * time.Minute
	request.OpenLog = func(ctx context.Context, log string) (gate.Log, error) {
		w, err := a.Host.Artifacts.Writer(ctx, fmt.Sprintf("runs/%s/gate/%s/%s.log", run, name, log), opened.masker)
		if err != nil {
			return nil, err
		}
		return &gateLog{w}, nil
	}
	return gate.Run(ctx, runner, request)
}

// tree checks a commit out under a name that no other execution of the activity
// uses, and gives up what killed ones left. The tree is released with whether all
// that worked in it was seen to end: only then is it recycled.
func (a *Gate) tree(ctx context.Context, opened *openRun, name, commit string) (tree *gitrepo.Worktree, release func(ended bool), err error) {
	run := opened.config.Run
	execution := int(activity.GetInfo(ctx).Attempt)
	for k := 1; k <= execution; k++ {
		if err := opened.mirror.ReleaseThrowaway(ctx, run, fmt.Sprintf("gate-%s-%d", name, k)); err != nil {
			a.Host.Log.Warn("release tree of a killed gate", "run", run, "error", err)
		}
	}
	tree, err = opened.mirror.ThrowawayWorktree(ctx, run, fmt.Sprintf("gate-%s-%d", name, execution), commit)
	if err != nil {
		return nil, nil, fmt.Errorf("check out %s: %w", commit, err)
	}
	return tree, func(ended bool) {
		if err := tree.Release(context.WithoutCancel(ctx), gitrepo.ReleaseOptions{Reusable: ended}); err != nil {
			a.Host.Log.Warn("release tree of the gate", "run", run, "error", err)
		}
	}, nil
}

// stored reads the baseline's full result.
func (a *Gate) stored(ctx context.Context, base *contract.GateEnd) (*gate.Result, error) {
	if base == nil || base.Result == nil {
		return nil, nil
	}
	data, err := a.Host.Artifacts.Get(ctx, base.Result.URI)
	if err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	var result gate.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	return &result, nil
}

// keep stores the full result and returns the bounded one.
func (a *Gate) keep(ctx context.Context, in contract.GateInput, result gate.Result) (contract.GateEnd, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return contract.GateEnd{}, fmt.Errorf("write gate result: %w", err)
	}
	ref, err := a.Host.Artifacts.Put(ctx, fmt.Sprintf("runs/%s/gate/%s-%d/result.json", in.Run, in.Purpose, in.Round), data)
	if err != nil {
		return contract.GateEnd{}, fmt.Errorf("store gate result: %w", err)
	}
	end := result.End()
	stored := reference(ref)
	end.Result = &stored
	return end, nil
}

// gateRunner runs gate commands as this host runs everything of a plan.
type gateRunner struct {
	host  *Host
	run   *openRun
	tree  *gitrepo.Worktree
	heart *heart
	mark  string
}

// Run implements gate.Runner.
func (g *gateRunner) Run(ctx context.Context, job gate.Job) (gate.Exit, error) {
	if err := g.tree.AssertInPlace(""); err != nil {
		return gate.Exit{}, err
	}
	g.heart.step("gate: " + clip(job.Command.String(), 100))
	end, err := g.host.check(ctx, g.run, checkRequest{
		Command: job.Command, Dir: filepath.Join(g.tree.Path(), job.Dir), Tree: g.tree.Path(),
		Mark: g.mark, Timeout: job.Timeout, Output: job.Output,
	})
	if err != nil {
		return gate.Exit{}, err
	}
	if end.Code == commandNotFound && end.Tail != "" {
		_, _ = fmt.Fprintln(job.Output, end.Tail) // a program that is missing says so in the log, as a shell does
	}
	return gate.Exit{Code: end.Code, TimedOut: end.TimedOut, Elapsed: end.Elapsed}, nil
}

// gateLog is an artifact that a gate command writes.
type gateLog struct{ *artifacts.Writer }

// Commit closes the log and refers to it.
func (l *gateLog) Commit(context.Context) (contract.Artifact, error) {
	ref, err := l.Finish()
	return contract.Artifact(ref), err
}

// Discard gives the log up.
func (l *gateLog) Discard() { l.Abort() }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

var _ gate.Runner = (*gateRunner)(nil)
