package workercmd

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func runWorker(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestWorkersUsageFaultsAreOneLineAndAHint(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"argument"}, {"--slots", "many"}} {
		code, out, errOut := runWorker(t, args...)
		require.Equal(t, exitUsage, code)
		require.Empty(t, out)
		require.Equal(t, 2, strings.Count(errOut, "\n"), errOut)
		require.Contains(t, errOut, "see: worker --help")
	}
}

func TestWorkerRefusesPoolsThatItCannotServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pools := filepath.Join(dir, "pools.yaml")
	code, _, errOut := runWorker(t, "--state-dir", dir, "--pools", pools)
	require.Equal(t, exitUsage, code, errOut)

	require.NoError(t, os.WriteFile(pools, []byte("version: 1\npools:\n  - {id: p, provider: magic}\n  - {id: p, provider: command}\n"), 0o600))
	code, _, errOut = runWorker(t, "--state-dir", dir, "--pools", pools)
	require.Equal(t, exitUsage, code, errOut)
	require.Contains(t, errOut, "magic")
}

func TestWorkerRefusesToRunInsideAnAttempt(t *testing.T) {
	t.Setenv("MENDFLOW_RUN", "r")
	t.Setenv("MENDFLOW_ATTEMPT", "1")
	code, out, errOut := runWorker(t, "--state-dir", t.TempDir())
	require.Equal(t, exitError, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "inside an attempt of run r")
}

func TestWorkerWithoutAServerSaysSo(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	code, out, errOut := runWorker(t, "--state-dir", t.TempDir(), "--address", address)

	require.Equal(t, exitUnreachable, code, errOut)
	require.NotContains(t, out, "ready")
	require.Contains(t, errOut, address)
}
