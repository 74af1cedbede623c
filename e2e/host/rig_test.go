// Package host tests activities on a host of a kind that this machine is not:
// without a sandbox, with a full disk. Git, processes and artifacts are real;
// only the server is not there.
package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"

	"mendflow/activities"
	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
	"mendflow/internal/provider/command"
	"mendflow/internal/testkit"
)

// rig is a host with one repository and one run of one node.
type rig struct {
	t      *testing.T
	host   *activities.Host
	env    *testsuite.TestActivityEnvironment
	repo   *testkit.Repo
	opened contract.OpenRunResult
}

const (
	run  = "run"
	node = "n"
)

// newRig opens a run whose worker is a shell line; {hub} is the user's repository.
func newRig(t *testing.T, worker string, change func(*plan.Plan)) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, repo: testkit.NewRepo(t, filepath.Join(dir, "repo"), map[string]string{
		"n/work.txt": "todo\n", "other/file.txt": "other\n", "README.md": "read me\n",
	})}
	state := filepath.Join(dir, "state")
	git, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: "host"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, git.Close()) })
	store, err := artifacts.Open(t.Context(), "file://"+filepath.Join(dir, "artifacts"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var providers provider.Registry
	providers.Register(contract.ProviderCommand, command.Provider{})
	r.host = &activities.Host{
		ID: "host", StateDir: state, Git: git, Artifacts: store, Providers: &providers, Environ: os.Environ,
		Log: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, r.host.MakeFolders())
	var suite testsuite.WorkflowTestSuite
	r.env = suite.NewTestActivityEnvironment()
	activities.Set{
		Repository: &activities.Repository{Host: r.host, Server: noServer{}, Now: time.Now},
		Attempt:    &activities.Attempt{Host: r.host, Now: time.Now, Jitter: func() float64 { return 0 }, Local: time.UTC},
		Landing:    &activities.Landing{Host: r.host}, Gate: &activities.Gate{Host: r.host},
		Artifacts: &activities.Artifacts{Host: r.host}, Publication: &activities.Publication{Host: r.host},
		Service: &activities.Service{},
	}.RegisterMain(r.env)
	r.env.RegisterActivity(&activities.Attempt{Host: r.host, Now: time.Now, Jitter: func() float64 { return 0 }, Local: time.UTC})
	r.env.RegisterActivity(&activities.Landing{Host: r.host})
	r.open(worker, change)
	return r
}

func (r *rig) open(worker string, change func(*plan.Plan)) {
	p := &plan.Plan{
		Version: 1, ID: "p", Goal: "g",
		Findings: []plan.Finding{{ID: "F", Title: "Work", Severity: plan.SeverityMedium, Files: []plan.Location{{Path: "n/work.txt"}}}},
		Nodes:    []plan.Node{{ID: node, Findings: []string{"F"}, Write: []string{"n/**"}, Verify: []plan.Command{{Shell: "grep -q done n/work.txt"}}}},
		Gate:     plan.Gate{Disabled: true},
		Policy: plan.Policy{Landing: plan.LandingOptimistic, Scope: plan.ScopeStrict, AttemptMinutes: 5, IdleMinutes: 5, SetupMinutes: 5,
			VerifyMinutes: 5, GateMinutes: 5},
	}
	if change != nil {
		change(p)
	}
	pools := contract.PoolsFile{Pools: []contract.Pool{{
		ID: "pool", Provider: contract.ProviderCommand, MaxConcurrent: 1,
		Command: &plan.Command{Shell: strings.ReplaceAll(worker, "{hub}", r.repo.Dir)},
	}}}
	in := contract.OpenRunInput{Run: run, Repository: r.repo.Dir, Plan: r.put("plan.json", p), PoolsFile: r.put("pools.json", pools)}
	value, err := r.env.ExecuteActivity("OpenRun", in)
	require.NoError(r.t, err)
	require.NoError(r.t, value.Get(&r.opened))
}

func (r *rig) put(name string, value any) contract.Artifact {
	data, err := json.Marshal(value)
	require.NoError(r.t, err)
	ref, err := r.host.Artifacts.Put(r.t.Context(), name, data)
	require.NoError(r.t, err)
	return contract.Artifact(ref)
}

func (r *rig) input() contract.NodeInput {
	return contract.NodeInput{Run: run, Drive: 1, Config: r.opened.Config, Node: node, Opening: 1, Attempt: 1, Pool: "pool", Findings: []string{"F"}}
}

// work runs the worker.
func (r *rig) work() (contract.WorkerEnd, error) {
	var end contract.WorkerEnd
	value, err := r.env.ExecuteActivity("RunWorker", r.input())
	if err != nil {
		return end, err
	}
	return end, value.Get(&end)
}

// land judges and lands what it left, and releases its tree.
func (r *rig) land() contract.LandEnd {
	var end contract.LandEnd
	value, err := r.env.ExecuteActivity("LandWork", contract.LandInput{NodeInput: r.input()})
	require.NoError(r.t, err)
	require.NoError(r.t, value.Get(&end))
	_, err = r.env.ExecuteActivity("ReleaseWorktree", contract.ReleaseInput{NodeInput: r.input(), Landed: end.Commit != ""})
	require.NoError(r.t, err)
	return end
}

// noServer knows no search attributes.
type noServer struct{}

func (noServer) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{}, nil
}
