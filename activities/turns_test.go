package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANewcomerEndsWhoIsAtTheAttemptAndWaits(t *testing.T) {
	t.Parallel()
	var turns turns
	old, leave, err := turns.take(t.Context(), "r", "n", 1)
	require.NoError(t, err)
	entered := make(chan func())
	go func() {
		_, leave, err := turns.take(t.Context(), "r", "n", 1)
		if err == nil {
			entered <- leave
		}
	}()
	<-old.Done() // it was told to end
	select {
	case <-entered:
		t.Fatal("the newcomer did not wait for the end of the old one")
	default:
	}
	leave()
	(<-entered)()
}

func TestAttemptsDoNotWaitForOneAnother(t *testing.T) {
	t.Parallel()
	var turns turns
	first, leaveFirst, err := turns.take(t.Context(), "r", "n", 1)
	require.NoError(t, err)
	_, leaveSecond, err := turns.take(t.Context(), "r", "n", 2)
	require.NoError(t, err)
	require.NoError(t, first.Err())
	leaveSecond()
	leaveFirst()
}

func TestAnImpatientNewcomerGoesAway(t *testing.T) {
	t.Parallel()
	var turns turns
	_, leave, err := turns.take(t.Context(), "r", "n", 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = turns.take(ctx, "r", "n", 1)
	require.ErrorIs(t, err, context.Canceled)
	leave()
	_, leave, err = turns.take(t.Context(), "r", "n", 1)
	require.NoError(t, err)
	leave()
}
