package workercmd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A child that a killed worker was just starting keeps its lock until it has
// become another program: a restart at once must not fail for that.
func TestALockThatGoesAwaySoonIsWaitedFor(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	unlock, err := lockState(t.Context(), state)
	require.NoError(t, err)
	time.AfterFunc(4*lockRetry, unlock)
	again, err := lockState(t.Context(), state)
	require.NoError(t, err)
	again()
}

func TestAStateFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	unlock, err := lockState(t.Context(), state)
	require.NoError(t, err)
	defer unlock()
	_, err = lockState(t.Context(), state)
	require.ErrorContains(t, err, "another worker uses")
}
