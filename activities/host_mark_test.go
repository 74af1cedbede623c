package activities

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

// Two deployments on one machine may have given their workers one name: a worker
// that starts ends what an earlier one of its own left, and nothing of the other's.
func TestHostsOfOneNameSpareEachOthersPrograms(t *testing.T) {
	t.Parallel()
	one, two := &Host{ID: "host", StateDir: t.TempDir()}, &Host{ID: "host", StateDir: t.TempDir()}
	program := exec.Command("sleep", "600")
	program.Env = append(program.Environ(), process.MarkVariable+"="+one.Mark()+"/run/node/a1")
	require.NoError(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })

	left, err := process.Sweep(context.Background(), two.Mark())
	require.NoError(t, err)
	require.Empty(t, left)
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	left, err = process.Sweep(context.Background(), one.Mark())
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Error(t, <-ended, "by TERM")
}
