package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/testkit"
)

// TestRollingRestartLosesNothing restarts two hosts one after the other while
// their workers are at work: each is asked to stop, keeps what its workers did,
// and goes on with it when it is back.
func TestRollingRestartLosesNothing(t *testing.T) {
	t.Parallel()
	pool := []testkit.Pool{{ID: "scripted", Max: 2}}
	fleet := testkit.NewFleet(t, testkit.FleetOptions{Hosts: [][]testkit.Pool{pool, pool}})
	var plan testkit.Plan
	for i := range 6 {
		plan.Nodes = append(plan.Nodes, testkit.Node{ID: fmt.Sprintf("n%d", i)})
	}
	c := testkit.NewCase(t, testkit.RunID(t), plan)
	for _, n := range plan.Nodes {
		fleet.Control.Script(t, c.Run, n.ID, "stubborn", "orphan", "mark {node}/work.txt", "tell working-{node}", "wait go", "mark {node}/work.txt", "result resolved")
	}
	fleet.Start(t, c)
	working := func() (n int) {
		for _, node := range plan.Nodes {
			if fleet.Control.Told(c.Run, "working-"+node.ID) {
				n++
			}
		}
		return n
	}
	testkit.Eventually(t, "four workers", func() bool { return working() == 4 })

	for _, host := range fleet.Hosts {
		require.NoError(t, host.Stop(), "it ends by itself")
		require.Empty(t, testkit.Marked("-", host.State), "nothing of it is alive")
		require.NoError(t, host.Restart())
	}
	require.NoError(t, fleet.Control.Tell(c.Run, "go"))

	v := fleet.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	testkit.CheckInvariants(t, fleet.Scene(c))
	continued := 0
	for id, row := range fleet.Client.Nodes(t, c.Run) {
		require.Equal(t, contract.NodeLanded, row.State, id)
		for _, a := range row.Attempts[:len(row.Attempts)-1] {
			require.Equal(t, contract.OutcomeInterrupted, a.Outcome, "%s: %s", id, a.Reason)
			require.False(t, a.Charged)
			continued++
		}
	}
	require.GreaterOrEqual(t, continued, 4)
}

// TestDrainAtEveryPoint asks the host to stop when an attempt is at a named point,
// the landing transaction among them (race 12): what lands has landed, what does
// not is continued.
func TestDrainAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		activities.PointWorkerStarted, activities.PointResult, activities.PointVerifying,
		gitrepo.PointBeforeTransaction, gitrepo.PointAfterTransaction, activities.PointBeforeRecord,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			once := filepath.Join(t.TempDir(), "drained")
			lab := testkit.NewLab(t, testkit.LabOptions{Env: []string{"MENDFLOW_TEST_DRAIN_AT=" + point + "=" + once}})
			c := testkit.NewCase(t, testkit.RunID(t), crashPlan())
			scriptCrash(t, lab, c.Run)
			lab.Start(t, c)
			select {
			case <-lab.Host.Done():
			case <-time.After(testkit.Guard):
				t.Fatal("the host did not end")
			}
			require.FileExists(t, once)
			require.Empty(t, testkit.Marked(c.Run), "nothing of the run is alive on a host that ended")
			require.NoError(t, lab.Host.Restart())
			v := lab.Client.AwaitClosed(t, c.Run)
			testkit.CheckInvariants(t, lab.Scene(c))
			require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
			requireAllLanded(t, lab, c)
			requireNothingLeft(t, lab, c)
		})
	}
}

// TestDrainThatFinishesLetsWorkersLand asks a host to stop that finishes: the
// attempts that run go to their end, landing included, and nothing new begins there.
func TestDrainThatFinishesLetsWorkersLand(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Args: []string{"--drain", "finish"}})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta", After: []string{"alpha"}}}})
	lab.Control.Script(t, c.Run, "alpha", "mark alpha/work.txt", "tell working", "wait go", "result resolved")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	lab.Host.Terminate()
	testkit.Eventually(t, "the drain begins", func() bool { return strings.Contains(lab.Host.Output(), "draining") })
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	select {
	case <-lab.Host.Done():
	case <-time.After(testkit.Guard):
		t.Fatal("the host did not end")
	}
	require.Equal(t, 1, lab.Control.Starts(t, c.Run, "alpha"))
	require.Zero(t, lab.Control.Starts(t, c.Run, "beta"), "nothing new began")
	truth := contract.TruthRef(c.Run)
	require.Equal(t, "1", c.Repo.Git(t, "rev-list", "--count", "HEAD.."+truth), "it landed")
	require.NoError(t, lab.Host.Restart())
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Len(t, lab.Client.Nodes(t, c.Run)["alpha"].Attempts, 1)
}
