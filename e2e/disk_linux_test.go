package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// smallDisk mounts a file system of its own, where that is permitted.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// fill writes a file until so many bytes are left, and returns how to take it away.
func fill(t *testing.T, path string, left uint64) (free func()) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	block := make([]byte, 1<<16)
	for {
		var st unix.Statfs_t
		require.NoError(t, unix.Statfs(path, &st))
		if st.Bavail*uint64(st.Bsize) < left {
			break
		}
		_, err := file.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

// TestHostWithAFullDiskIsOutOfServiceUntilThereIsSpace fills the disk of the only
// host while workers are at work on it: nobody is charged, nothing more is started
// there, and when there is space the run goes on and nothing is lost.
func TestHostWithAFullDiskIsOutOfServiceUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	smallDisk(t, filepath.Join(dir, "host-1"), "96m")
	f := testkit.NewFleet(t, testkit.FleetOptions{
		Dir: dir, Hosts: [][]testkit.Pool{{{ID: "p", Max: 2}}}, Args: []string{"--disk-floor", "16"},
	})
	c := testkit.NewCase(t, testkit.RunID(t), flatPlan(5))
	f.Control.Script(t, c.Run, "default", "mark {node}/work.txt", "tell working-{node}", "wait go", "mark {node}/work.txt", "result resolved")
	f.Start(t, c)
	testkit.Eventually(t, "both slots are used", func() bool { return len(trees(t, f, c.Run)) == 2 })

	// What the host itself still has to write, its log too, needs some room.
	free := fill(t, filepath.Join(f.Hosts[0].State, "filler"), 4<<20)
	started := len(f.Control.Events(t, c.Run))
	require.NoError(t, f.Control.Tell(c.Run, "go"))
	testkit.Eventually(t, "the host says that it is out of service", func() bool {
		return strings.Contains(f.Hosts[0].Output(), "out of service")
	})
	testkit.Eventually(t, "what was at work has ended", func() bool { return len(trees(t, f, c.Run)) == 0 })
	starts := 0
	for _, e := range f.Control.Events(t, c.Run)[started:] {
		if e.Kind == "start" {
			starts++
		}
	}
	require.Zero(t, starts, "something was started on a full disk")

	free()
	v := f.Client.AwaitClosed(t, c.Run)
	testkit.CheckInvariants(t, f.Scene(c))
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	for id, row := range f.Client.Nodes(t, c.Run) {
		require.Equal(t, contract.NodeLanded, row.State, "%s: %s", id, row.Reason)
		for _, a := range row.Attempts {
			require.True(t, a.Outcome == contract.OutcomeSuccess || !a.Charged, "%s is charged for a full disk: %+v", id, a)
		}
	}
}
