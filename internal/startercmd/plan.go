package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/gate"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/workercmd"
)

func (a *app) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Check, show, import and describe plan files",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.planValidateCommand(), a.planShowCommand(), a.planImportCommand(), a.planSchemaCommand())
	return cmd
}

func (a *app) planValidateCommand() *cobra.Command {
	var repo, base string
	cmd := &cobra.Command{
		Use:     "validate PLAN",
		Short:   "Report every fault of a plan at once",
		Example: "  starter plan validate plan.yaml --repo .",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, _, warnings, err := a.readPlan(cmd.Context(), args[0], repo, base)
			if err != nil {
				return err
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(map[string]any{"valid": true, "warnings": orEmpty(warnings)})
			}
			for _, w := range warnings {
				fmt.Fprintln(a.Out, w)
			}
			fmt.Fprintf(a.Out, "%s is valid\n", args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "check against this repository too: files, gate")
	cmd.Flags().StringVar(&base, "base", "", "revision to check against (default: the plan's base)")
	return cmd
}

func orEmpty(faults plan.Faults) plan.Faults {
	if faults == nil {
		return plan.Faults{}
	}
	return faults
}

func (a *app) planShowCommand() *cobra.Command {
	var repo, base string
	cmd := &cobra.Command{
		Use:     "show PLAN",
		Short:   "Show levels, scopes, tiers, tokens and the gate of a plan",
		Example: "  starter plan show plan.yaml --repo .",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, facts, warnings, err := a.readPlan(cmd.Context(), args[0], repo, base)
			if err != nil {
				return err
			}
			overview := plan.Show(p, facts, warnings)
			if a.json {
				return json.NewEncoder(a.Out).Encode(overview)
			}
			fmt.Fprint(a.Out, overview.Text())
			return nil
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "look at this repository too: files, gate")
	cmd.Flags().StringVar(&base, "base", "", "revision to look at (default: the plan's base)")
	return cmd
}

func (a *app) planSchemaCommand() *cobra.Command {
	var pools bool
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of plan files",
		Example: "  starter plan schema > plan.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema := plan.Schema()
			if pools {
				schema = plan.PoolsSchema()
			}
			_, err := a.Out.Write(schema)
			return err
		},
	}
	cmd.Flags().BoolVar(&pools, "pools", false, "the schema of pools files instead")
	return cmd
}

// readPlan reads and checks a plan, against a repository when one is named. It
// prints every fault and returns an error with exit code 2 when there are any.
func (a *app) readPlan(ctx context.Context, path, repo, base string) (*plan.Plan, *plan.Facts, plan.Faults, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, nil, usage("read plan: %w", err)
	}
	p, faults := plan.Parse(path, data)
	if faults.Err() != nil {
		return nil, nil, nil, a.refuse(faults)
	}
	warnings := faults.Warnings()
	if repo == "" {
		return p, nil, warnings, nil
	}
	facts, err := a.lookUp(ctx, p, repo, base)
	if err != nil {
		return nil, nil, nil, err
	}
	against := plan.Locate(plan.ValidateAgainst(p, facts), path, data)
	if against.Err() != nil {
		return nil, nil, nil, a.refuse(against)
	}
	return p, facts, append(warnings, against.Warnings()...), nil
}

// refuse prints all faults of an input and returns exit code 2.
func (a *app) refuse(faults plan.Faults) error {
	errs := faults.Errors()
	if a.json {
		if err := json.NewEncoder(a.Out).Encode(map[string]any{"valid": false, "faults": errs}); err != nil {
			return err
		}
		return exit(ExitUsage)
	}
	for _, f := range errs {
		fmt.Fprintln(a.Err, f)
	}
	word := "faults"
	if len(errs) == 1 {
		word = "fault"
	}
	fmt.Fprintf(a.Err, "starter: %d %s: nothing was started\n", len(errs), word)
	return exit(ExitUsage)
}

// lookUp finds in a repository what the plan's validation asks for.
func (a *app) lookUp(ctx context.Context, p *plan.Plan, repo, base string) (*plan.Facts, error) {
	mirror, commit, err := a.baseOf(ctx, p, repo, base)
	if err != nil {
		return nil, err
	}
	facts, err := activities.LookUp(ctx, mirror, commit, p)
	if err != nil {
		return nil, err
	}
	if facts.Untracked, err = mirror.UncommittedTargets(ctx, commit, plan.NamedPaths(p)); err != nil {
		return nil, fmt.Errorf("look for uncommitted files in %s: %w", repo, err)
	}
	if len(p.Gate.Commands) == 0 && !p.Gate.Disabled {
		found, err := gate.Discover(&activities.BaseTree{Context: ctx, Mirror: mirror, Commit: commit})
		if err != nil {
			return nil, fmt.Errorf("discover gate: %w", err)
		}
		for _, c := range found.Commands {
			facts.Gate = append(facts.Gate, c.Command)
		}
	}
	return facts, nil
}

// baseOf opens the repository's mirror in the starter's own state and resolves the base.
func (a *app) baseOf(ctx context.Context, p *plan.Plan, repo, base string) (*gitrepo.Mirror, string, error) {
	if a.snap != nil { // it is not in the repository yet
		return a.snap.mirror, a.snap.commit, nil
	}
	hub, err := gitrepo.ResolveHub(ctx, repo)
	if err != nil {
		return nil, "", usage("open repository %s: %w", repo, err)
	}
	mirror, err := a.openMirrorFor(ctx, hub, p)
	if err != nil {
		return nil, "", err
	}
	if base == "" {
		base = p.Base
	}
	commit, err := mirror.ResolveBase(ctx, base)
	if errors.Is(err, gitrepo.ErrBaseUnknown) {
		return nil, "", usage("resolve base %q in %s: %w", base, repo, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("resolve base of %s: %w", repo, err)
	}
	return mirror, commit, nil
}

// openMirror opens the starter's own mirror of a repository with default git settings.
func (a *app) openMirror(ctx context.Context, hub gitrepo.Hub) (*gitrepo.Mirror, error) {
	return a.openMirrorFor(ctx, hub, &plan.Plan{})
}

func (a *app) openMirrorFor(ctx context.Context, hub gitrepo.Hub, p *plan.Plan) (*gitrepo.Mirror, error) {
	state, err := a.state()
	if err != nil {
		return nil, err
	}
	store, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: "starter", Log: a.logger()})
	if err != nil {
		return nil, err
	}
	mirror, err := store.Mirror(ctx, hub, activities.GitOptions(p))
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", hub.Canonical, err)
	}
	return mirror, nil
}

// readPools reads and checks a pools file and leaves excluded pools out.
func (a *app) readPools(path string) (*contract.PoolsFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("read pools: %w", err)
	}
	file, faults := dispatch.ParsePools(path, data)
	if faults.Err() != nil {
		return nil, a.refuse(faults)
	}
	for _, w := range faults.Warnings() {
		fmt.Fprintln(a.Err, w)
	}
	if err := workercmd.CheckOptions(path, file.Pools); err != nil {
		return nil, usage("%w", err)
	}
	return file, nil
}
