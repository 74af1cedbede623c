package startercmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// starter runs a command line as the program does.
func starter(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// nobody is an address at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

func TestUsageFaultsAreOneLineAndAHint(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"no-such-command"},
		{"start"},
		{"start", "--repo", "r", "--plan", "p", "--pools", "x", "--no-such-flag"},
		{"start", "--repo", "r", "--plan", "p", "--pools", "x", "--wait", "--watch"},
		{"start", "--repo", "r", "--plan", "p", "--pools", "x", "--base", "main", "--include-uncommitted"},
		{"pause"},
		{"pause", "a", "b"},
		{"recover", "r", "perhaps"},
		{"resume", "r", "--budget", "0"},
		{"resume", "r", "--budget", "many"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			code, out, errOut := starter(t, args...)
			require.Equal(t, ExitUsage, code, errOut)
			require.Empty(t, out)
			require.True(t, strings.HasPrefix(errOut, "starter: "), errOut)
			require.LessOrEqual(t, strings.Count(errOut, "\n"), 2, "a line and a hint: %s", errOut)
			require.NotContains(t, errOut, "Usage:")
			require.NotContains(t, errOut, "goroutine")
		})
	}
}

func TestHelpIsNoFault(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"plan"}, {"start", "--help"}, {"version"}} {
		code, out, errOut := starter(t, args...)
		require.Equal(t, ExitDone, code, "%v: %s", args, errOut)
		require.NotEmpty(t, out)
	}
}

func TestNoServerHasItsOwnExitCode(t *testing.T) {
	t.Parallel()
	address := nobody(t)
	for _, args := range [][]string{{"runs"}, {"status", "r"}, {"watch", "r"}, {"pause", "r"}, {"cancel", "r"}, {"explain", "r", "n"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			code, _, errOut := starter(t, append(args, "--address", address, "--state-dir", t.TempDir())...)
			require.Equal(t, ExitUnreachable, code, errOut)
			require.Contains(t, errOut, address)
			require.Contains(t, errOut, "starter dev")
		})
	}
}

// A worker must not drive the engine that launched it.
func TestNothingIsDoneInsideAnAttempt(t *testing.T) {
	t.Setenv("MENDFLOW_RUN", "r")
	t.Setenv("MENDFLOW_ATTEMPT", "1")
	code, _, errOut := starter(t, "cancel", "r", "--address", nobody(t))
	require.Equal(t, ExitError, code)
	require.Contains(t, errOut, "inside an attempt of run r")
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		code   int
		silent bool
	}{
		{nil, ExitDone, true},
		{errors.New("x"), ExitError, false},
		{usage("x"), ExitUsage, false},
		{fmt.Errorf("y: %w", usage("x")), ExitUsage, false},
		{exit(ExitHeld), ExitHeld, true},
		{exit(ExitDone), ExitDone, true},
	} {
		code, silent := codeOf(c.err)
		require.Equal(t, c.code, code)
		require.Equal(t, c.silent, silent)
	}
	for status, want := range map[contract.RunStatus]int{
		contract.RunCompleted: ExitDone, contract.RunBlocked: ExitNotGreen, contract.RunFailed: ExitNotGreen, contract.RunCancelled: ExitNotGreen,
	} {
		require.Equal(t, want, closedCode(status, nil), status)
	}
	for state, want := range map[contract.PublishState]int{
		contract.PublishSucceeded: ExitDone, contract.PublishSkipped: ExitDone, contract.PublishExhausted: ExitError, contract.PublishFailed: ExitError,
	} {
		require.Equal(t, want, closedCode(contract.RunCompleted, &contract.PublicationView{State: state}), state)
		require.Equal(t, ExitNotGreen, closedCode(contract.RunBlocked, &contract.PublicationView{State: state}), state)
	}
}

func TestInterruptedCommandsSayThatTheRunGoesOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	code := Run(ctx, []string{"runs", "--address", nobody(t)}, Streams{Out: &out, Err: &errOut})
	require.Contains(t, []int{ExitInterrupted, ExitUnreachable}, code)
}

// Every fault of plan and pools at once, with its place; nothing else happens.
func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	planFile, poolsFile := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "pools.yaml")
	require.NoError(t, os.WriteFile(planFile, []byte(`version: 1
id: tls
goal: repair
colour: red
findings:
  - {id: f1, title: one, severity: high, files: [a.go]}
  - {id: f1, title: again, severity: nasty, files: [b.go]}
nodes:
  - {id: n1, findings: [f1], depends_on: [n2], write: ["../x"]}
  - {id: n2, findings: [f9], depends_on: [n1], write: ["b/**"]}
`), 0o600))
	require.NoError(t, os.WriteFile(poolsFile, []byte("version: 1\npools:\n  - {id: p, provider: magic}\n"), 0o600))

	code, out, errOut := starter(t, "plan", "validate", planFile)
	require.Equal(t, ExitUsage, code)
	require.Empty(t, out)
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	require.Greater(t, len(lines), 4, errOut)
	for _, line := range lines[:len(lines)-1] {
		require.Regexp(t, `plan\.yaml:\d+:\d+: `, line)
	}
	for _, part := range []string{"colour", "f1", "f9", "nasty", "../x"} {
		require.Contains(t, errOut, part)
	}

	code, out, _ = starter(t, "plan", "validate", planFile, "--json")
	require.Equal(t, ExitUsage, code)
	var told struct {
		Valid  bool             `json:"valid"`
		Faults []map[string]any `json:"faults"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &told))
	require.False(t, told.Valid)
	require.Len(t, told.Faults, len(lines)-1)

	code, _, errOut = starter(t, "start", "--repo", dir, "--plan", planFile, "--pools", poolsFile, "--address", nobody(t), "--state-dir", filepath.Join(dir, "state"))
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errOut, "plan.yaml:")
	require.Contains(t, errOut, "pools.yaml:", "the pools' faults come with the plan's")
}

func TestSchemasAreJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"plan", "schema"}, {"plan", "schema", "--pools"}} {
		code, out, _ := starter(t, args...)
		require.Equal(t, ExitDone, code)
		require.True(t, json.Valid([]byte(out)))
	}
}

func TestUsedNamesAreRefusedWithTheChoices(t *testing.T) {
	t.Parallel()
	open := usedName("tls-1", true, contract.RejectedIDInUse)
	require.Equal(t, contract.DecisionDuplicate, open.Decision)
	require.Contains(t, open.Reason, "--again --parallel")
	require.Contains(t, open.Reason, "starter watch tls-1")
	closed := usedName("tls-1", false, contract.RejectedGenerationUsed)
	require.Equal(t, contract.DecisionRejected, closed.Decision)
	require.Contains(t, closed.Reason, "--again")
	require.Contains(t, closed.Reason, "starter report tls-1")
}
