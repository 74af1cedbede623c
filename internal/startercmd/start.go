package startercmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
)

// startOptions are the flags of `starter start`.
type startOptions struct {
	repo, plan, pools, id, base string
	wait, watch, detach         bool
	noHold                      bool
	again, parallel             bool
	uncommitted                 bool
	diskFloor                   uint64 // MiB
}

func (a *app) startCommand() *cobra.Command {
	var o startOptions
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a run: repair a repository by a plan",
		Long: "Start a run. The plan and the pools are checked first; every fault is reported at once and nothing starts.\n" +
			"Exit codes: 0 done (with --wait or --watch: green), 2 invalid input, 3 closed and not green, 4 held (--no-hold), 5 no server.",
		Example: "  starter start --repo . --plan plan.yaml --pools pools.yaml --watch\n  starter start --repo . --plan plan.yaml --pools pools.yaml --wait --json",
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
	flags.BoolVar(&o.again, "again", false, "start once more although this plan ran on this repository before")
	flags.BoolVar(&o.parallel, "parallel", false, "although another run of this plan is open")
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
	Decision   string             `json:"decision"` // started
	Branch     string             `json:"branch"`
	Status     contract.RunStatus `json:"status,omitempty"` // with --wait: how it closed
	Reason     string             `json:"reason,omitempty"`
	HeadCommit string             `json:"head_commit,omitempty"`
	Report     *contract.Artifact `json:"report,omitempty"`
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
		Pools: slices.DeleteFunc(slices.Clone(pools.Pools), func(pool contract.Pool) bool { return slices.Contains(pools.Exclude, pool.ID) }),
	}
	if err := a.checkServed(ctx, c, input.Pools); err != nil {
		return err
	}
	if input.Run, err = a.chooseRun(ctx, c, p, hub, o); err != nil {
		return err
	}
	if err := a.storeInputs(ctx, &input, p, pools); err != nil {
		return err
	}
	if err := a.snap.publish(ctx, input.Run); err != nil {
		return err
	}
	handle, err := a.execute(ctx, c, input, p)
	if err != nil {
		return err
	}
	return a.follow(ctx, c, handle, input.Run, o)
}

// runID is the identity of a generation of a plan on a hub.
func runID(hub gitrepo.Hub, planID string, generation int) string {
	data, err := json.Marshal([]any{hub.Canonical, planID, generation})
	if err != nil {
		panic(err) // plain values always marshal
	}
	sum := sha256.Sum256(data)
	id := planID + "-" + hex.EncodeToString(sum[:3])
	if generation > 1 {
		id += fmt.Sprintf(".g%d", generation)
	}
	return id
}

// chooseRun finds the id of the next generation, or refuses with the choices.
func (a *app) chooseRun(ctx context.Context, c client.Client, p *plan.Plan, hub gitrepo.Hub, o startOptions) (string, error) {
	if o.id != "" {
		open, used, err := a.known(ctx, c, o.id)
		if err != nil || !used {
			return o.id, err
		}
		return "", refuseUsed(o.id, open)
	}
	for generation := 1; ; generation++ {
		id := runID(hub, p.ID, generation)
		open, used, err := a.known(ctx, c, id)
		switch {
		case err != nil:
			return "", err
		case !used:
			return id, nil
		case !o.again, open && !o.parallel:
			return "", refuseUsed(id, open)
		}
	}
}

func refuseUsed(id string, open bool) error {
	if open {
		return fmt.Errorf("start run: %s is open: watch it with `starter watch %s`, or start another beside it with --again --parallel", id, id)
	}
	return fmt.Errorf("start run: %s ran before: see `starter report %s`, or start it once more with --again", id, id)
}

// known reports whether a run id was used, by the server or, after its
// retention, by the report in the artifact store.
func (a *app) known(ctx context.Context, c client.Client, id string) (open, used bool, err error) {
	described, err := c.DescribeWorkflow(ctx, contract.RemediationID(id), "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		store, err := a.store(ctx)
		if err != nil {
			return false, false, err
		}
		defer func() { _ = store.Close() }()
		entries, err := store.List(ctx, "runs/"+id+"/report/")
		return false, len(entries) > 0, err
	case err != nil:
		return false, false, fmt.Errorf("look for run %s: %w", id, err)
	}
	return described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, true, nil
}

// checkServed refuses to start what no worker would ever take.
func (a *app) checkServed(ctx context.Context, c client.Client, pools []contract.Pool) error {
	served := 0
	var missing []string
	for _, p := range pools {
		described, err := c.DescribeTaskQueue(ctx, contract.PoolQueue(p.ID), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return fmt.Errorf("look for workers of pool %s: %w", p.ID, err)
		}
		if len(described.GetPollers()) > 0 {
			served++
		} else {
			missing = append(missing, p.ID)
		}
	}
	switch {
	case served == 0:
		return fmt.Errorf("start run: no worker serves any of the pools %v: start one with `worker --pools FILE` or `starter dev --pools FILE`", missing)
	case len(missing) > 0:
		fmt.Fprintf(a.Err, "starter: no worker serves the pools %v now; their attempts will wait for one\n", missing)
	}
	return nil
}

func (a *app) storeInputs(ctx context.Context, input *contract.RemediationInput, p *plan.Plan, pools *contract.PoolsFile) error {
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for _, part := range []struct {
		name string
		data any
		to   *contract.Artifact
	}{{"plan.json", p, &input.Plan}, {"pools.json", pools, &input.PoolsFile}} {
		data, err := json.Marshal(part.data)
		if err != nil {
			return fmt.Errorf("write %s: %w", part.name, err)
		}
		ref, err := store.Put(ctx, "runs/"+input.Run+"/"+part.name, data)
		if err != nil {
			return fmt.Errorf("store %s: %w", part.name, err)
		}
		ref.Tail = ""
		*part.to = contract.Artifact(ref)
	}
	return nil
}

func (a *app) execute(ctx context.Context, c client.Client, input contract.RemediationInput, p *plan.Plan) (client.WorkflowRun, error) {
	handle, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: contract.RemediationID(input.Run), TaskQueue: contract.QueueMain,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("%s: %d nodes", p.ID, len(p.Nodes)),
		StaticDetails:                            fmt.Sprintf("%s\n\nrepository `%s`", p.Goal, input.Repository),
		Memo:                                     map[string]any{"run": input.Run, "plan": p.ID, "repository": input.Repository, "branch": contract.RunBranch(input.Run)},
	}, contract.WorkflowRemediation, input)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil, refuseUsed(input.Run, true)
	}
	if err != nil {
		return nil, fmt.Errorf("start run %s: %w", input.Run, err)
	}
	return handle, nil
}

// follow does what the flags ask for once the run has started.
func (a *app) follow(ctx context.Context, c client.Client, handle client.WorkflowRun, run string, o startOptions) error {
	told := started{Run: run, WorkflowID: contract.RemediationID(run), Decision: "started", Branch: contract.RunBranch(run)}
	if !a.json {
		fmt.Fprintf(a.Out, "started run %s (branch %s)\n", run, told.Branch)
	}
	switch {
	case o.watch:
		return a.watch(ctx, c, run, o.noHold)
	case o.wait && o.noHold:
		return a.waitNoHold(ctx, c, run, told)
	case o.wait:
		var result contract.RemediationResult
		if err := handle.Get(ctx, &result); err != nil {
			if ctx.Err() != nil {
				fmt.Fprintf(a.Err, "stopped waiting; the run goes on: starter watch %s\n", run)
				return exit(ExitInterrupted)
			}
			return fmt.Errorf("wait for run %s: %w", run, err)
		}
		return a.sayClosed(ctx, told, result)
	case a.json:
		return json.NewEncoder(a.Out).Encode(told)
	}
	fmt.Fprintf(a.Out, "watch it with: starter watch %s\n", run)
	return nil
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
			return a.sayClosed(ctx, told, contract.RemediationResult{Run: run, Status: v.Status, Reason: v.Reason, HeadCommit: v.HeadCommit, Report: v.Report})
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
		if err := json.NewEncoder(a.Out).Encode(told); err != nil {
			return err
		}
		return exit(closedCode(result.Status))
	}
	return a.closed(ctx, contract.RunView{Run: result.Run, Status: result.Status, Reason: result.Reason, Report: result.Report})
}
