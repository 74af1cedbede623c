package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
)

func TestGreenRunOnTheServer(t *testing.T) {
	t.Parallel()
	l := newLab(t, newHost(unit("a", 0), unit("b", 0), unit("c", 1, "a"), unit("d", 2, "c"))).begin()

	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, l.host.rows(), 4)
}

// pausePoints are the moments of a run in which an order may come.
var pausePoints = []struct {
	name     string
	activity string
	// stops: an interrupt ends the activity; otherwise it goes to its end.
	stops bool
}{
	{"open", "OpenRun", true},
	{"load", "LoadUnits", true},
	{"baseline", "RunGate", true},
	{"worker", "RunWorker", true},
	{"land", "LandWork", true},
	{"release", "ReleaseWorktree", false},
}

func TestPauseAndResumeAtEveryStage(t *testing.T) {
	t.Parallel()
	for _, point := range pausePoints {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 1, "a"))
			h.opened.Baseline = "require"
			entered, release := h.hold(point.activity)
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, point.activity, entered)

			answer := l.ordered(contract.CommandPause, contract.Operator{Reason: "maintenance", By: "ops"})
			require.Equal(t, contract.HoldOperator, answer.Holds[0].Kind)
			if !point.stops {
				l.untilStatus(contract.RunPausing)
				release()
			}
			v := l.untilStatus(contract.RunPaused)
			require.Equal(t, "maintenance", v.Holds[0].Reason)
			require.Equal(t, "ops", v.Holds[0].By)
			begun := l.host.count("RunWorker")

			release()
			l.ordered(contract.CommandResume, contract.Operator{})
			result := l.wait()
			require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
			if point.stops && point.activity == "RunWorker" {
				require.Equal(t, 1, begun)
				require.NotNil(t, l.host.tried("a")[1].Kept, "the same tree is continued")
			}
			for id, row := range l.host.rows() {
				require.Equal(t, contract.NodeLanded, row.State, id)
			}
		})
	}
}

func TestPauseDuringTheFinalGate(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	h.opened.Baseline = "accept"
	l := newLab(t, h)
	entered, release := make(chan struct{}), make(chan struct{})
	h.gate = holdGate(gateFinal, entered, release)
	l.begin()
	awaitClosed(t, "the final gate", entered)

	l.signal(contract.CommandPause, nil)
	l.untilStatus(contract.RunPaused)
	close(release)
	l.signal(contract.CommandResume, nil)

	require.Equal(t, contract.RunCompleted, l.wait().Status)
}

func TestCancelAtEveryStage(t *testing.T) {
	t.Parallel()
	for _, point := range pausePoints {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 1, "a"))
			h.opened.Baseline = "require"
			entered, release := h.hold(point.activity)
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, point.activity, entered)

			answer := l.ordered(contract.CommandCancel, contract.Operator{Reason: "enough"})
			require.NotEmpty(t, answer.Done)
			if !point.stops {
				release()
			}
			result := l.wait()

			require.Equal(t, contract.RunCancelled, result.Status)
			require.Equal(t, "enough", result.Reason)
			if point.activity != "OpenRun" { // nothing was opened: there is nothing to tell
				require.NotNil(t, result.Report, "branch, salvage and report stay")
			}
		})
	}
}

// `temporal workflow cancel` is the same order.
func TestWorkflowCancelEndsTheRunInOrder(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	require.NoError(t, l.client.CancelWorkflow(t.Context(), l.id, ""))
	result := l.wait()

	require.Equal(t, contract.RunCancelled, result.Status)
	require.NotNil(t, result.Report)
	require.Equal(t, contract.OutcomeInterrupted, l.host.rows()["a"].Attempts[0].Outcome)
}

// An order that comes while the run closes is refused as an update, and as a
// signal changes neither verdict nor holds.
func TestOrdersComeTooLateWhileTheRunCloses(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("WriteReport")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "WriteReport", entered)

	_, err := l.update(contract.CommandCancel, contract.Operator{Reason: "late"})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "closing as completed")
	l.signal(contract.CommandCancel, contract.Operator{Reason: "late"})
	l.signal(contract.CommandPause, contract.Operator{Reason: "late"})
	v := l.until("the signals are in", func(contract.RunView) bool {
		return l.signalled(contract.CommandPause) == 1
	})
	require.Equal(t, contract.RunClosing, v.Status)
	require.Empty(t, v.Holds)
	release()

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status)
	require.Empty(t, result.Reason)
	require.Empty(t, l.view().Holds)
}

// Two operators in the same moment: the last word counts, nothing is lost.
func TestPauseAndResumeAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	for range 10 {
		l.signal(contract.CommandPause, "maintenance")
		l.signal(contract.CommandResume, nil)
	}
	release()

	require.Equal(t, contract.RunCompleted, l.wait().Status)
}

func TestFinishingPauseLetsAttemptsLandAndStartsNothing(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	l.ordered(contract.CommandPause, contract.Operator{Finish: true})
	require.Equal(t, contract.RunPausing, l.view().Status)
	release()
	v := l.untilStatus(contract.RunPaused)
	require.Equal(t, 1, v.Nodes[string(contract.NodeLanded)])
	require.Equal(t, 1, l.host.count("RunWorker"))

	l.ordered(contract.CommandResume, contract.Operator{})
	require.Equal(t, contract.RunCompleted, l.wait().Status)
}

func TestSecondPauseTurnsFinishIntoInterrupt(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)

	l.ordered(contract.CommandPause, contract.Operator{Finish: true})
	l.ordered(contract.CommandPause, contract.Operator{})
	l.untilStatus(contract.RunPaused)
	release()
	l.ordered(contract.CommandResume, contract.Operator{})

	require.Equal(t, contract.RunCompleted, l.wait().Status)
	require.Equal(t, contract.OutcomeInterrupted, l.host.rows()["a"].Attempts[0].Outcome)
}

func TestCancelOfAPausedRun(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RunWorker", entered)
	l.ordered(contract.CommandPause, contract.Operator{})
	l.untilStatus(contract.RunPaused)

	l.ordered(contract.CommandCancel, contract.Operator{})
	l.signal(contract.CommandCancel, nil)

	require.Equal(t, contract.RunCancelled, l.wait().Status)
}
