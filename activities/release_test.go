package activities

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"mendflow/internal/contract"
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
