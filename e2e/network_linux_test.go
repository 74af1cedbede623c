package e2e

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestHostsBehindACutAndASlowLink puts server and hub on one host and two workers
// on others, each in a network of its own: one behind a slow link, one whose link
// is cut for longer than a heartbeat. What the cut host did meanwhile lands when
// it is back, and nothing is done twice.
func TestHostsBehindACutAndASlowLink(t *testing.T) {
	t.Parallel()
	if os.Getenv("MENDFLOW_TEST_POSTGRES") != "" {
		t.Skip("the server of the test has a network of its own, from which no PostgreSQL on this machine's loopback is reached")
	}
	nw := testkit.NewNetwork(t, 2)
	dir := t.TempDir()
	f := &testkit.Fleet{Dir: dir, Pools: filepath.Join(dir, "pools.yaml")}
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	var err error
	f.Control, err = testkit.NewControl(filepath.Join(dir, "control"))
	require.NoError(t, err)
	require.NoError(t, testkit.WritePools(f.Pools, f.Control, testkit.Pool{ID: "p", Max: 4}))
	f.Server, err = testkit.StartServerAt(dir, nw.Hub.IP, nw.Hub.Enter()...)
	require.NoError(t, err)
	t.Logf("the second host's link: %s", nw.Slow(nw.Places[1], "4mbit", "40ms"))

	c := networkCase(t, nw)
	f.Client, err = testkit.NewClient(nw.Proxy(f.Server.Address), filepath.Join(dir, "user"))
	require.NoError(t, err)
	f.Client.Artifacts, f.Client.In, f.Client.At = f.Artifacts(), nw.Hub.Enter(), f.Server.Address
	require.NoError(t, testkit.LetRunsWork(f.Client.Address))
	served := filepath.Join(dir, "served.yaml")
	require.NoError(t, testkit.WritePools(served, f.Control, testkit.Pool{ID: "p", Max: 2}))
	for i, place := range nw.Places {
		name := []string{"cut", "slow"}[i]
		h, err := testkit.StartHost(testkit.HostOptions{
			Address: f.Server.Address, Name: name, State: filepath.Join(dir, name), Pools: served, Artifacts: f.Artifacts(), In: place.Enter(),
		})
		require.NoError(t, err)
		f.Hosts = append(f.Hosts, h)
	}
	f.Control.Script(t, c.Run, "default", "mark {node}/work.txt", "wait go", "mark {node}/work.txt", "tell done-{node}", "result resolved")
	f.Start(t, c)
	testkit.Eventually(t, "every slot of both hosts is used", func() bool { return len(trees(t, f, c.Run)) == 4 })
	at := trees(t, f, c.Run)
	require.Equal(t, map[string]int{"cut": 2, "slow": 2}, perHost(f, at))

	nw.Cut(nw.Places[0])
	for node, tree := range at {
		if f.At(tree) == f.Hosts[0] {
			awaitStep(t, f, contract.NodeID(c.Run, 1, node, 1), "release")
		}
	}
	require.NoError(t, f.Control.Tell(c.Run, "go"))
	for node := range at { // those of the cut host end too, and cannot tell
		f.Control.Await(t, c.Run, "done-"+node)
	}
	nw.Mend(nw.Places[0])
	requireGreen(t, f, c)
	for node := range at {
		require.Equal(t, 1, f.Control.Starts(t, c.Run, node), "%s was worked on again", node)
	}
}

// networkCase is a case with a file that takes a while on a slow link, whose hub is served in the network.
func networkCase(t *testing.T, nw *testkit.Network) *testkit.Case {
	t.Helper()
	p := flatPlan(6)
	c := &testkit.Case{Run: testkit.RunID(t), Dir: t.TempDir(), Plan: p}
	files := p.Files()
	files["large.bin"] = rand.Text()
	for len(files["large.bin"]) < 1<<20 {
		files["large.bin"] += rand.Text()
	}
	c.Repo = testkit.NewRepo(t, filepath.Join(c.Dir, "repo"), files).ServeGit(t, filepath.Join(c.Dir, "hub.git"), nw.Hub.IP, nw.Hub.Enter()...)
	// The starter reads it by path: it is on the hub's host.
	c.Path = p.Write(t, filepath.Join(c.Dir, "plan.yaml"))
	c.Before = c.Repo.Checkout(t)
	return c
}

// awaitStep waits until an attempt is at a step.
func awaitStep(t *testing.T, f *testkit.Fleet, id, step string) {
	t.Helper()
	testkit.Eventually(t, id+" is at "+step, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		answer, err := f.Client.Server().QueryWorkflow(ctx, id, "", contract.QueryStatus)
		var at string
		return err == nil && answer.Get(&at) == nil && at == step
	})
}
