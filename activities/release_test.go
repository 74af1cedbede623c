package activities

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"mendflow/internal/contract"
	"mendflow/internal/process"
)

func (s *landScene) release(t *testing.T, in contract.ReleaseInput) contract.ReleaseEnd {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	landing := &Landing{Host: s.host}
	env.RegisterActivity(landing.ReleaseWorktree)
	value, err := env.ExecuteActivity(landing.ReleaseWorktree, in)
	require.NoError(t, err)
	var end contract.ReleaseEnd
	require.NoError(t, value.Get(&end))
	return end
}

// continuing is the release of an attempt that was to go on in the scene's tree
// and was lost before it had taken it over.
func (s *landScene) continuing(keep bool) contract.ReleaseInput {
	in := contract.ReleaseInput{NodeInput: s.in.NodeInput, Keep: keep, Step: "worker"}
	in.Attempt, in.Kept = 2, &contract.Kept{Attempt: 1, Host: "h", Pool: "p", Step: "worker"}
	return in
}

func TestATreeThatWasNotTakenOverIsKeptForTheNextAttempt(t *testing.T) {
	t.Parallel()
	s := newLandScene(t)
	end := s.release(t, s.continuing(true))
	require.NotNil(t, end.Kept)
	require.Equal(t, 1, end.Kept.Attempt)
	require.DirExists(t, s.tree.Path())
}

func TestATreeThatWasNotTakenOverIsReleasedWithAnAttemptThatFailed(t *testing.T) {
	t.Parallel()
	s := newLandScene(t)
	end := s.release(t, s.continuing(false))
	require.Nil(t, end.Kept)
	require.NotEmpty(t, end.Salvage)
	require.NoDirExists(t, s.tree.Path())
}

func TestATreeWithoutARecordIsSalvagedAndNotKept(t *testing.T) {
	t.Parallel()
	s := newLandScene(t)
	require.NoError(t, os.Remove(filepath.Join(s.host.attemptDir("r", "n", 1), recordName)))
	end := s.release(t, contract.ReleaseInput{NodeInput: s.in.NodeInput, Keep: true, Step: "setup"})
	require.Nil(t, end.Kept, "its setup may have been cut short")
	require.NotEmpty(t, end.Salvage)
	require.NoDirExists(t, s.tree.Path())
}

// idle are the trees that wait for another attempt, aside those that never will.
func (s *landScene) idle(t *testing.T) (idle, aside []string) {
	t.Helper()
	idle, err := filepath.Glob(filepath.Join(s.host.StateDir, "idle", "*", "*", "t"))
	require.NoError(t, err)
	aside, err = filepath.Glob(filepath.Join(s.host.StateDir, "quarantine", "*", "t"))
	require.NoError(t, err)
	return idle, aside
}

func (s *landScene) note(t *testing.T, change func(*record)) {
	t.Helper()
	dir := s.host.attemptDir("r", "n", 1)
	rec, err := readRecord(dir)
	require.NoError(t, err)
	change(&rec)
	require.NoError(t, writeRecord(dir, rec))
}

func TestOnlyATreeWhoseWorkerWasSeenToEndIsGivenToAnother(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]bool{"its end was seen": true, "its host died": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLandScene(t)
			s.note(t, func(r *record) { r.Ended = seen })
			end := s.release(t, contract.ReleaseInput{NodeInput: s.in.NodeInput})
			require.NotEmpty(t, end.Salvage)
			require.Empty(t, end.Left)
			require.NoDirExists(t, s.tree.Path())
			idle, aside := s.idle(t)
			require.Equal(t, seen, len(idle) == 1, idle)
			require.Empty(t, aside)
		})
	}
}

func TestALandedTreeWhoseHostDiedIsNotGivenToAnother(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]bool{"its end was seen": true, "its host died": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLandScene(t)
			s.note(t, func(r *record) { r.Ended = seen })
			end := s.land(t)
			require.NotEmpty(t, end.Commit)
			require.True(t, end.Released)
			idle, aside := s.idle(t)
			require.Equal(t, seen, len(idle) == 1, idle)
			require.Empty(t, aside)
		})
	}
}

func TestATreeThatSomethingStillWritesToIsNeitherKeptNorRemoved(t *testing.T) {
	t.Parallel()
	s := newLandScene(t)
	dir := s.host.attemptDir("r", "n", 1)
	rec, err := readRecord(dir)
	require.NoError(t, err)
	failed := fmt.Errorf("run worker: %w", &process.AliveError{Left: []process.LeftProcess{{PID: 1, Command: "undying"}}})
	require.ErrorContains(t, rec.survived(dir, failed), "undying")
	require.NoError(t, rec.survived(dir, nil))

	end := s.release(t, contract.ReleaseInput{NodeInput: s.in.NodeInput, Keep: true})
	require.Nil(t, end.Kept)
	require.NotEmpty(t, end.Salvage, "what it had done by then is kept")
	idle, aside := s.idle(t)
	require.Empty(t, idle)
	require.Len(t, aside, 1)
	require.FileExists(t, filepath.Join(aside[0], "a.txt"))
}
