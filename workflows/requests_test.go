package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
)

// A request that comes again is answered as the first time, whatever has happened
// since; its id with another payload is refused. Both survive continue-as-new.
func TestRepeatedRequestsAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	pause := contract.Operator{RequestID: "r-1", Reason: "maintenance", By: "ops"}
	first := l.ordered(contract.CommandPause, pause)
	l.untilStatus(contract.RunPaused)
	l.ordered(contract.CommandResume, contract.Operator{RequestID: "r-2"})
	for _, renewed := range []bool{false, true} {
		if renewed {
			l.until("the attempt goes on", func(contract.RunView) bool { return h.count("RunWorker") == 2 })
			l.renew(l.id)
		}
		pause.By = "somebody else's machine"
		require.Equal(t, first, l.ordered(contract.CommandPause, pause))
		require.Empty(t, l.view().Holds, "it was not paused again")
		for _, other := range []struct{ name, reason string }{{contract.CommandPause, "another reason"}, {contract.CommandCancel, "maintenance"}} {
			_, err := l.update(other.name, contract.Operator{RequestID: "r-1", Reason: other.reason})
			var refused *temporal.ApplicationError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, contract.ErrorRequestReused, refused.Type())
			require.ErrorContains(t, err, "use another request id")
		}
	}
	// Signals have nobody to answer: what is refused shows in status.
	l.signal(contract.CommandPause, pause)
	l.signal(contract.CommandCancel, contract.Operator{RequestID: "r-1"})
	v := l.until("the refusal is told", func(v contract.RunView) bool { return len(v.Friction) == 1 })
	require.Equal(t, contract.FrictionBadMessage, v.Friction[0].Type)
	require.Empty(t, v.Holds)
	release()

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
}

// What was carried out is answered as before also while the run closes; anything new is not.
func TestRepeatedRequestIsAnsweredWhileTheRunCloses(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	worker, releaseWorker := h.hold("RunWorker")
	entered, release := h.hold("WriteReport")
	defer release()
	defer releaseWorker()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", worker)
	order := contract.Operator{RequestID: "r-1", Reason: "enough"}
	first := l.ordered(contract.CommandCancel, order)
	awaitClosed(t, "WriteReport", entered)

	require.Equal(t, first, l.ordered(contract.CommandCancel, order))
	_, err := l.update(contract.CommandPause, contract.Operator{RequestID: "r-2"})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, contract.ErrorRunClosing, refused.Type())
	release()

	require.Equal(t, contract.RunCancelled, l.wait().Status)
}
