package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func TestReadyServerAnswersWhereItSays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dev.db")
	p := launch(t, "--db", path)
	require.Equal(t, path, p.ready.Database)
	require.Equal(t, "default", p.ready.Namespace)

	connected := p.dial(t)
	_, err := connected.CheckHealth(t.Context(), &client.CheckHealthRequest{})
	require.NoError(t, err)
	namespace, err := connected.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	require.True(t, namespace.NamespaceInfo.Capabilities.WorkerPollCompleteOnShutdown, "a worker that stops loses the task on the way to it")
	for _, page := range []string{"/", "/namespaces/default/workflows", "/api/v1/namespaces/default"} {
		response, err := http.Get(p.ready.UI + page)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, page)
	}
	require.Empty(t, p.stderr.String())
}

func TestPlainReadyLine(t *testing.T) {
	t.Parallel()
	for args, pattern := range map[string]string{
		"":           `^devserver ready: address=127\.0\.0\.1:\d+ ui=http://127\.0\.0\.1:\d+ namespace=default db=memory\n$`,
		"--headless": `^devserver ready: address=127\.0\.0\.1:\d+ namespace=default db=memory\n$`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			cmd := command(append(strings.Fields(args), "--port", "0", "--ui-port", "0")...)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, readErr := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // killed
			require.NoError(t, readErr)
			require.Regexp(t, pattern, line)
		})
	}
}

func TestJSONReadyLineHasEveryField(t *testing.T) {
	t.Parallel()
	var line strings.Builder
	require.NoError(t, readyLine{Ready: true, Address: "127.0.0.1:7233", Namespace: "default"}.write(&line, true))
	require.JSONEq(t, `{"ready":true,"address":"127.0.0.1:7233","ui":"","namespace":"default","db":""}`, line.String())
}

// waiting ends when it is told to.
func waiting(ctx workflow.Context) (string, error) {
	var word string
	workflow.GetSignalChannel(ctx, "word").Receive(ctx, &word)
	return word, nil
}

func (p *process) work(t testing.TB) client.Client {
	t.Helper()
	c := p.dial(t)
	w := worker.New(c, "queue", worker.Options{})
	w.RegisterWorkflow(waiting)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return c
}

func TestKilledServerGoesOnWithARunningWorkflow(t *testing.T) {
	t.Parallel()
	// A path that a SQLite URI must not misread.
	folder := filepath.Join(t.TempDir(), "state 100% #1?mode=memory&x")
	require.NoError(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "dev.db")

	first := launch(t, "--headless", "--db", path)
	run, err := first.work(t).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "patient", TaskQueue: "queue"}, waiting)
	require.NoError(t, err)
	first.kill()

	second := launch(t, "--headless", "--db", path)
	c := second.work(t)
	require.NoError(t, c.SignalWorkflow(t.Context(), "patient", run.GetRunID(), "word", "hello"))
	var word string
	require.NoError(t, c.GetWorkflow(t.Context(), "patient", run.GetRunID()).Get(t.Context(), &word))
	require.Equal(t, "hello", word)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestStopSignalEndsInOrder(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dev.db")
			p := launch(t, "--db", path)
			p.work(t) // its polls are open
			require.Equal(t, exitOK, p.stop(t, sig), "%s", p.stderr)
			require.Empty(t, p.stderr.String())
			require.ErrorIs(t, syscall.Kill(p.cmd.Process.Pid, 0), syscall.ESRCH)

			// All is in the database file now.
			if wal, err := os.Stat(path + "-wal"); err == nil {
				require.Zero(t, wal.Size())
			}
		})
	}
}

func TestStopSignalDuringTheStartIsNoError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err strings.Builder
	args := []string{"--port", "0", "--headless", "--db", filepath.Join(t.TempDir(), "dev.db")}
	require.Equal(t, exitOK, run(ctx, args, streams{out: &out, err: &err}), "%s", &err)
	require.Empty(t, out.String())
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := launch(t)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	code := p.stop(t, syscall.SIGINT)
	require.Contains(t, []int{128 + int(syscall.SIGINT), 128 + int(syscall.SIGTERM)}, code) // the kernel may swap the two
}

func TestStopWithParentLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	shell := exec.Command("sh", "-c", `"$0" --port 0 --headless --json --stop-with-parent & wait`, os.Args[0])
	shell.Env = append(os.Environ(), childMark+"=1")
	stdout, err := shell.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	reader := bufio.NewReader(stdout)
	line, err := reader.ReadBytes('\n')
	require.NoError(t, err)
	var ready readyLine
	require.NoError(t, json.Unmarshal(line, &ready))

	require.NoError(t, shell.Process.Kill())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, reader) // ends when the last process that holds the pipe does
		ended <- err
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(15 * time.Second):
		t.Fatal("devserver outlives its parent")
	}
	_ = shell.Wait() // killed
	_, err = net.Dial("tcp", ready.Address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	taken := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)

	for _, flag := range []string{"--port", "--ui-port"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			other := map[string]string{"--port": "--ui-port", "--ui-port": "--port"}[flag]
			code, message := fail(t, flag, taken, other, "0")
			require.Equal(t, exitError, code)
			require.Equal(t, fmt.Sprintf("devserver: listen on 127.0.0.1 port %s: in use by another program, choose another one with %s (0: any)\n", taken, flag), message)
		})
	}
}

func TestFreePortsAreReserved(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port, err := freePort("127.0.0.1")
		require.NoError(t, err)
		require.False(t, seen[port], "port %d given twice", port)
		seen[port] = true
	}
}

func TestEverySocketIsOnLoopback(t *testing.T) {
	t.Parallel()
	p := launch(t)
	sockets := map[string]bool{}
	folder := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(folder, entry.Name())) // it may be closed by now
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	const loopback, listening = "0100007F", "0A" // of proc_net_tcp(5), as on little-endian machines
	found := 0
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == listening && sockets[fields[9]] {
				found++
				require.Regexp(t, regexp.MustCompile("^"+loopback+":"), fields[1], "listens beyond loopback: %s", line)
			}
		}
	}
	require.GreaterOrEqual(t, found, 4, "frontend, history, matching and UI listen")
}
