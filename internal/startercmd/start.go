package startercmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
)

// startOptions are the flags of `starter start`.
type startOptions struct {
	repo, plan, pools, id, base string
	wait, watch, detach         bool
	noHold, partial             bool
	again, parallel, queue      bool
	priority                    int
	uncommitted                 bool
	diskFloor                   uint64 // MiB
}

func (a *app) startCommand() *cobra.Command {
	var o startOptions
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a run: repair a repository by a plan",
		Long: "Start a run. The plan and the pools are checked first; every fault is reported at once and nothing starts.\n" +
			"The scheduler then decides: the run starts, or waits in the queue until a slot is free and no other run works on\n" +
			"the same repository and base. What it does not take at all is not stored, and exits 1 with the reason.\n" +
			"Exit codes: 0 done (with --wait or --watch: green), 2 invalid input, 3 closed and not green, 4 held (--no-hold), 5 no server.",
		Example: "  starter start --repo . --plan plan.yaml --pools pools.yaml --watch\n  starter start --repo . --plan plan.yaml --pools pools.yaml --wait --json\n  starter start --repo . --plan plan.yaml --pools pools.yaml --again --queue",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.start(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.repo, "repo", "", "repository to repair, a path or a URL")
	flags.StringVar(&o.plan, "plan", "", "plan file")
	flags.StringVar(&o.pools, "pools", "", "pools file")
	flags.StringVar(&o.id, "id", "", "id of the run (default: made of plan and repository)")
	flags.StringVar(&o.base, "base", "", "revision to start from (default: the plan's, else the repository's default branch)")
	flags.BoolVar(&o.wait, "wait", false, "wait for the end")
	flags.BoolVar(&o.watch, "watch", false, "follow the run to its end")
	flags.BoolVar(&o.detach, "detach", false, "return at once (the default)")
	flags.BoolVar(&o.noHold, "no-hold", false, "with --wait or --watch: end with exit code 4 when the run is paused")
	flags.BoolVar(&o.partial, "allow-partial", false, "carry the plan's closing action out although findings are left")
	flags.BoolVar(&o.again, "again", false, "start once more although this plan ran on this repository before")
	flags.BoolVar(&o.parallel, "parallel", false, "work beside other runs on the same repository and base, instead of behind them")
	flags.BoolVar(&o.queue, "queue", false, "wait while the scheduler takes no runs (it drains, is disabled, or its queue is full)")
	flags.IntVar(&o.priority, "priority", 0, "place among the runs that wait: lower goes first")
	flags.BoolVar(&o.uncommitted, "include-uncommitted", false, "start from the checkout as it is: tracked and untracked files, but none that is ignored, .env* or a key")
	flags.Uint64Var(&o.diskFloor, "disk-floor", gitrepo.DiskFloor>>20, "start nothing while fewer MiB are free in the state folder")
	cmd.MarkFlagsMutuallyExclusive("wait", "watch", "detach")
	cmd.MarkFlagsMutuallyExclusive("base", "include-uncommitted")
	for _, name := range []string{"repo", "plan", "pools"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// started is what `starter start --json` prints.
type started struct {
	Run        string             `json:"run"`
	WorkflowID string             `json:"workflow_id"`
	Decision   string             `json:"decision"` // started | queued | duplicate | deferred | rejected
	Branch     string             `json:"branch"`
	Cause      string             `json:"cause,omitempty"`    // of deferred and rejected
	Behind     string             `json:"behind,omitempty"`   // of queued: the run that works on the same repository and base
	Position   int                `json:"position,omitempty"` // of queued
	Status     contract.RunStatus `json:"status,omitempty"`   // with --wait: how it closed
	Reason     string             `json:"reason,omitempty"`   // why it waits or is not admitted; with --wait, how it closed
	HeadCommit string             `json:"head_commit,omitempty"`
	Report     *contract.Artifact `json:"report,omitempty"`

	Publication *contract.PublicationView `json:"publication,omitempty"`
}

func (a *app) start(ctx context.Context, o startOptions) error {
	if err := a.checkSpace(o.diskFloor << 20); err != nil {
		return err
	}
	if err := a.takeSnapshot(ctx, &o); err != nil {
		return err
	}
	p, _, warnings, err := a.readPlan(ctx, o.plan, o.repo, o.base)
	pools, poolsErr := a.readPools(o.pools) // faults of both files are told at once
	if err != nil {
		return err
	}
	if poolsErr != nil {
		return poolsErr
	}
	if a.snap != nil && p.Base != "" {
		return usage("start run: the plan names a base, %s, and --include-uncommitted starts from the checkout: leave one of them out", p.Base)
	}
	if o.id != "" {
		if err := plan.CheckID(o.id); err != nil {
			return usage("read --id: %w", err)
		}
	}
	for _, w := range warnings {
		fmt.Fprintln(a.Err, w)
	}
	hub, err := gitrepo.ResolveHub(ctx, o.repo)
	if err != nil {
		return usage("open repository %s: %w", o.repo, err)
	}
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	input := contract.RemediationInput{
		Repository: hub.Canonical, Base: o.base, RequestedBy: operatorName(), RequestedAt: time.Now().UTC(),
		AllowPartial: o.partial,
		Pools:        slices.DeleteFunc(slices.Clone(pools.Pools), func(pool contract.Pool) bool { return slices.Contains(pools.Exclude, pool.ID) }),
	}
	if err := a.checkServed(ctx, c, input.Pools); err != nil {
		return err
	}
	base, err := a.baseKey(ctx, p, hub, o)
	if err != nil {
		return err
	}
	answer, err := a.admit(ctx, c, p, pools, input, contract.Submission{
		By: input.RequestedBy, Plan: p.ID, Repository: hub.Canonical, Base: base, ID: o.id,
		Again: o.again, Parallel: o.parallel, Priority: o.priority,
	}, o)
	if err != nil {
		return err
	}
	told, err := a.sayDecision(answer)
	if err != nil {
		return err
	}
	return a.follow(ctx, c, told, o)
}

// admit names the run and submits it; when another start took the generation
// meanwhile, the next one is tried.
func (a *app) admit(ctx context.Context, c client.Client, p *plan.Plan, pools *contract.PoolsFile, input contract.RemediationInput, s contract.Submission, o startOptions) (contract.Submitted, error) {
	const tries = 5
	for try := 1; ; try++ {
		chosen, refusal, err := a.chooseRun(ctx, c, s)
		if err != nil {
			return contract.Submitted{}, err
		}
		if refusal != nil {
			return *refusal, nil
		}
		input.Run, s.Run, s.Generation = chosen.run, chosen.run, chosen.generation
		answer, err := a.submit(ctx, c, p, pools, input, s, o.queue)
		if err != nil || !o.again || answer.Cause != contract.RejectedGenerationUsed || try == tries {
			return answer, err
		}
	}
}

// baseKey is what two runs must not work on at once beside the repository: the
// branch that the base names, or its commit where it names none.
func (a *app) baseKey(ctx context.Context, p *plan.Plan, hub gitrepo.Hub, o startOptions) (string, error) {
	mirror, err := a.openMirrorFor(ctx, hub, p)
	if err != nil {
		return "", err
	}
	base := cmp.Or(o.base, p.Base)
	if a.snap != nil { // what is not committed belongs to what is checked out
		base = ""
	}
	branch, err := mirror.BranchNamed(ctx, base)
	if err != nil || branch != "" {
		return branch, err
	}
	return mirror.ResolveBase(ctx, base)
}

// checkServed refuses to start what no worker would ever take.
func (a *app) checkServed(ctx context.Context, c client.Client, pools []contract.Pool) error {
	var missing []string
	for deadline := time.Now().Add(servedPatience); ; {
		var err error
		if missing, err = unserved(ctx, c, pools); err != nil {
			return err
		}
		if len(missing) < len(pools) || time.Now().After(deadline) {
			break
		}
		select { // a worker that was started a moment ago is not seen yet
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
	switch {
	case len(missing) == len(pools):
		return fmt.Errorf("start run: no worker serves any of the pools %v: start one with `worker --pools FILE` or `starter dev --pools FILE`", missing)
	case len(missing) > 0:
		fmt.Fprintf(a.Err, "starter: no worker serves the pools %v now; their attempts will wait for one\n", missing)
	}
	return nil
}

// servedPatience is how long a start waits for a first worker to show up.
const servedPatience = 5 * time.Second

// unserved are the pools whose queue nobody polls.
func unserved(ctx context.Context, c client.Client, pools []contract.Pool) ([]string, error) {
	var missing []string
	for _, p := range pools {
		described, err := c.DescribeTaskQueue(ctx, contract.PoolQueue(p.ID), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return nil, fmt.Errorf("look for workers of pool %s: %w", p.ID, err)
		}
		if len(described.GetPollers()) == 0 {
			missing = append(missing, p.ID)
		}
	}
	return missing, nil
}

// storeInputs puts plan and pools into the artifact store, and what the scheduler starts the run with.
func (a *app) storeInputs(ctx context.Context, input *contract.RemediationInput, p *plan.Plan, pools *contract.PoolsFile) (contract.Artifact, error) {
	var stored contract.Artifact
	store, err := a.store(ctx)
	if err != nil {
		return stored, err
	}
	defer func() { _ = store.Close() }()
	put := func(name string, value any, to *contract.Artifact) error {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		ref, err := store.Put(ctx, "runs/"+input.Run+"/"+name, data)
		if err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		ref.Tail = ""
		*to = contract.Artifact(ref)
		return nil
	}
	if err := put("plan.json", p, &input.Plan); err != nil {
		return stored, err
	}
	if err := put("pools.json", pools, &input.PoolsFile); err != nil {
		return stored, err
	}
	err = put("input.json", contract.StoredRun{Input: *input, Plan: p.ID, Goal: p.Goal, Nodes: len(p.Nodes)}, &stored)
	return stored, err
}

// follow does what the flags ask for once the run is admitted.
func (a *app) follow(ctx context.Context, c client.Client, told started, o startOptions) error {
	switch {
	case o.watch:
		return a.watch(ctx, c, told.Run, o.noHold)
	case o.wait && o.noHold:
		return a.waitNoHold(ctx, c, told.Run, told)
	case o.wait:
		return a.waitClosed(ctx, c, told)
	case a.json:
		return json.NewEncoder(a.Out).Encode(told)
	}
	fmt.Fprintf(a.Out, "watch it with: starter watch %s\n", told.Run)
	return nil
}

// waitClosed waits for the end of a run.
func (a *app) waitClosed(ctx context.Context, c client.Client, told started) error {
	never, err := a.awaitBegun(ctx, c, told.Run)
	if err != nil {
		return err
	}
	if never != nil {
		return a.sayClosed(ctx, told, contract.RemediationResult{Run: told.Run, Status: never.Status, Reason: never.Reason})
	}
	var result contract.RemediationResult
	if err := c.GetWorkflow(ctx, told.WorkflowID, "").Get(ctx, &result); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "stopped waiting; the run goes on: starter watch %s\n", told.Run)
			return exit(ExitInterrupted)
		}
		return fmt.Errorf("wait for run %s: %w", told.Run, err)
	}
	return a.sayClosed(ctx, told, result)
}

// waitNoHold waits for the end or for a hold, whichever is first.
func (a *app) waitNoHold(ctx context.Context, c client.Client, run string, told started) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		v, err := view(ctx, c, run)
		switch {
		case ctx.Err() != nil:
			return exit(ExitInterrupted)
		case err != nil && !errors.Is(err, errNoWorker):
			return err
		case err == nil && stands(v.Status):
			for _, h := range v.Holds {
				fmt.Fprintf(a.Err, "held by %s\n", holdLine(h))
			}
			return exit(ExitHeld)
		case err == nil && v.Status.Closed() && v.ClosedAt != nil:
			return a.sayClosed(ctx, told, contract.RemediationResult{Run: run, Status: v.Status, Reason: v.Reason, HeadCommit: v.HeadCommit, Report: v.Report, Publication: v.Publication})
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// sayClosed prints how a run closed and returns its exit code.
func (a *app) sayClosed(ctx context.Context, told started, result contract.RemediationResult) error {
	if a.json {
		told.Status, told.Reason, told.HeadCommit, told.Report = result.Status, result.Reason, result.HeadCommit, result.Report
		told.Publication = result.Publication
		if err := json.NewEncoder(a.Out).Encode(told); err != nil {
			return err
		}
		return exit(closedCode(result.Status, result.Publication))
	}
	return a.closed(ctx, contract.RunView{Run: result.Run, Status: result.Status, Reason: result.Reason, Report: result.Report, Publication: result.Publication})
}
