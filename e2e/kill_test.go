package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/testkit"
	"mendflow/internal/workercmd"
)

// TestKillPoints kills the host worker at every named point of an attempt,
// once, restarts it, and expects a green run in which nothing is lost, nothing
// landed twice and nothing is reported that is not in git.
func TestKillPoints(t *testing.T) {
	t.Parallel()
	for _, point := range workercmd.KillPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			killAt(t, point, func(*testkit.Case) {})
		})
	}
}

// TestKillPointsByURL does so with a hub by URL, whose answer can be lost on
// the way: around the transaction in every check, everywhere in a soak.
func TestKillPointsByURL(t *testing.T) {
	t.Parallel()
	points := []string{gitrepo.PointBeforeTransaction, gitrepo.PointAfterTransaction, activities.PointBeforeRecord}
	if os.Getenv("MENDFLOW_SOAK") != "" {
		points = workercmd.KillPoints()
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			killAt(t, point, func(c *testkit.Case) {
				c.Repo = c.Repo.Bare(t, filepath.Join(c.Dir, "hub.git"))
				c.Before = c.Repo.Checkout(t)
			})
		})
	}
}

// crashPlan reaches every step of an attempt: one node edits out of its scope
// first and is salvaged, one waits for it, one leaves processes behind.
func crashPlan() testkit.Plan {
	return testkit.Plan{Nodes: []testkit.Node{
		{ID: "alpha"}, {ID: "beta"}, {ID: "gamma", After: []string{"alpha", "beta"}},
	}}
}

func scriptCrash(t *testing.T, lab *testkit.Lab, run string) {
	t.Helper()
	lab.Control.Script(t, run, "alpha", "orphan", "mark alpha/work.txt", "result resolved")
	lab.Control.Script(t, run, "beta.a1", "mark beta/work.txt", "mark beyond.txt", "result resolved")
}

func killAt(t *testing.T, point string, arrange func(*testkit.Case)) {
	once := filepath.Join(t.TempDir(), "killed")
	lab := testkit.NewLab(t, testkit.LabOptions{Env: []string{"MENDFLOW_TEST_KILL_AT=" + point + "=" + once}})
	c := testkit.NewCase(t, testkit.RunID(t), crashPlan())
	arrange(c)
	scriptCrash(t, lab, c.Run)
	lab.Start(t, c)
	select {
	case <-lab.Host.Done():
	case <-time.After(testkit.Guard):
		t.Fatal("the point was never reached")
	}
	require.FileExists(t, once, "the host ended by itself:\n%s", lab.Host.Output())
	require.NoError(t, lab.Host.Restart())
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(t, lab, c)
	requireNothingLeft(t, lab, c)
}

// requireAllLanded looks at the nodes as the run and as its report tell them.
func requireAllLanded(t *testing.T, lab *testkit.Lab, c *testkit.Case) {
	t.Helper()
	rows := lab.Client.Nodes(t, c.Run)
	require.Len(t, rows, len(c.Plan.Nodes))
	for id, row := range rows {
		require.Equal(t, contract.NodeLanded, row.State, "%s: %s", id, row.Reason)
	}
	report := lab.Client.Report(t, c.Run)
	require.True(t, report.Verdict.Green)
	for _, n := range report.Nodes {
		require.Equal(t, rows[n.ID].Attempts, n.Attempts, "the report tells another story of %s", n.ID)
	}
}

// requireNothingLeft expects that a green run leaves no tree and no process.
func requireNothingLeft(t *testing.T, lab *testkit.Lab, c *testkit.Case) {
	t.Helper()
	require.Empty(t, testkit.Marked(c.Run))
	t.Cleanup(func() {
		if t.Failed() {
			testkit.Tell(t, lab.Scene(c))
		}
	})
	testkit.EventuallyNone(t, "removed worktrees", func() []string { return lab.Worktrees(c.Run) })
}
