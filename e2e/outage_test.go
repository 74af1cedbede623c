package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestServerOutageLongerThanTheHeartbeat takes the server away from a host that
// works on: its attempts time out on the server while their workers still run.
// No second worker may start in a tree whose first is alive.
func TestServerOutageLongerThanTheHeartbeat(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Durable: true})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta"}}})
	lab.Control.Script(t, c.Run, "alpha.a1", "stubborn", "mark alpha/work.txt", "tell working", "hang")
	lab.Control.Script(t, c.Run, "beta.a1", "mark beta/work.txt", "tell started", "wait back", "mark beta/work.txt", "result resolved")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	lab.Control.Await(t, c.Run, "started")
	lab.Server.Kill()
	// The outage has to be longer than a heartbeat timeout: that it lasts is the condition.
	time.Sleep(15 * time.Second)
	require.NoError(t, lab.Control.Tell(c.Run, "back"))
	require.NoError(t, lab.Server.Restart())
	v := lab.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	requireAllLanded(t, lab, c)
	requireNothingLeft(t, lab, c)
}
