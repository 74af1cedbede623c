package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// host stands in for git, processes and the artifact store: activities of the
// real names whose outcomes a test scripts.
type host struct {
	units  []plan.Unit
	opened contract.OpenRunResult
	// work scripts an attempt; nil: everything succeeds at once.
	work func(in contract.NodeInput) attemptScript
	// gate scripts a gate run; nil: green.
	gate func(ctx context.Context, in contract.GateInput) (contract.GateEnd, error)
	// hook is called when an activity begins, with its name; it may block until ctx ends.
	hook func(ctx context.Context, name string) error
	// later delays an attempt without blocking a thread; nil: the activity waits itself.
	later func(ctx context.Context, takes time.Duration, end contract.WorkerEnd) error
	// ensure starts a broker; closed are the workflows that do not run any more.
	ensure func(account string)
	served func() string // pool that a host serves now; nil: the first
	closed []string
	// undead is what interrupted workers say that they left; empty: nothing.
	undead string

	mu       sync.Mutex
	blobs    map[string][]byte
	began    map[string]int // activities by name
	attempts []contract.NodeInput
	lands    []contract.LandInput
	releases []contract.ReleaseInput
	proofs   []contract.QuietInput
	record   *contract.RunRecord
	closing  closingAction
	hub      hubModel
}

// attemptScript is how an attempt goes.
type attemptScript struct {
	end   contract.WorkerEnd // outcome empty: success
	land  contract.LandEnd   // outcome empty: landed
	takes time.Duration
	// until holds the worker until it is closed or the attempt is cancelled,
	// which ends it interrupted with its tree kept.
	until <-chan struct{}
	err   error
}

const testHost = "host-1"

func newHost(units ...plan.Unit) *host {
	return &host{
		units: units, blobs: map[string][]byte{}, began: map[string]int{},
		opened: contract.OpenRunResult{
			Config: contract.Artifact{URI: "runs/r/config.json"}, PlanID: "p", BaseCommit: "base", Truth: "base",
			Units: len(units), Gate: 1, GateOnRed: string(plan.OnRedAttribute), Baseline: string(plan.BaselineAccept),
			// Most tests want to see how a run ends by itself: nobody answers.
			Policy: contract.RunPolicy{Unattended: true, Spill: string(plan.SpillSameTier), GateMinutes: 10, Limits: contract.Limits{Worker: 60, Land: 30}},
		},
	}
}

// unit is a node of one finding, named as the node, with a scope of its own.
func unit(id string, depth int, dependsOn ...string) plan.Unit {
	return plan.Unit{ID: id, Findings: []string{"f-" + id}, Depth: depth, DependsOn: dependsOn, Write: []string{id + "/**"}, Tier: plan.TierStandard}
}

func (h *host) register(registry worker.ActivityRegistry, service bool) {
	for name, code := range map[string]any{
		"OpenRun": h.OpenRun, "LoadUnits": h.LoadUnits, "RunWorker": h.RunWorker, "LandWork": h.LandWork,
		"ReleaseWorktree": h.ReleaseWorktree, "RunGate": h.RunGate, "SaveState": h.SaveState, "LoadState": h.LoadState,
		"WriteReport": h.WriteReport, "ProveQuiet": h.ProveQuiet, "RestoreTruth": h.RestoreTruth,
	} {
		registry.RegisterActivityWithOptions(code, activity.RegisterOptions{Name: name})
	}
	h.registerGates(registry)
	h.registerClosing(registry)
	if service {
		registry.RegisterActivityWithOptions(h.EnsureBrokers, activity.RegisterOptions{Name: "EnsureBrokers"})
		registry.RegisterActivityWithOptions(h.ClosedWorkflows, activity.RegisterOptions{Name: "ClosedWorkflows"})
		registry.RegisterActivityWithOptions(h.AwaitHosts, activity.RegisterOptions{Name: "AwaitHosts"})
	}
}

// begin counts an activity and lets the test look in.
func (h *host) begin(ctx context.Context, name string) error {
	h.mu.Lock()
	h.began[name]++
	h.mu.Unlock()
	if h.hook != nil {
		return h.hook(ctx, name)
	}
	return nil
}

func (h *host) count(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.began[name]
}

func (h *host) OpenRun(ctx context.Context, _ contract.OpenRunInput) (contract.OpenRunResult, error) {
	return h.opened, h.begin(ctx, "OpenRun")
}

func (h *host) LoadUnits(ctx context.Context, in contract.LoadUnitsInput) (contract.LoadUnitsResult, error) {
	if err := h.begin(ctx, "LoadUnits"); err != nil {
		return contract.LoadUnitsResult{}, err
	}
	page := plan.Pages(h.units[in.Offset:], 44<<10)[0]
	result := contract.LoadUnitsResult{Units: page}
	if next := in.Offset + len(page); next < len(h.units) {
		result.Next = next
	}
	return result, nil
}

func (h *host) script(in contract.NodeInput) attemptScript {
	var s attemptScript
	if h.work != nil {
		s = h.work(in)
	}
	if s.end.Outcome == "" {
		s.end.Outcome = contract.OutcomeSuccess
	}
	s.end.Host = testHost
	if s.land.Outcome == "" {
		s.land = landed(in)
	}
	return s
}

// landed is the end of an attempt that did everything.
func landed(in contract.NodeInput) contract.LandEnd {
	return contract.LandEnd{
		Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Commit: "commit-of-" + in.Node,
		VerifiedOn: "base", LandedOn: "base", Paths: []string{in.Node + "/file"},
		Items: []contract.ItemResult{{Finding: "f-" + in.Node, Status: contract.ItemResolved}},
	}
}

func (h *host) RunWorker(ctx context.Context, in contract.NodeInput) (contract.WorkerEnd, error) {
	h.mu.Lock()
	h.attempts = append(h.attempts, in)
	h.mu.Unlock()
	began := time.Now()
	interrupted := contract.WorkerEnd{
		Host: testHost, Outcome: contract.OutcomeInterrupted, Reason: "stopped during worker", StartedAt: began,
		Kept: &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: "worker"}, Alive: h.undead,
	}
	if err := h.begin(ctx, "RunWorker"); ctx.Err() != nil { // the answer to a cancel is a value
		return interrupted, nil
	} else if err != nil {
		return contract.WorkerEnd{}, err
	}
	s := h.script(in)
	if s.err != nil {
		return contract.WorkerEnd{}, s.err
	}
	s.end.StartedAt = began // the test environment's clock replaces it in later
	if s.takes > 0 && h.later != nil {
		return s.end, h.later(ctx, s.takes, s.end)
	}
	if s.until != nil && !waitBeating(ctx, s.until) {
		return interrupted, nil
	}
	return s.end, nil
}

// waitBeating waits as a long activity does; false when it was cancelled.
func waitBeating(ctx context.Context, until <-chan struct{}) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		activity.RecordHeartbeat(ctx, contract.Beat{Host: testHost, Step: "worker"})
		select {
		case <-until:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

func (h *host) LandWork(ctx context.Context, in contract.LandInput) (contract.LandEnd, error) {
	h.mu.Lock()
	h.lands = append(h.lands, in)
	h.mu.Unlock()
	if err := h.begin(ctx, "LandWork"); ctx.Err() != nil {
		return contract.LandEnd{Outcome: contract.OutcomeInterrupted, Reason: "stopped during verify"}, nil
	} else if err != nil {
		return contract.LandEnd{}, err
	}
	end := h.script(in.NodeInput).land
	if end.Commit != "" {
		h.hub.land(in.NodeInput)
	}
	return end, nil
}

func (h *host) ReleaseWorktree(ctx context.Context, in contract.ReleaseInput) (contract.ReleaseEnd, error) {
	h.mu.Lock()
	h.releases = append(h.releases, in)
	h.mu.Unlock()
	if err := h.begin(ctx, "ReleaseWorktree"); err != nil {
		return contract.ReleaseEnd{}, err
	}
	var end contract.ReleaseEnd
	if !in.Landed {
		end.Salvage = fmt.Sprintf("refs/mendflow/salvage/%s/%s/%d", in.Run, in.Node, in.Attempt)
	}
	if in.Keep {
		end.Kept = &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: in.Step}
	}
	return end, nil
}

func (h *host) RunGate(ctx context.Context, in contract.GateInput) (contract.GateEnd, error) {
	if err := h.begin(ctx, "RunGate"); err != nil {
		return contract.GateEnd{}, err
	}
	if h.gate != nil {
		return h.gate(ctx, in)
	}
	if h.hub.red != nil {
		return h.hub.gate(in), nil
	}
	return contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth", Seconds: 1}, nil
}

func (h *host) SaveState(ctx context.Context, in contract.StateInput) (contract.Artifact, error) {
	if err := h.begin(ctx, "SaveState"); err != nil {
		return contract.Artifact{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := fmt.Sprintf("runs/%s/state/%s-%d", in.Run, in.Name, len(h.blobs))
	h.blobs[key] = slices.Clone(in.Data)
	return contract.Artifact{URI: key, Bytes: int64(len(in.Data))}, nil
}

func (h *host) LoadState(ctx context.Context, part contract.Artifact) ([]byte, error) {
	if err := h.begin(ctx, "LoadState"); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.blobs[part.URI], nil
}

func (h *host) WriteReport(ctx context.Context, in contract.ReportInput) (contract.ReportEnd, error) {
	if err := h.begin(ctx, "WriteReport"); err != nil {
		return contract.ReportEnd{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var data []byte
	for _, part := range in.State {
		data = append(data, h.blobs[part.URI]...)
	}
	var record contract.RunRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return contract.ReportEnd{}, fmt.Errorf("read run record: %w", err)
	}
	h.record = &record
	return contract.ReportEnd{Markdown: contract.Artifact{URI: "report.md"}, JSON: contract.Artifact{URI: "report.json"}, Head: "head"}, nil
}

func (h *host) ProveQuiet(ctx context.Context, in contract.QuietInput) error {
	h.mu.Lock()
	h.proofs = append(h.proofs, in)
	h.mu.Unlock()
	return h.begin(ctx, "ProveQuiet")
}

func (h *host) RestoreTruth(ctx context.Context, in contract.RestoreInput) (contract.RestoreEnd, error) {
	return contract.RestoreEnd{Truth: in.Known[0], Kept: "refs/kept"}, h.begin(ctx, "RestoreTruth")
}

func (h *host) AwaitHosts(ctx context.Context, pools []string) (string, error) {
	if err := h.begin(ctx, "AwaitHosts"); err != nil {
		return "", err
	}
	if h.served == nil {
		return pools[0], nil
	}
	pool := h.served()
	if pool == "" {
		return "", temporal.NewApplicationError("nobody", contract.ErrorServiceUnready)
	}
	return pool, nil
}

func (h *host) EnsureBrokers(ctx context.Context, accounts []string) error {
	for _, account := range accounts {
		h.ensure(account)
	}
	return h.begin(ctx, "EnsureBrokers")
}

func (h *host) ClosedWorkflows(ctx context.Context, ids []string) ([]string, error) {
	if err := h.begin(ctx, "ClosedWorkflows"); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(h.closed, id) }), nil
}

// tried lists the attempts of a node so far.
func (h *host) tried(node string) []contract.NodeInput {
	h.mu.Lock()
	defer h.mu.Unlock()
	var tried []contract.NodeInput
	for _, in := range h.attempts {
		if in.Node == node {
			tried = append(tried, in)
		}
	}
	return tried
}

// rows are the nodes of the report by id.
func (h *host) rows() map[string]contract.NodeRow {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := map[string]contract.NodeRow{}
	if h.record != nil {
		for _, row := range h.record.Nodes {
			rows[row.ID] = row
		}
	}
	return rows
}
