// Package activities are the thin adapters between workflows and effects: git,
// processes, artifacts, the server. One struct per capability; every method is
// idempotent for its attempt and safe when two copies run at once.
//
// They hold no rules: what an end means, which path may land, what a text says
// about a limit is asked of the pure packages.
package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
	"mendflow/internal/redact"
)

// Host is what every activity of this host shares.
type Host struct {
	ID        string
	StateDir  string
	Git       *gitrepo.Store
	Artifacts *artifacts.Store
	Providers *provider.Registry
	// Pools are this worker's own definitions by id; they win over a run's on command, env, writable and the options that name program and home.
	Pools map[string]contract.Pool
	// Environ lists the worker's own environment (os.Environ); programs get an allow-listed part of it.
	Environ func() []string
	// Confine runs every program of a run in the sandbox.
	Confine bool
	// DiskFloor is the free space in bytes below which no attempt is started; 0: any.
	DiskFloor uint64
	Log       *slog.Logger
	// Hook is called at the named kill points that lie in activities; nil: nothing.
	Hook func(point string)

	turns turns // who is at which attempt
	drain drain

	mu   sync.Mutex
	runs map[string]*openRun // by configuration
}

// Mark begins the mark of every process that this host starts: its id, and which state folder it has.
// A worker ends what bears its mark at its start; workers of two deployments on one machine may have
// been given the same name, and must not end each other's programs.
func (h *Host) Mark() string {
	sum := sha256.Sum256([]byte(h.StateDir))
	return h.ID + "@" + hex.EncodeToString(sum[:4])
}

// Kill points that lie in activities (the others lie in gitrepo).
const (
	PointWorkerStarted = "after-worker-start"
	PointResult        = "after-result"
	PointScope         = "after-scope"
	PointVerifying     = "during-verify"
	PointBeforeRecord  = "before-record"
	PointGating        = "during-gate"
	PointTrial         = "during-trial"
	PointBeforeRevert  = "before-revert"
	PointReverted      = "after-revert"
)

func (h *Host) reach(point string) {
	if h.Hook != nil {
		h.Hook(point)
	}
}

// openRun is a run as this host knows it.
type openRun struct {
	config contract.RunConfig
	mirror *gitrepo.Mirror
	nodes  map[string]int // index into config.Plan.Nodes
	units  map[string]int // index into config.Units
	masker *redact.Masker // masks every secret of the run that this host knows
}

// cachedRuns bounds what a host remembers; a run is read again when it was forgotten.
const cachedRuns = 16

// run loads a run's configuration and its mirror.
func (h *Host) run(ctx context.Context, config contract.Artifact) (*openRun, error) {
	h.mu.Lock()
	known, ok := h.runs[config.URI]
	h.mu.Unlock()
	if ok {
		return known, nil
	}
	data, err := h.Artifacts.Get(ctx, config.URI)
	if err != nil {
		return nil, fmt.Errorf("read run configuration: %w", err)
	}
	r := &openRun{nodes: map[string]int{}, units: map[string]int{}}
	if err := json.Unmarshal(data, &r.config); err != nil {
		return nil, fmt.Errorf("read run configuration %s: %w", config.URI, err)
	}
	for i, n := range r.config.Plan.Nodes {
		r.nodes[n.ID] = i
	}
	for i, u := range r.config.Units {
		r.units[u.ID] = i
	}
	if r.mirror, err = h.mirror(ctx, r.config.Repository, &r.config.Plan); err != nil {
		return nil, err
	}
	r.masker = redact.NewMasker(h.values(h.secretNames(&r.config)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil || len(h.runs) >= cachedRuns {
		h.runs = map[string]*openRun{}
	}
	h.runs[config.URI] = r
	return r, nil
}

// mirror opens the mirror of a hub with the plan's git settings.
func (h *Host) mirror(ctx context.Context, repository string, p *plan.Plan) (*gitrepo.Mirror, error) {
	hub, err := gitrepo.ResolveHub(ctx, repository)
	if err != nil {
		return nil, fmt.Errorf("resolve repository %s: %w", repository, err)
	}
	mirror, err := h.Git.Mirror(ctx, hub, GitOptions(p))
	if err != nil {
		return nil, fmt.Errorf("open mirror of %s: %w", repository, err)
	}
	return mirror, nil
}

// GitOptions are the git settings of a plan.
func GitOptions(p *plan.Plan) gitrepo.Options {
	return gitrepo.Options{
		Author: p.Git.Author, UserConfig: p.Git.UserConfig, CredentialHelper: p.Git.CredentialHelper,
		LFS: p.Git.LFS, Sign: p.Git.Sign, Sparse: p.Git.Sparse, Keep: p.Keep, Link: p.Link,
	}
}

// values returns the values of the named variables of the worker's environment that are set.
func (h *Host) values(names []string) []string {
	var values []string
	for _, variable := range h.Environ() {
		if name, value, ok := strings.Cut(variable, "="); ok && value != "" && slices.Contains(names, name) {
			values = append(values, value)
		}
	}
	return values
}

// pool returns the definition that an attempt runs under: the run's, with this
// worker's own command, environment and writable folders where it has its own.
func (h *Host) pool(r *openRun, in contract.NodeInput) (contract.Pool, error) {
	known := r.config.Pools
	if in.Definition != nil { // the composition may have changed since the run was opened
		known = []contract.Pool{*in.Definition}
	}
	at := slices.IndexFunc(known, func(p contract.Pool) bool { return p.ID == in.Pool })
	if at < 0 {
		return contract.Pool{}, fmt.Errorf("find pool %s: the run has no such pool", in.Pool)
	}
	p := known[at]
	if own, ok := h.Pools[in.Pool]; ok {
		p.Command, p.Env, p.Writable = own.Command, own.Env, own.Writable
		p.Options = h.ownOptions(p, own)
	}
	return p, nil
}

// ownOptions are the run's options, but for those that name what lies on this
// host: program and home are this worker's, also where it names none.
func (h *Host) ownOptions(p, own contract.Pool) map[string]string {
	adapter, err := h.Providers.Lookup(p.Provider)
	if err != nil {
		return p.Options
	}
	options := maps.Clone(p.Options)
	for _, name := range adapter.About().OwnOptions() {
		if value, ok := own.Options[name]; ok {
			if options == nil {
				options = map[string]string{}
			}
			options[name] = value
		} else {
			delete(options, name)
		}
	}
	return options
}

func (r *openRun) node(id string) (plan.Node, plan.Unit, error) {
	i, ok := r.nodes[id]
	j, there := r.units[id]
	if !ok || !there {
		return plan.Node{}, plan.Unit{}, fmt.Errorf("find node %s: the run has no such node", id)
	}
	return r.config.Plan.Nodes[i], r.config.Units[j], nil
}

// findings returns the named findings of the plan, in plan order.
func (r *openRun) findings(ids []string) []plan.Finding {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var found []plan.Finding
	for _, f := range r.config.Plan.Findings {
		if wanted[f.ID] {
			found = append(found, f)
		}
	}
	return found
}

// attemptDir is where an attempt's files lie that are not in its tree. Paths
// are scoped by attempt, so that no old result is ever read again.
func (h *Host) attemptDir(run, node string, attempt int) string {
	return filepath.Join(h.StateDir, "attempts", run, node, "a"+strconv.Itoa(attempt))
}

// resultFolder is the part of an attempt's folder that the worker may write to;
// our own record of the attempt lies outside it.
const resultFolder = "result"

// resultFile is where a worker delivers its result.
func resultFile(dir string) string { return filepath.Join(dir, resultFolder, "result.json") }

// record is what RunWorker leaves for LandWork on the same host.
type record struct {
	Attempt gitrepo.Attempt `json:"attempt"`
	Fence   string          `json:"fence"`
	Base    string          `json:"base"`
	Exit    int             `json:"exit"`
	// Started: the worker was launched. Ended: it ended, and what it left counts.
	Started bool `json:"started,omitempty"`
	Ended   bool `json:"ended,omitempty"`
	// Alive: something of the attempt could not be ended and may still write to its tree.
	Alive bool `json:"alive,omitempty"`
	// Classified is what the output meant, when no valid result was delivered.
	Outcome contract.Outcome `json:"outcome,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Session string           `json:"session,omitempty"`
	// Totals is what the whole session had used, where the program counts so.
	Totals contract.Usage `json:"totals,omitzero"`
	// Escaped is what changed outside of the tree while the worker ran; empty: nothing.
	Escaped string `json:"escaped,omitempty"`
	// Landed is how LandWork ended, once the work is on the truth: what a second
	// execution answers when the first died after giving up the tree.
	Landed *contract.LandEnd `json:"landed,omitempty"`
}

const recordName = "record.json"

func writeRecord(dir string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write attempt record: %w", err)
	}
	temp := filepath.Join(dir, recordName+".new")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("write attempt record: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(dir, recordName)); err != nil {
		return fmt.Errorf("write attempt record: %w", err)
	}
	return nil
}

func readRecord(dir string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return r, fmt.Errorf("read attempt record: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read attempt record: %w", err)
	}
	return r, nil
}

// MakeFolders makes the folders of the state that activities write to.
func (h *Host) MakeFolders() error {
	for _, dir := range []string{filepath.Join(h.StateDir, "tmp"), h.home(true), h.home(false)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make state folders: %w", err)
		}
	}
	return nil
}
