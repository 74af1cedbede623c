package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// The test binary is its own devserver: with this in its environment it is the program.
const childMark = "DEVSERVER_TEST_CHILD"

// profileFile names a file for a CPU profile of the child, to look into a benchmark:
//
//	DEVSERVER_TEST_PROFILE=/tmp/server.prof go test -run - -bench Workflows -benchtime 2000x .
const profileFile = "DEVSERVER_TEST_PROFILE"

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		os.Exit(runChild())
	}
	os.Exit(m.Run())
}

func runChild() int {
	if name := os.Getenv(profileFile); name != "" {
		file, err := os.Create(name)
		if err != nil {
			panic(err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			panic(err)
		}
		defer pprof.StopCPUProfile()
	}
	return run(untilSignal(context.Background()), os.Args[1:], streams{out: os.Stdout, err: os.Stderr})
}

// process is a devserver of a test, in a process of its own.
type process struct {
	cmd    *exec.Cmd
	ready  readyLine
	stderr *output
	ended  chan struct{} // closed when the process was waited for
}

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childMark+"=1")
	return cmd
}

// launch starts a devserver on free ports and returns when it is ready. The test ends it.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{stderr: &output{}, ended: make(chan struct{})}
	p.cmd = command(append([]string{"--port", "0", "--ui-port", "0", "--json"}, args...)...)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if os.Getenv(profileFile) != "" {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // it writes the profile as it ends
			<-p.ended
		}
		p.kill()
	})

	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(io.Discard, stdout)
		_ = p.cmd.Wait() // the exit is in ProcessState
	}()
	require.NoError(t, readErr, "%s", p.stderr)
	require.NoError(t, json.Unmarshal(line, &p.ready))
	require.True(t, p.ready.Ready)
	return p
}

// kill ends the process like a crash, if it still runs.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// stop asks the process to end and returns its exit code.
func (p *process) stop(t testing.TB, sig syscall.Signal) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		t.Fatalf("no end within ten seconds of %v: %s", sig, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// fail runs a devserver that is expected not to start, and returns its exit code and what it said.
func fail(t testing.TB, args ...string) (code int, message string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	_ = cmd.Wait() // the exit is in ProcessState
	require.NoError(t, ctx.Err(), "it started")
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// dial connects an SDK client for the length of the test.
func (p *process) dial(t testing.TB) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: p.ready.Address, Namespace: p.ready.Namespace, Logger: silent{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// cpu is the processor time that the process has used.
func (p *process) cpu(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
}

// silent keeps the SDK out of the test's output.
type silent struct{}

var _ sdklog.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
