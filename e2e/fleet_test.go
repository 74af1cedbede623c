package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// hubs are the ways in which several hosts reach one hub.
var hubs = map[string]func(*testing.T, *testkit.Case) *testkit.Repo{
	"path": func(_ *testing.T, c *testkit.Case) *testkit.Repo { return c.Repo },
	"http": func(t *testing.T, c *testkit.Case) *testkit.Repo {
		hub, _ := c.Repo.ServeHTTP(t, filepath.Join(c.Dir, "hub.git"), false)
		return hub
	},
	"git": func(t *testing.T, c *testkit.Case) *testkit.Repo {
		return c.Repo.ServeGit(t, filepath.Join(c.Dir, "hub.git"), "127.0.0.1")
	},
}

// flatPlan has n nodes that do not wait for each other.
func flatPlan(n int) testkit.Plan {
	var p testkit.Plan
	for i := range n {
		p.Nodes = append(p.Nodes, testkit.Node{ID: fmt.Sprintf("n%02d", i+1)})
	}
	return p
}

// onHub makes a case whose hub is reached in one of the ways.
func onHub(t *testing.T, p testkit.Plan, hub func(*testing.T, *testkit.Case) *testkit.Repo) *testkit.Case {
	t.Helper()
	c := testkit.NewCase(t, testkit.RunID(t), p)
	c.Repo = hub(t, c)
	c.Before = c.Repo.Checkout(t)
	return c
}

// trees are the worktrees in which workers of a run are at work, by node.
func trees(t *testing.T, f *testkit.Fleet, run string) map[string]string {
	t.Helper()
	at := map[string]string{}
	for _, e := range f.Control.Events(t, run) {
		switch e.Kind {
		case "start":
			at[e.Node] = e.Tree
		case "end":
			delete(at, e.Node)
		}
	}
	return at
}

// perHost counts trees by the host on which they are.
func perHost(f *testkit.Fleet, at map[string]string) map[string]int {
	n := map[string]int{}
	for _, tree := range at {
		if h := f.At(tree); h != nil {
			n[filepath.Base(h.State)]++
		}
	}
	return n
}

// requireGreen waits for the run's end and looks at everything.
func requireGreen(t *testing.T, f *testkit.Fleet, c *testkit.Case) {
	t.Helper()
	v := f.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, f.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	for id, row := range f.Client.Nodes(t, c.Run) {
		require.Equal(t, contract.NodeLanded, row.State, "%s: %s", id, row.Reason)
	}
}

// Three hosts that serve pools in different combinations fill up exactly as far
// as each has slots, and all land on the same truth.
func TestAttemptsSpreadOverHostsByFreeSlots(t *testing.T) {
	t.Parallel()
	for name, hub := range hubs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := testkit.NewFleet(t, testkit.FleetOptions{Hosts: [][]testkit.Pool{
				{{ID: "p", Max: 3}},
				{{ID: "p", Max: 1}, {ID: "q", Max: 1}},
				{{ID: "q", Max: 2}},
			}})
			c := onHub(t, flatPlan(14), hub)
			f.Control.Script(t, c.Run, "default", "mark {node}/work.txt", "wait go", "result resolved")
			f.Start(t, c)
			testkit.Eventually(t, "every slot of every host is used", func() bool { return len(trees(t, f, c.Run)) == 7 })
			require.Equal(t, map[string]int{"host-1": 3, "host-2": 2, "host-3": 2}, perHost(f, trees(t, f, c.Run)))
			require.NoError(t, f.Control.Tell(c.Run, "go"))
			requireGreen(t, f, c)
		})
	}
}

// What is kept lies on the disk of one host: every node goes on there, in its
// own tree, after the worker processes of both hosts were restarted.
func TestKeptTreesGoOnOnTheirHosts(t *testing.T) {
	t.Parallel()
	f := testkit.NewFleet(t, testkit.FleetOptions{Hosts: [][]testkit.Pool{{{ID: "p", Max: 2}}, {{ID: "p", Max: 2}}}})
	c := onHub(t, flatPlan(4), hubs["http"])
	f.Control.Script(t, c.Run, "default", "mark {node}/work.txt", "tell working-{node}", "wait go", "mark {node}/work.txt", "result resolved")
	f.Start(t, c)
	for _, n := range c.Plan.Nodes {
		f.Control.Await(t, c.Run, "working-"+n.ID)
	}
	before := trees(t, f, c.Run)
	require.Equal(t, map[string]int{"host-1": 2, "host-2": 2}, perHost(f, before))

	f.Client.OK(t, "pause", c.Run)
	f.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	for _, h := range f.Hosts {
		require.NoError(t, h.Stop())
		require.NoError(t, h.Restart())
	}
	require.NoError(t, f.Control.Tell(c.Run, "go"))
	f.Client.OK(t, "resume", c.Run)
	requireGreen(t, f, c)
	for _, e := range f.Control.Events(t, c.Run) {
		if e.Kind == "start" {
			require.Equal(t, before[e.Node], e.Tree, "%s attempt %s", e.Node, e.Attempt)
		}
	}
}

// A host that never comes back costs its nodes a clean start. What it had
// salvaged is in the hub by then, whatever becomes of its disk.
func TestHostThatNeverComesBackCostsACleanStartAndNoSalvage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"path", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := testkit.NewFleet(t, testkit.FleetOptions{Hosts: [][]testkit.Pool{{{ID: "p", Max: 2}}, {{ID: "p", Max: 2}}}})
			c := onHub(t, flatPlan(4), hubs[name])
			f.Control.Script(t, c.Run, "default", "mark {node}/work.txt", "tell working-{node}", "wait go", "mark {node}/work.txt", "result resolved")
			f.Start(t, c)
			for _, n := range c.Plan.Nodes {
				f.Control.Await(t, c.Run, "working-"+n.ID)
			}
			before := trees(t, f, c.Run)
			f.Client.OK(t, "pause", c.Run)
			f.Client.AwaitStatus(t, c.Run, contract.RunPaused)
			lost := f.Hosts[1]
			f.Lose(t, lost)
			require.NoError(t, f.Control.Tell(c.Run, "go"))
			f.Client.OK(t, "resume", c.Run)
			requireGreen(t, f, c) // every mark, also of the lost host, is landed or salvaged

			rows := f.Client.Nodes(t, c.Run)
			for _, id := range slices.Sorted(maps.Keys(before)) {
				if f.At(before[id]) != nil {
					continue
				}
				require.True(t, slices.ContainsFunc(rows[id].Attempts, func(a contract.AttemptRow) bool {
					return strings.Contains(a.Reason, "did not come back")
				}), "%s: %+v", id, rows[id])
				for _, a := range rows[id].Attempts {
					require.True(t, a.Outcome == contract.OutcomeSuccess || !a.Charged, "%s: a lost host charges nobody: %+v", id, a)
				}
				salvage := rows[id].Attempts[0].Salvage
				require.NotEmpty(t, salvage)
				require.Contains(t, c.Repo.Git(t, "show", salvage+":"+id+"/work.txt"), "mark ")
			}
		})
	}
}
