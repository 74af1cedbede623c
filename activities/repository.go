package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"google.golang.org/grpc"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
)

// SearchAttributes is the part of the server that tells which attributes are registered.
type SearchAttributes interface {
	ListSearchAttributes(ctx context.Context, in *operatorservice.ListSearchAttributesRequest, opts ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error)
}

// Repository opens runs.
type Repository struct {
	Host      *Host
	Server    SearchAttributes
	Namespace string
	Now       func() time.Time
}

// OpenRun makes the mirror, fixes the base, opens the truth in the hub and
// stores the run's configuration. Doing it again finds what is there.
func (a *Repository) OpenRun(ctx context.Context, in contract.OpenRunInput) (contract.OpenRunResult, error) {
	heart := startHeart(ctx, a.Host.ID, "mirror")
	defer heart.end()
	result, err := a.open(ctx, in, heart)
	return result, translate(ctx, err)
}

func (a *Repository) open(ctx context.Context, in contract.OpenRunInput, heart *heart) (contract.OpenRunResult, error) {
	var none contract.OpenRunResult
	config, err := a.load(ctx, in)
	if err != nil {
		return none, err
	}
	mirror, err := a.Host.mirror(ctx, in.Repository, &config.Plan)
	if err != nil {
		return none, err
	}
	revision := in.Base
	if revision == "" {
		revision = config.Plan.Base
	}
	if config.BaseCommit, err = mirror.ResolveBase(ctx, revision); err != nil {
		return none, fmt.Errorf("resolve base %q: %w", revision, err)
	}
	if err := resolveClose(ctx, mirror, &config, revision); err != nil {
		return none, err
	}
	heart.step("truth")
	if err := mirror.Probe(ctx); err != nil {
		return none, fmt.Errorf("probe %s: %w", in.Repository, err)
	}
	truth, err := mirror.OpenTruth(ctx, in.Run, config.BaseCommit)
	if err != nil {
		return none, fmt.Errorf("open truth: %w", err)
	}
	heart.step("plan")
	facts, err := LookUp(ctx, mirror, config.BaseCommit, &config.Plan)
	if err != nil {
		return none, err
	}
	if err := chooseGate(ctx, mirror, &config); err != nil {
		return none, err
	}
	selection := plan.Select(&config.Plan, facts)
	config.Units = plan.Skeleton(&config.Plan, selection, facts.Sizes)
	if len(config.Units) == 0 {
		return none, fmt.Errorf("select findings: nothing is left to do at %s: %w", config.BaseCommit, errInvalidPlan)
	}
	config.FoldCase = facts.FoldCase
	for _, f := range selection.Findings {
		if f.Disposition != plan.DispositionPlanned {
			config.Dropped = append(config.Dropped, contract.Disposition{Finding: f.Finding, State: string(f.Disposition), Reason: f.Cause})
		}
	}
	stored, err := a.store(ctx, config)
	if err != nil {
		return none, err
	}
	result := opened(config, stored, truth)
	result.Attributes = a.attributes(ctx)
	for _, n := range config.Plan.Notify {
		result.Notify = append(result.Notify, n.On)
	}
	return result, nil
}

// load reads plan and pools as the starter stored them.
func (a *Repository) load(ctx context.Context, in contract.OpenRunInput) (contract.RunConfig, error) {
	config := contract.RunConfig{Run: in.Run, Repository: in.Repository, OpenedAt: a.Now().UTC()}
	data, err := a.Host.Artifacts.Get(ctx, in.Plan.URI)
	if err != nil {
		return config, fmt.Errorf("read plan: %w", err)
	}
	if err := json.Unmarshal(data, &config.Plan); err != nil {
		return config, fmt.Errorf("read plan %s: %w: %w", in.Plan.URI, errInvalidPlan, err)
	}
	data, err = a.Host.Artifacts.Get(ctx, in.PoolsFile.URI)
	if err != nil {
		return config, fmt.Errorf("read pools: %w", err)
	}
	var file contract.PoolsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return config, fmt.Errorf("read pools %s: %w: %w", in.PoolsFile.URI, errInvalidPlan, err)
	}
	config.Pools, config.LimitPatterns = file.Pools, file.LimitPatterns
	return config, nil
}

// LookUp finds in the repository what a plan's validation and selection ask for.
func LookUp(ctx context.Context, mirror *gitrepo.Mirror, base string, p *plan.Plan) (*plan.Facts, error) {
	files, err := mirror.ListFiles(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", base, err)
	}
	at := make(map[string]gitrepo.TreeEntry, len(files))
	for _, f := range files {
		at[f.Path] = f
	}
	facts := &plan.Facts{Base: base, Sizes: map[string]int64{}}
	for _, path := range plan.NamedPaths(p) {
		if f, ok := at[path]; ok {
			facts.Sizes[path] = f.Size
			continue
		}
		prefix := path + "/"
		i, _ := slices.BinarySearchFunc(files, prefix, func(f gitrepo.TreeEntry, want string) int {
			if f.Path < want {
				return -1
			}
			return 1
		})
		if i < len(files) && len(files[i].Path) > len(prefix) && files[i].Path[:len(prefix)] == prefix {
			facts.Folders = append(facts.Folders, path)
		}
	}
	return facts, nil
}

// chooseGate takes the plan's gate commands, or discovers them at the base.
func chooseGate(ctx context.Context, mirror *gitrepo.Mirror, config *contract.RunConfig) error {
	var found gate.Discovery
	if !config.Plan.Gate.Disabled && len(config.Plan.Gate.Commands) == 0 {
		var err error
		if found, err = gate.Discover(&BaseTree{Context: ctx, Mirror: mirror, Commit: config.BaseCommit}); err != nil {
			return fmt.Errorf("discover gate: %w", err)
		}
	}
	commands, err := gate.Commands(config.Plan.Gate, found)
	if err != nil {
		return fmt.Errorf("choose gate commands at %s: %w: %w", config.BaseCommit, errInvalidPlan, err)
	}
	config.Gate, config.GateSources, config.GateResidual = commands, found.Sources, found.Residual
	return nil
}

// BaseTree shows a commit's files to gate discovery.
type BaseTree struct {
	Context context.Context
	Mirror  *gitrepo.Mirror
	Commit  string
}

// Paths lists the files of the commit.
func (t *BaseTree) Paths() ([]string, error) {
	files, err := t.Mirror.ListFiles(t.Context, t.Commit)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths, nil
}

// Read reads one file of the commit.
func (t *BaseTree) Read(path string) ([]byte, error) {
	return t.Mirror.ReadFile(t.Context, t.Commit, path)
}

func (a *Repository) store(ctx context.Context, config contract.RunConfig) (contract.Artifact, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return contract.Artifact{}, fmt.Errorf("write run configuration: %w", err)
	}
	ref, err := a.Host.Artifacts.Put(ctx, contract.ConfigKey(config.Run), data)
	if err != nil {
		return contract.Artifact{}, fmt.Errorf("store run configuration: %w", err)
	}
	return reference(ref), nil
}

func opened(config contract.RunConfig, stored contract.Artifact, truth string) contract.OpenRunResult {
	p := &config.Plan
	verify := 1
	for _, n := range p.Nodes {
		verify = max(verify, len(n.Verify))
	}
	return contract.OpenRunResult{
		Config: stored, PlanID: p.ID, Goal: clip(p.Goal, 500), BaseCommit: config.BaseCommit, Truth: truth,
		Units: len(config.Units), FoldCase: config.FoldCase, Gate: len(config.Gate),
		GateOnRed: string(p.Gate.OnRed), Baseline: string(p.Gate.Baseline),
		Policy: contract.RunPolicy{
			Spill: string(p.Policy.Spill), AttemptTokens: p.Policy.AttemptTokens, Unattended: p.Policy.Unattended,
			Budget: p.Budget, Close: string(p.Close.Action),
			GateMinutes: p.Policy.GateMinutes*max(1, len(config.Gate))*2 + p.Policy.SetupMinutes*max(1, len(p.Setup)),
			Limits: contract.Limits{
				Worker: p.Policy.AttemptMinutes + p.Policy.SetupMinutes*max(1, len(p.Setup)),
				Land:   3 * p.Policy.VerifyMinutes * verify,
			},
		},
	}
}

// attributes lists which of our search attributes the server knows; none when it will not say.
func (a *Repository) attributes(ctx context.Context) []string {
	known, err := a.Server.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: a.Namespace})
	if err != nil {
		a.Host.Log.Warn("list search attributes", "error", err)
		return nil
	}
	var names []string
	for _, attribute := range contract.Attributes() {
		if _, ok := known.GetCustomAttributes()[attribute.Name]; ok {
			names = append(names, attribute.Name)
		}
	}
	return names
}

// pageSize bounds a page of units, under the limit of a payload.
const pageSize = 44 << 10

// LoadUnits returns a page of the run's units.
func (a *Repository) LoadUnits(ctx context.Context, in contract.LoadUnitsInput) (contract.LoadUnitsResult, error) {
	r, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return contract.LoadUnitsResult{}, translate(ctx, err)
	}
	if in.Offset >= len(r.config.Units) {
		return contract.LoadUnitsResult{}, nil
	}
	page := plan.Pages(r.config.Units[in.Offset:], pageSize)[0]
	result := contract.LoadUnitsResult{Units: page}
	if next := in.Offset + len(page); next < len(r.config.Units) {
		result.Next = next
	}
	return result, nil
}

// reference is an artifact as histories carry it, without any of its text.
func reference(ref artifacts.Ref) contract.Artifact {
	ref.Tail = ""
	return contract.Artifact(ref)
}
