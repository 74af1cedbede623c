package host

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
)

// A checkout of a huge repository takes its time: the host is not taken for
// dead meanwhile, and says what it is at.
func TestHostIsHeardDuringALongCheckout(t *testing.T) {
	t.Parallel()
	r := newRig(t, doneLine, nil)
	var slow atomic.Bool
	git, err := gitrepo.NewStore(gitrepo.Settings{StateDir: filepath.Join(t.TempDir(), "slow"), HostID: "host", Hook: func(point string) {
		if point == gitrepo.PointWorktreeAdded && slow.CompareAndSwap(false, true) {
			time.Sleep(activities.BeatEvery * 5 / 2)
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, git.Close()) })
	r.host.Git = git
	beats := make(chan contract.Beat, 100)
	r.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var beat contract.Beat
		if details.Get(&beat) == nil {
			beats <- beat
		}
	})
	_, err = r.work()
	require.NoError(t, err)
	require.True(t, slow.Load())
	select {
	case beat := <-beats:
		require.Equal(t, "host", beat.Host)
		require.Equal(t, "prepare", beat.Step)
	default:
		t.Fatal("the host was silent")
	}
}
