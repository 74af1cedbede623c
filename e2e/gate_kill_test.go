package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/testkit"
	"mendflow/internal/workercmd"
)

// sabotaged has eight nodes; the first landing of `bad` breaks the gate, `after` stands on it.
func sabotaged() testkit.Plan {
	return testkit.Plan{
		Nodes: []testkit.Node{
			{ID: "one"}, {ID: "two"}, {ID: "three"}, {ID: "four"}, {ID: "five"}, {ID: "six"},
			{ID: "bad"}, {ID: "after", After: []string{"bad"}},
		},
		Gate: []string{"test ! -e bad/broken.txt"},
	}
}

func scriptSabotage(t *testing.T, lab *testkit.Lab, run string) {
	t.Helper()
	lab.Control.Script(t, run, "bad.a1", "mark bad/work.txt", "write bad/broken.txt broken", "result resolved")
}

// requireCulprit expects that `bad` and what stands on it were done again, and nobody else.
func requireCulprit(t *testing.T, lab *testkit.Lab, c *testkit.Case) {
	t.Helper()
	for id, row := range lab.Client.Nodes(t, c.Run) {
		again := id == "bad" || id == "after"
		require.Equal(t, again, row.Opening == 2, "%s is in opening %d", id, row.Opening)
		require.Equal(t, again, len(row.Attempts) == 2, "%s was tried %d times", id, len(row.Attempts))
	}
	report := lab.Client.Report(t, c.Run)
	require.Len(t, report.Gates, 2)
	told := report.Gates[0].Attribution
	require.NotNil(t, told)
	require.Equal(t, "culprit", told.Verdict)
	require.Equal(t, []string{"bad"}, told.Nodes)
	require.Equal(t, []string{"bad", "after"}, told.Reverted)
	require.LessOrEqual(t, told.Runs, 6, "⌈log2 8⌉+2, and one that tells it from an interaction")
	history, err := testkit.ReadHistory(c.Repo, c.Run, report.BaseCommit)
	require.NoError(t, err)
	reverts := 0
	for _, commit := range history.Commits {
		if len(commit.Reverts) > 0 {
			reverts++
		}
	}
	require.Equal(t, 1, reverts, "taken back once")
}

// TestGatePoints kills the host worker at every named point of a gate, of a
// bisect and of a revert, at the last two the server as well: the run goes on
// from what is known, nothing is taken back twice and nothing is lost.
func TestGatePoints(t *testing.T) {
	t.Parallel()
	for _, point := range workercmd.GatePoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			server := point == activities.PointTrial || point == activities.PointReverted
			once := filepath.Join(t.TempDir(), "killed")
			lab := testkit.NewLab(t, testkit.LabOptions{Durable: server, Env: []string{"MENDFLOW_TEST_KILL_AT=" + point + "=" + once}})
			c := testkit.NewCase(t, testkit.RunID(t), sabotaged())
			scriptSabotage(t, lab, c.Run)
			lab.Start(t, c)
			select {
			case <-lab.Host.Done():
			case <-time.After(testkit.Guard):
				t.Fatal("the point was never reached")
			}
			require.FileExists(t, once, "the host ended by itself:\n%s", lab.Host.Output())
			if server {
				lab.Server.Kill()
				require.NoError(t, lab.Server.Restart())
			}
			require.NoError(t, lab.Host.Restart())
			v := lab.Client.AwaitClosed(t, c.Run)
			testkit.CheckInvariants(t, lab.Scene(c))
			require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
			requireAllLanded(t, lab, c)
			requireCulprit(t, lab, c)
			requireNothingLeft(t, lab, c)
		})
	}
}

// TestPauseDuringARedGate stops a gate whose command runs, and proves that nothing
// of it is alive while the run is paused; resumed, the run finds its culprit.
func TestPauseDuringARedGate(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{})
	plan := sabotaged()
	// A gate on a tree with the culprit waits until the test lets it go.
	let := filepath.Join(lab.Dir, "let-go")
	plan.Gate = []string{"if [ -e bad/broken.txt ]; then i=0; until [ -e " + let + " ] || [ $i = 3000 ]; do sleep 0.1; i=$((i+1)); done; exit 1; fi"}
	c := testkit.NewCase(t, testkit.RunID(t), plan)
	scriptSabotage(t, lab, c.Run)
	lab.Start(t, c)
	lab.Client.Await(t, c.Run, "the gate runs", func(v contract.RunView) bool { return v.Status == contract.RunGating })
	lab.Client.OK(t, "pause", c.Run)
	lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	require.Empty(t, testkit.Marked(c.Run), "nothing of the gate is alive")
	require.NoError(t, os.WriteFile(let, nil, 0o644))
	lab.Client.OK(t, "resume", c.Run)
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(t, lab, c)
	requireCulprit(t, lab, c)
	requireNothingLeft(t, lab, c)
}
