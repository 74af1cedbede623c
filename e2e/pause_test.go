package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/testkit"
)

// pauseMoment is what a run is at when the operator pauses it.
type pauseMoment struct {
	name string
	// arrange makes the run stop there until the file opens.
	arrange func(c *testkit.Plan, open string)
	script  []string // of the node's first attempt
	sleeps  string   // command line of what is then alive
	salvage bool     // the worker's edit did not land yet
}

// stay is a command that stays until the file is there, with a helper that
// ignores TERM in a session of its own.
func stay(open string) string {
	return "test -e " + open + " || { setsid sh -c 'trap \"\" TERM; sleep 7171' & trap '' TERM; sleep 7272; sleep 7272; }"
}

var pauseMoments = []pauseMoment{
	{name: "edit", script: []string{"stubborn", "orphan", "mark alpha/work.txt", "tell there", "hang"}, salvage: true},
	{name: "verify", salvage: true, sleeps: "sleep 7272", arrange: func(p *testkit.Plan, open string) {
		p.Nodes[0].Verify = []string{"grep -q '^mark ' alpha/work.txt && { " + stay(open) + "; }"}
	}},
	{name: "gate", sleeps: "sleep 7272", arrange: func(p *testkit.Plan, open string) {
		p.Gate = []string{"if grep -q '^mark ' alpha/work.txt; then " + stay(open) + "; fi"}
	}},
}

// TestPauseStopsWhateverRuns pauses a run in the
// middle of an edit, a verification and the gate, whose programs ignore TERM and
// hide in sessions of their own. When the run is paused nothing of it is alive,
// and the work is in its tree and put aside as well. Then worker and server are
// killed; the run is still paused, and a resume goes on where it was.
func TestPauseStopsWhateverRuns(t *testing.T) {
	t.Parallel()
	for _, m := range pauseMoments {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			lab := testkit.NewLab(t, testkit.LabOptions{Durable: true})
			plan := testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta", After: []string{"alpha"}}}}
			open := filepath.Join(t.TempDir(), "open")
			if m.arrange != nil {
				m.arrange(&plan, open)
			}
			c := testkit.NewCase(t, testkit.RunID(t), plan)
			if m.script != nil {
				lab.Control.Script(t, c.Run, "alpha.a1", m.script...)
			}
			lab.Start(t, c)
			if m.sleeps == "" {
				lab.Control.Await(t, c.Run, "there")
			} else {
				testkit.Eventually(t, m.sleeps, func() bool { return strings.Contains(strings.Join(testkit.Marked(c.Run), "\n"), m.sleeps) })
			}

			paused := time.Now()
			lab.Client.OK(t, "pause", c.Run, "--reason", "maintenance")
			testkit.Eventually(t, "nothing of the run alive", func() bool { return len(testkit.Marked(c.Run)) == 0 })
			// Ten seconds are promised to an operator; the grace of a program that ignores TERM is five of them.
			t.Logf("nothing was alive %s after the pause", time.Since(paused).Round(100*time.Millisecond))
			lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
			require.Empty(t, testkit.Marked(c.Run), "paused is said only when nothing is alive")
			quiet := lab.Client.OK(t, "quiesce", c.Run)
			require.Contains(t, quiet, "nothing of the run is alive")
			testkit.CheckInvariants(t, lab.Scene(c)) // no edit is lost
			if m.salvage {
				trees, err := filepath.Glob(filepath.Join(lab.Host.State, "worktrees", c.Run, "*", "*", "alpha", "work.txt"))
				require.NoError(t, err)
				require.Len(t, trees, 1)
				require.Contains(t, readFile(t, trees[0]), "mark ")
				require.NotEmpty(t, salvageRefs(t, lab, c))
			}

			lab.Host.Kill()
			lab.Server.Kill()
			require.NoError(t, lab.Server.Restart())
			require.NoError(t, lab.Host.Restart())
			v := lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
			require.Equal(t, "maintenance", v.Holds[0].Reason)
			require.Contains(t, lab.Client.OK(t, "status", c.Run), "starter resume "+c.Run)
			require.NoError(t, os.WriteFile(open, nil, 0o600))
			lab.Client.OK(t, "resume", c.Run)

			v = lab.Client.AwaitClosed(t, c.Run)
			require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
			testkit.CheckInvariants(t, lab.Scene(c))
			requireAllLanded(t, lab, c)
			if m.salvage { // the same tree was continued: both marks of an edit are in it, and no worker did it again
				row := lab.Client.Nodes(t, c.Run)["alpha"]
				require.Len(t, row.Attempts, 2)
				require.False(t, row.Attempts[0].Charged)
				for _, e := range lab.Control.Events(t, c.Run) {
					if e.Kind == "mark" && e.Node == "alpha" {
						require.Contains(t, c.Repo.Git(t, "show", contract.TruthRef(c.Run)+":alpha/work.txt"), e.Mark)
					}
				}
			}
		})
	}
}

// TestPauseAgainstTheLandingTransaction (race 1 of control.md) holds a landing
// before, in and after its transaction while the run is paused. Before it the
// work stays unlanded in its tree; from its first object on it lands, and the
// run says paused only when it knows.
func TestPauseAgainstTheLandingTransaction(t *testing.T) {
	t.Parallel()
	for _, point := range []string{gitrepo.PointMerged, gitrepo.PointBeforeTransaction, gitrepo.PointObjectsSent, gitrepo.PointAfterTransaction} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			held := filepath.Join(t.TempDir(), "held")
			lab := testkit.NewLab(t, testkit.LabOptions{Env: []string{"MENDFLOW_TEST_HOLD_AT=" + point + "=" + held}})
			c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta", After: []string{"alpha"}}}})
			lab.Start(t, c)
			testkit.Eventually(t, point, func() bool { _, err := os.Stat(held); return err == nil })

			lab.Client.OK(t, "pause", c.Run, "--reason", "race")
			v := lab.Client.AwaitStatus(t, c.Run, contract.RunPausing)
			require.Nil(t, v.ClosedAt)
			require.NoError(t, os.WriteFile(held+".go", nil, 0o600))
			lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)

			require.Empty(t, testkit.Marked(c.Run))
			landed := c.Repo.Git(t, "rev-list", "--count", "HEAD.."+contract.TruthRef(c.Run))
			rows := lab.Client.Nodes(t, c.Run)
			if point == gitrepo.PointObjectsSent || point == gitrepo.PointAfterTransaction {
				require.Equal(t, "1", landed, "nothing interrupts a transaction that has begun")
			}
			if landed == "1" {
				require.Equal(t, contract.NodeLanded, rows["alpha"].State)
			} else {
				require.NotEqual(t, contract.NodeLanded, rows["alpha"].State)
			}
			require.Zero(t, lab.Control.Starts(t, c.Run, "beta"))
			testkit.CheckInvariants(t, lab.Scene(c))

			lab.Client.OK(t, "resume", c.Run)
			v = lab.Client.AwaitClosed(t, c.Run)
			require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
			require.Equal(t, 1, lab.Control.Starts(t, c.Run, "beta"))
			testkit.CheckInvariants(t, lab.Scene(c))
			requireAllLanded(t, lab, c)
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// salvageRefs are the run's salvage refs in the hub and on the host.
func salvageRefs(t *testing.T, lab *testkit.Lab, c *testkit.Case) []string {
	t.Helper()
	pattern := "refs/mendflow/salvage/" + c.Run + "/"
	refs := strings.Fields(c.Repo.Git(t, "for-each-ref", "--format=%(refname)", pattern))
	mirrors, err := filepath.Glob(filepath.Join(lab.Host.State, "mirrors", "*.git"))
	require.NoError(t, err)
	for _, dir := range mirrors {
		mirror := &testkit.Repo{Dir: dir}
		refs = append(refs, strings.Fields(mirror.Git(t, "for-each-ref", "--format=%(refname)", pattern))...)
	}
	return refs
}
