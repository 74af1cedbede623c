package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/testkit"
	"mendflow/internal/testkit/modelserver"
)

// agentLab is a lab whose pools run agent programs, real ones or stand-ins.
func agentLab(t *testing.T, env []string, pools ...string) *testkit.Lab {
	t.Helper()
	dir := t.TempDir()
	lab := &testkit.Lab{Dir: dir, Pools: filepath.Join(dir, "pools.yaml")}
	text := "version: 1\npools:\n"
	for _, p := range pools {
		text += "  - {" + p + "}\n"
	}
	require.NoError(t, os.WriteFile(lab.Pools, []byte(text), 0o600))
	t.Cleanup(func() {
		if t.Failed() && lab.Host != nil {
			t.Logf("--- the worker's log\n%s", lab.Host.Output())
		}
		require.NoError(t, lab.Close())
	})
	var err error
	lab.Control, err = testkit.NewControl(filepath.Join(dir, "control"))
	require.NoError(t, err)
	lab.Server, err = testkit.StartServer(dir, false)
	require.NoError(t, err)
	lab.Host, err = testkit.StartHost(testkit.HostOptions{
		Address: lab.Server.Address, State: filepath.Join(dir, "state", "mendflow"), Pools: lab.Pools, Env: env,
	})
	require.NoError(t, err)
	lab.Client, err = testkit.NewClient(lab.Server.Address, lab.Host.State)
	require.NoError(t, err)
	return lab
}

// victim is who is ended in the middle of a tool call, and how.
type victim struct {
	who    string
	signal syscall.Signal
}

func (e victim) name() string { return e.who + "-" + e.signal.String() }

func endings() []victim {
	return []victim{
		{"program", syscall.SIGTERM},
		{"program", syscall.SIGKILL},
		{"supervisor", syscall.SIGTERM},
		{"supervisor", syscall.SIGKILL},
		{"host", syscall.SIGTERM},
		{"host", syscall.SIGKILL},
	}
}

// endInTheMiddleOfATool starts a run whose agent has a tool at work, ends who is
// to be ended, and expects that nothing of that attempt is alive afterwards: at once, or when the
// run is cancelled where the program did not end.
func endInTheMiddleOfATool(t *testing.T, lab *testkit.Lab, who string, signal syscall.Signal) {
	t.Helper()
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "n"}}})
	lab.Start(t, c)
	var alive []testkit.Identity
	testkit.Eventually(t, "a tool is at work", func() bool {
		trees, _ := filepath.Glob(filepath.Join(lab.Host.State, "worktrees", c.Run, "n", "a1", "*", "running"))
		flat, _ := filepath.Glob(filepath.Join(lab.Host.State, "worktrees", c.Run, "n", "a1", "running"))
		return len(trees)+len(flat) > 0
	})
	alive = testkit.MarkedIdentities(c.Run)
	require.Greater(t, len(alive), 2, "supervisor, program and tool")
	stubborn := false
	switch who {
	case "host":
		require.NoError(t, syscall.Kill(lab.Host.PID(), signal))
		<-lab.Host.Done()
	case "supervisor":
		for _, pid := range testkit.Supervisors(c.Run) {
			require.NoError(t, syscall.Kill(pid, signal))
		}
	default:
		programs := testkit.Supervised(c.Run)
		require.NotEmpty(t, programs)
		for _, pid := range programs {
			require.NoError(t, syscall.Kill(pid, signal))
		}
		stubborn = signal == syscall.SIGTERM && !gone(alive, programs)
	}
	if stubborn {
		t.Log("the program does not end by a TERM of somebody else's: it goes on, watched as before")
	} else {
		testkit.EventuallyNone(t, "nothing of the attempt is alive", func() []string { return testkit.Living(alive) })
	}
	if who == "host" {
		require.NoError(t, lab.Host.Restart())
	}
	lab.Client.OK(t, "cancel", c.Run)
	lab.Client.AwaitClosed(t, c.Run)
	require.Empty(t, testkit.Marked(c.Run))
	require.Empty(t, testkit.Living(alive))
}

// gone waits a while for programs to end; gemini, for one, heeds a TERM of its whole group only.
func gone(alive []testkit.Identity, pids []int) bool {
	programs := slices.DeleteFunc(slices.Clone(alive), func(id testkit.Identity) bool { return !slices.Contains(pids, id.PID) })
	for range 100 {
		if len(testkit.Living(programs)) == 0 {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// standIn is a program that behaves as agents with a tool at work do: it says
// that it began, its tool runs in a session of its own and does not go when asked to.
const standIn = `#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"5d6f1f4e-0000-4000-8000-000000000001"}'
setsid sh -c 'trap "" TERM INT; touch running; sleep 1000' &
sh -c 'trap "" TERM INT; sleep 1000' &
wait
`

func TestEndedAgentsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, e := range endings() {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "agent")
			require.NoError(t, os.WriteFile(program, []byte(standIn), 0o755))
			lab := agentLab(t, nil, fmt.Sprintf("id: agent, provider: claude, options: {program: %q}", program))
			endInTheMiddleOfATool(t, lab, e.who, e.signal)
		})
	}
}

func TestRealAgentsLeaveNothing(t *testing.T) {
	programs := os.Getenv(agentsFolder)
	for _, p := range []agentPool{
		{"claude", "claude", "ANTHROPIC_API_KEY", "", ""},
		{"codex", "codex", "OPENAI_API_KEY", "/v1", ""},
		{"opencode", "opencode", "OPENAI_API_KEY", "/v1", ""},
		{"gemini", "gemini", "GEMINI_API_KEY", "", ""},
		{"qwen", "qwen", "OPENAI_API_KEY", "/v1", ""},
	} {
		t.Run(p.id, func(t *testing.T) {
			program := filepath.Join(programs, "node_modules", ".bin", p.provider)
			if _, err := os.Stat(program); programs == "" || err != nil {
				for _, e := range endings() { // each of them is counted as skipped
					t.Run(e.name(), func(t *testing.T) { t.Skipf("%s is not installed in %q: see `make test-agents`", p.provider, programs) })
				}
				return
			}
			server := modelserver.Start(func(a modelserver.Ask) modelserver.Turn {
				if a.Shell == "" {
					return modelserver.Turn{Text: "A title"}
				}
				return modelserver.Turn{Shell: "touch running; sleep 1000"}
			})
			t.Cleanup(server.Close)
			lab := agentLab(t, []string{p.env + "=sk-fake0000"}, fmt.Sprintf("id: agent, provider: %s, model: model-x, env: [%s], options: {program: %q, base_url: %q}",
				p.provider, p.env, program, server.URL+p.path))
			for _, e := range endings() {
				t.Run(e.name(), func(t *testing.T) {
					endInTheMiddleOfATool(t, lab, e.who, e.signal)
				})
			}
		})
	}
}
