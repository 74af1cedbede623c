package activities

import (
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
	"mendflow/internal/provider/command"
)

// landScene is an attempt whose worker has ended: a hub, a host and a tree with an edit.
type landScene struct {
	host *Host
	tree *gitrepo.Worktree
	in   contract.LandInput
}

func newLandScene(t *testing.T) *landScene {
	t.Helper()
	hub, state := filepath.Join(t.TempDir(), "hub"), t.TempDir()
	require.NoError(t, os.MkdirAll(hub, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(hub, "a.txt"), []byte("a\n"), 0o644))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "Base"},
	} {
		require.NoError(t, exec.Command("git", append([]string{"-C", hub}, args...)...).Run())
	}
	git, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: "h"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, git.Close()) })
	store, err := artifacts.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var providers provider.Registry
	providers.Register(contract.ProviderCommand, command.Provider{})
	s := &landScene{host: &Host{
		ID: "h", StateDir: state, Git: git, Artifacts: store, Providers: &providers, Environ: os.Environ, Log: slog.New(slog.DiscardHandler),
	}}
	s.open(t, hub)
	return s
}

// open opens a run of one node and leaves its attempt as RunWorker does.
func (s *landScene) open(t *testing.T, hub string) {
	t.Helper()
	ctx := t.Context()
	config := contract.RunConfig{
		Run: "r", Repository: hub, OpenedAt: time.Unix(1_700_000_000, 0),
		Plan: plan.Plan{
			Findings: []plan.Finding{{ID: "F", Title: "A fault"}},
			Nodes:    []plan.Node{{ID: "n", Findings: []string{"F"}, Write: []string{"a.txt"}}},
		},
		Units: []plan.Unit{{ID: "n", Findings: []string{"F"}, Write: []string{"a.txt"}}},
		Pools: []contract.Pool{{ID: "p", Provider: contract.ProviderCommand}},
	}
	mirror, err := s.host.mirror(ctx, hub, &config.Plan)
	require.NoError(t, err)
	config.BaseCommit, err = mirror.ResolveBase(ctx, "")
	require.NoError(t, err)
	_, err = mirror.OpenTruth(ctx, "r", config.BaseCommit)
	require.NoError(t, err)
	data, err := json.Marshal(config)
	require.NoError(t, err)
	ref, err := s.host.Artifacts.Put(ctx, "runs/r/config.json", data)
	require.NoError(t, err)

	attempt := gitrepo.Attempt{Run: "r", Node: "n", Opening: 1, Number: 1, Findings: []string{"F"}}
	fence, err := mirror.SetFence(ctx, attempt)
	require.NoError(t, err)
	s.tree, err = mirror.AddWorktree(ctx, attempt, config.BaseCommit, gitrepo.WorktreeOptions{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.tree.Path(), "a.txt"), []byte("repaired\n"), 0o644))
	dir := s.host.attemptDir("r", "n", 1)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, writeRecord(dir, record{Attempt: attempt, Fence: fence.OID, Base: config.BaseCommit, Started: true, Ended: true}))
	s.in = contract.LandInput{NodeInput: contract.NodeInput{
		Run: "r", Drive: 1, Config: reference(ref), Node: "n", Opening: 1, Attempt: 1, Pool: "p",
	}}
}

func (s *landScene) land(t *testing.T) contract.LandEnd {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	landing := &Landing{Host: s.host}
	env.RegisterActivity(landing.LandWork)
	value, err := env.ExecuteActivity(landing.LandWork, s.in)
	require.NoError(t, err)
	var end contract.LandEnd
	require.NoError(t, value.Get(&end))
	return end
}

func TestLandWorkGivesUpTheTreeAndAnswersTheSameAgain(t *testing.T) {
	t.Parallel()
	s := newLandScene(t)
	first := s.land(t)
	require.Equal(t, contract.OutcomeSuccess, first.Outcome)
	require.NotEmpty(t, first.Commit)
	require.True(t, first.Released)
	require.NoDirExists(t, s.tree.Path())

	// Its worker died before the answer arrived: the activity runs once more.
	require.Equal(t, first, s.land(t))
}
