package workflows

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// A broker that dies while attempts run is missed when they end; the next nodes
// get their slots from a new one.
func TestAttemptsOutliveTheirBroker(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a", "b"))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h, testPool("main", 1)).begin()
	awaitClosed(t, "RunWorker", entered)

	require.NoError(t, l.client.TerminateWorkflow(t.Context(), contract.BrokerID(l.accounts()[0]), "", "test"))
	release()
	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, l.host.attempts, 3, "no attempt is lost")
}

// A run that is terminated leaves drives: they find nobody to report to, stop
// their attempts and end.
func TestDriveOfATerminatedRunStops(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0))
	_, release := h.hold("LandWork")
	defer release()
	l := newLab(t, h, testPool("main", 1)).begin()
	level := contract.LevelID(l.in.Run, 1)
	testkit.Eventually(t, "an attempt lands", func() bool { return h.count("LandWork") == 1 })

	require.NoError(t, l.client.TerminateWorkflow(t.Context(), l.id, "", "test"))
	release()

	testkit.Eventually(t, "the drive ends", func() bool {
		described, err := l.client.DescribeWorkflowExecution(patience(t), level, "")
		return err == nil && described.WorkflowExecutionInfo.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
	require.LessOrEqual(t, len(h.attempts), 2, "nothing begins any more")
}

// The messages of drives reach the run once each, in order, with everything that
// was told: nothing is lost when many drives settle many nodes at once.
func TestManyNodesSettleAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost()
	for i := range 24 {
		u := unit(nodeName(i), 0)
		if i >= 12 {
			u = unit(nodeName(i), 1, nodeName(i-12))
		}
		h.units = append(h.units, u)
	}
	l := newLab(t, h, testPool("main", 4), testPool("other", 4)).begin()

	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, l.host.attempts, 24)
	require.Len(t, l.host.releases, 24, "every tree is released")
}

// A pool that comes to a running run brings an account that nobody has asked
// for slots yet: its broker is started when the first drive asks.
func TestNewPoolOfARunningRunIsUsed(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0))
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	var once sync.Once
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Pool == "main" {
			once.Do(func() { close(entered) })
			return attemptScript{until: release}
		}
		return attemptScript{}
	}
	l := newLab(t, h, testPool("main", 1)).begin()
	awaitClosed(t, "the first attempt", entered)
	other := testPool("other", 1)
	other.Account = l.in.Run + "-other"

	l.ordered(contract.CommandPools, contract.Operator{Pools: append(l.in.Pools, other)})

	l.until("the other node lands on the other pool", func(v contract.RunView) bool { return v.Nodes["landed"] == 1 })
	require.Equal(t, []string{"main", "other"}, []string{h.tried("a")[0].Pool, h.tried("b")[0].Pool})
	require.Equal(t, 1, h.tried("b")[0].Attempt, "asking again cost no attempt")
}
