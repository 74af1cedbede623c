package workflows

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"mendflow/internal/contract"
)

// pausedUndead brings a run to where it is pausing because a host could not end a
// worker: its proof is held back.
func pausedUndead(t *testing.T) (l *lab, prove func()) {
	t.Helper()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	h.undead = "end program: still alive: 7 (agent)"
	worker, release := h.hold("RunWorker")
	proof, prove := h.hold("ProveQuiet")
	l = newLab(t, h).begin()
	awaitClosed(t, "RunWorker", worker)
	l.ordered(contract.CommandPause, contract.Operator{})
	awaitClosed(t, "ProveQuiet", proof)
	h.undead = ""
	release()
	return l, prove
}

// A program that cannot be stopped keeps the run pausing, visibly, until its host
// says that it is gone.
func TestRunIsPausedOnlyWhenNothingOfItIsAlive(t *testing.T) {
	t.Parallel()
	l, prove := pausedUndead(t)
	defer prove()
	v := l.view()
	require.Equal(t, contract.RunPausing, v.Status)
	require.Len(t, v.Unproven, 1)
	require.Equal(t, "a", v.Unproven[0].Node)
	require.Equal(t, testHost, v.Unproven[0].Host)
	answer := l.ordered(contract.CommandQuiesce, contract.Operator{})
	require.Len(t, answer.Done, 1)
	require.Contains(t, answer.Done[0], "nothing proves that attempt 1 of a has ended on host "+testHost+" (end program: still alive: 7 (agent))")

	l.renew(l.id) // the question is asked anew
	require.Equal(t, contract.RunPausing, l.view().Status)
	prove()
	v = l.untilStatus(contract.RunPaused)
	require.Empty(t, v.Unproven)
	require.Equal(t, []string{"nothing of the run is alive"}, l.ordered(contract.CommandQuiesce, contract.Operator{Force: true}).Done)
	require.Equal(t, contract.QuietInput{Run: l.in.Run, Node: "a", Attempt: 1}, l.host.proofs[0])
	l.ordered(contract.CommandResume, contract.Operator{})

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Nil(t, l.host.tried("a")[1].Kept, "nobody works in a tree that somebody else may write to")
}

// A resume meanwhile does not let the run go on beside what may still be alive.
func TestResumeOfAPausingRunWaitsForTheProof(t *testing.T) {
	t.Parallel()
	l, prove := pausedUndead(t)
	defer prove()
	l.ordered(contract.CommandResume, contract.Operator{})
	v := l.view()
	require.Empty(t, v.Holds)
	require.Equal(t, contract.RunPausing, v.Status)
	require.Len(t, l.host.tried("a"), 1)
	prove()

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
}

// What does not end can be given up: the run has to be recovered, and is never paused.
func TestQuiesceByForceLeavesARunToRecover(t *testing.T) {
	t.Parallel()
	for _, how := range []string{contract.RecoverContinue, contract.RecoverClean, contract.RecoverAbandon} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l, prove := pausedUndead(t)
			defer prove()
			answer := l.ordered(contract.CommandQuiesce, contract.Operator{Force: true})
			require.Equal(t, contract.RunRecovery, answer.Status)
			v := l.view()
			require.Equal(t, contract.RunRecovery, v.Status)
			require.Len(t, v.Holds, 2, "the operator's hold is still the operator's")
			require.Equal(t, contract.HoldRecovery, v.Holds[1].Kind)
			require.Contains(t, v.Holds[1].Reason, "host_lost: given up by an operator: nothing proves that attempt 1 of a")
			require.Equal(t, contract.RunRecovery, l.view().Status)

			l.ordered(contract.CommandResume, contract.Operator{})
			require.Equal(t, contract.RunRecovery, l.untilStatus(contract.RunRecovery).Status, "resume does not recover")
			answer = l.ordered(contract.CommandRecover, contract.Operator{How: how})
			require.NotEmpty(t, answer.Done)

			result := l.wait()
			if how == contract.RecoverAbandon {
				require.Equal(t, contract.RunCancelled, result.Status)
				return
			}
			require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
			require.Equal(t, how == contract.RecoverClean, l.host.count("RestoreTruth") == 1)
		})
	}
}

// A drive that does not end is given up with its nodes, which come back under
// numbers that it cannot have used; what it reports later is nobody's any more.
func TestQuiesceByForceGivesUpADriveThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("ReleaseWorktree")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "ReleaseWorktree", entered)
	refused := l.ordered(contract.CommandQuiesce, contract.Operator{Force: true})
	require.Equal(t, []string{"nothing was given up: the run goes on; pause it first"}, refused.Done)
	l.ordered(contract.CommandPause, contract.Operator{})
	l.untilStatus(contract.RunPausing)
	require.Equal(t, []string{"drive L01 runs with 1 nodes (a)"}, l.ordered(contract.CommandQuiesce, contract.Operator{}).Done)

	answer := l.ordered(contract.CommandQuiesce, contract.Operator{Force: true})
	require.Equal(t, contract.RunRecovery, answer.Status)
	release()
	l.ordered(contract.CommandRecover, contract.Operator{How: contract.RecoverContinue})
	l.untilStatus(contract.RunPaused)
	l.ordered(contract.CommandResume, contract.Operator{})

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Greater(t, h.tried("a")[1].Attempt, lostDriveAttempts)
}

// The way of a recovery that nobody knows is refused, and changes nothing.
func TestRecoverRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	l, prove := pausedUndead(t)
	defer prove()
	require.Equal(t, []string{"nothing is to be recovered"}, l.ordered(contract.CommandRecover, contract.Operator{}).Done)
	l.ordered(contract.CommandQuiesce, contract.Operator{Force: true})
	answer := l.ordered(contract.CommandRecover, contract.Operator{How: "hope"})
	require.Contains(t, answer.Done[0], "nothing was done")
	require.Len(t, answer.Holds, 2)
	l.ordered(contract.CommandCancel, contract.Operator{})
	require.Equal(t, contract.RunCancelled, l.wait().Status)
}

// attemptOf runs a Node whose worker and release end as given.
func attemptOf(t *testing.T, worker, release error) contract.AttemptResult {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLogger{})
	env := suite.NewTestWorkflowEnvironment()
	env.OnActivity(attempt.RunWorker, mock.Anything, mock.Anything).Return(contract.WorkerEnd{}, worker)
	env.OnActivity(landing.ReleaseWorktree, mock.Anything, mock.Anything).Return(contract.ReleaseEnd{Kept: &contract.Kept{Attempt: 1, Host: "h"}}, release)
	env.RegisterActivity(attempt.RunWorker)
	env.RegisterActivity(landing.ReleaseWorktree)
	env.ExecuteWorkflow(Node, contract.NodeInput{Run: "r", Drive: 1, Node: "a", Opening: 1, Attempt: 1, Pool: "p", Limits: contract.Limits{Worker: 5, Land: 5}})
	require.True(t, env.IsWorkflowCompleted())
	var result contract.AttemptResult
	require.NoError(t, env.GetWorkflowResult(&result))
	return result
}

// A host that stops answering in the middle leaves something to be proven, unless
// it is back to release the tree.
func TestSilentHostLeavesSomethingToBeProven(t *testing.T) {
	t.Parallel()
	beat := contract.Beat{Host: "h", Step: "worker", Tree: true, Session: "s"}
	silent := temporal.NewHeartbeatTimeoutError(beat)
	away := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)

	back := attemptOf(t, silent, nil)
	require.Equal(t, contract.OutcomeInterrupted, back.Outcome)
	require.Nil(t, back.Unproven, "it answered: nothing is alive there")
	require.NotNil(t, back.Kept)

	gone := attemptOf(t, silent, away)
	require.Equal(t, contract.OutcomeInterrupted, gone.Outcome)
	require.Equal(t, "h", gone.Unproven.Host)
	require.Equal(t, 1, gone.Unproven.Attempt)
	require.Nil(t, gone.Kept, "the node goes on elsewhere")

	mute := attemptOf(t, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), nil)
	require.Empty(t, mute.Unproven.Host, "it never said where it was")

	never := attemptOf(t, away, nil)
	require.Nil(t, never.Unproven, "nothing began")

	undead := attemptOf(t, temporal.NewApplicationError("still alive", contract.ErrorProcessAlive), nil)
	require.NotNil(t, undead.Unproven)
}

// After a pause there is time: the tree of a host that is away is kept for when it is back.
func TestTreeOfASilentHostIsKeptOverAPause(t *testing.T) {
	t.Parallel()
	away := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	for _, c := range []struct {
		paused bool
		err    error
		kept   bool
	}{{true, away, true}, {false, away, false}, {true, temporal.NewApplicationError("no", contract.ErrorInternal), false}} {
		n := &node{silent: true, result: contract.AttemptResult{Kept: &contract.Kept{Attempt: 1, Host: "h"}}}
		n.notReleased("h", c.paused, c.err)
		require.Equal(t, c.kept, n.result.Kept != nil)
		require.Equal(t, "h", n.result.Unproven.Host)
	}
}

func TestLostTrackTellsWhatMayBeAlive(t *testing.T) {
	t.Parallel()
	require.Nil(t, lostTrack(temporal.NewCanceledError()))
	require.Nil(t, lostTrack(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)))
	require.Nil(t, lostTrack(temporal.NewApplicationError("no", contract.ErrorInternal)))
	require.Equal(t, "h", lostTrack(temporal.NewHeartbeatTimeoutError(contract.Beat{Host: "h"})).Host)
	where := temporal.NewApplicationError("alive", contract.ErrorProcessAlive, contract.Unproven{Host: "g", Why: "7"})
	require.Equal(t, contract.Unproven{Host: "g", Why: "7"}, *lostTrack(where))
}

// A gate that was stopped and whose host cannot end it does not fail the run: the
// run is pausing until it is proven that the gate has ended.
func TestPauseDuringAGateThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	h.opened.Baseline = "require"
	entered := make(chan struct{})
	var once sync.Once
	h.gate = func(ctx context.Context, _ contract.GateInput) (contract.GateEnd, error) {
		first := false
		once.Do(func() { close(entered); first = true })
		if !first {
			return contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth"}, nil
		}
		waitBeating(ctx, make(chan struct{}))
		return contract.GateEnd{}, temporal.NewApplicationError("still alive", contract.ErrorProcessAlive, contract.Unproven{Host: testHost, Why: "7 (go)"})
	}
	proof, prove := h.hold("ProveQuiet")
	defer prove()
	l := newLab(t, h).begin()
	awaitClosed(t, "the gate", entered)

	l.ordered(contract.CommandPause, contract.Operator{})
	awaitClosed(t, "ProveQuiet", proof)
	v := l.view()
	require.Equal(t, contract.RunPausing, v.Status)
	require.Contains(t, l.ordered(contract.CommandQuiesce, contract.Operator{}).Done[0], "nothing proves that the gate has ended on host "+testHost)
	prove()
	l.untilStatus(contract.RunPaused)
	l.ordered(contract.CommandResume, contract.Operator{})

	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
}
