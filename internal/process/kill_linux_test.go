package process_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

// alive says whether a process has not ended; one that waits to be reaped has.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// left are the processes that hostile has started in a folder.
func left(t *testing.T, folder string) (pids []int) {
	t.Helper()
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range list {
		pid, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	require.Len(t, pids, hostileChildren)
	return pids
}

func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.False(t, alive(pid), "process %d is alive", pid)
	}
}

// readyLine reads "ready <program> <supervisor>".
func readyLine(line []byte) (program, supervisor int, ok bool) {
	n, err := fmt.Sscanf(string(line), "ready %d %d", &program, &supervisor)
	return program, supervisor, err == nil && n == 2
}

// whenReady runs the hostile program and calls act when all its processes are up.
func whenReady(ctx context.Context, t *testing.T, how string, act func(program, supervisor int)) (process.Result, []int, error) {
	t.Helper()
	spec := base(t)
	folder := t.TempDir()
	spec.Argv = playing(t, "hostile", folder, how)
	var pids []int
	spec.OnLine = func(_ process.Stream, line []byte, _ bool) process.Verdict {
		if program, supervisor, ok := readyLine(line); ok {
			pids = append(left(t, folder), program, supervisor)
			for _, pid := range pids[:hostileChildren] {
				require.True(t, how == "end" || alive(pid))
			}
			act(program, supervisor)
		}
		return process.Continue
	}
	r, err := process.Run(ctx, spec)
	require.Len(t, pids, hostileChildren+2, "it was up")
	return r, pids, err
}

func TestNothingOutlivesAProgramThatEnds(t *testing.T) {
	t.Parallel()
	r, pids, err := whenReady(t.Context(), t, "end", func(int, int) {})
	require.NoError(t, err)
	require.True(t, r.Succeeded(), r)
	requireGone(t, pids...)
	require.Len(t, r.Left, hostileChildren)
	for _, p := range r.Left {
		require.Contains(t, pids, p.PID)
		require.Contains(t, p.Command, "hostile")
	}
	require.Less(t, r.Finished.Sub(r.Started), process.MinTermGrace, "what was left behind gets no grace")
}

func TestNothingOutlivesAProgramThatIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, pids, err := whenReady(ctx, t, "", func(int, int) { cancel() })
	require.NoError(t, err)
	require.Equal(t, process.EndCancelled, r.Ended)
	require.Equal(t, syscall.SIGKILL, r.Signal)
	requireGone(t, pids...)
}

func TestNothingOutlivesAProgramThatIsKilled(t *testing.T) {
	t.Parallel()
	r, pids, err := whenReady(t.Context(), t, "", func(program, _ int) {
		require.NoError(t, syscall.Kill(program, syscall.SIGKILL))
	})
	require.NoError(t, err)
	require.Equal(t, process.EndExited, r.Ended)
	require.Equal(t, syscall.SIGKILL, r.Signal)
	requireGone(t, pids...)
}

func TestNothingOutlivesASupervisorThatIsKilled(t *testing.T) {
	// Alone: this process ends whatever it adopted since the supervisor started,
	// and in the other tests it adopts what they want to find.
	r, pids, err := whenReady(t.Context(), t, "", func(_, supervisor int) {
		require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
	})
	require.ErrorAs(t, err, new(*process.SupervisorError))
	require.NotErrorAs(t, err, new(*process.AliveError))
	require.Equal(t, -1, r.ExitCode)
	requireGone(t, pids...)
}

func TestSupervisorThatIsAskedToEndClearsItsTree(t *testing.T) {
	t.Parallel()
	r, pids, err := whenReady(t.Context(), t, "", func(_, supervisor int) {
		require.NoError(t, syscall.Kill(supervisor, syscall.SIGTERM))
	})
	require.NoError(t, err)
	require.Equal(t, syscall.SIGKILL, r.Signal)
	requireGone(t, pids...)
}

// startHost starts a host worker with the hostile program under it.
func startHost(t *testing.T, how, mark string) (host *exec.Cmd, supervisor int, pids []int) {
	t.Helper()
	folder := t.TempDir()
	argv := playing(t, "host", folder, how, mark)
	host = exec.Command(argv[0], argv[1:]...)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	t.Cleanup(func() { // nothing may be left when the test fails either
		_ = host.Process.Kill()
		list, _ := os.ReadDir(folder)
		for _, entry := range list {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if program, supervisor, ok := readyLine(lines.Bytes()); ok {
			return host, supervisor, append(left(t, folder), program, supervisor)
		}
	}
	t.Fatal("the host did not come up")
	return nil, 0, nil
}

func requireSoonGone(t *testing.T, pids ...int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	}, process.MinTermGrace+5*time.Second, 20*time.Millisecond)
}

func TestNothingOutlivesAHostWorkerThatIsKilled(t *testing.T) {
	t.Parallel()
	host, _, pids := startHost(t, "", "test-host/"+t.Name())
	require.NoError(t, host.Process.Kill())
	_ = host.Wait()
	requireSoonGone(t, pids...)
}

func TestSweepEndsWhatHostAndSupervisorLeftWhenBothWereKilled(t *testing.T) {
	t.Parallel()
	mark := "test-" + strconv.Itoa(os.Getpid()) + "-swept"
	host, supervisor, pids := startHost(t, "marked", mark+"/run/node/a1")
	other, _, others := startHost(t, "marked", mark+"-not/run/node/a1")
	// The supervisor first, and the host before it can do anything about it.
	require.NoError(t, host.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
	require.NoError(t, host.Process.Kill())
	_ = host.Wait()
	for _, pid := range pids[:hostileChildren] {
		require.True(t, alive(pid), "something is left to sweep")
	}
	swept, err := process.Sweep(t.Context(), mark)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(swept), hostileChildren)
	requireGone(t, pids...)
	for _, pid := range others {
		require.True(t, alive(pid), "another host's processes are not touched")
	}
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	for _, pid := range others[:hostileChildren+1] {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	requireSoonGone(t, others...)
}

func TestSweepWithoutANameFindsNothing(t *testing.T) {
	t.Parallel()
	swept, err := process.Sweep(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, swept)
}

func TestHolderOfTheOutputIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	// Without a supervisor nobody follows those that leave the group, so they
	// hold the output when the program is gone.
	spec := base(t)
	spec.Direct = true
	folder := t.TempDir()
	spec.Argv = playing(t, "hostile", folder, "end")
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Contains(t, r.StdoutTail, "ready")
	for _, pid := range left(t, folder) {
		require.True(t, alive(pid), "the output is held")
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
}

func TestAdoptedZombiesAreReaped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	spec := base(t)
	spec.Argv = playing(t, "zombies")
	spec.OnLine = func(_ process.Stream, line []byte, _ bool) process.Verdict {
		_, supervisor, ok := readyLine(line)
		require.True(t, ok)
		require.Eventually(t, func() bool { return childrenOf(t, supervisor) == 1 }, 5*time.Second, 20*time.Millisecond)
		cancel()
		return process.Continue
	}
	_, err := process.Run(ctx, spec)
	require.NoError(t, err)
}

func childrenOf(t *testing.T, pid int) (n int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

func TestReaperLeavesOtherChildrenTheirExitStatus(t *testing.T) {
	t.Parallel()
	// Long enough for the reaper to look several times while children of both
	// kinds end all the time.
	until := time.Now().Add(3 * time.Second)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for code := i; time.Now().Before(until); code = (code + 4) % 100 {
				cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("setsid sleep 0.01 & exit %d", code))
				err := cmd.Run()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
					t.Errorf("run %d: %v", code, err)
				}
			}
		})
	}
	all.Wait()
}

func TestWhatLeftTheGroupIsAskedToEndBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	requireTimeToEnd(t, base(t), "setsid")
}

func TestWhatOutlivesAStoppedProgramHasTimeToEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) { requireTimeToEnd(t, spec, "") })
}

// requireTimeToEnd stops a shell that ends at once, with a child, started by the
// given command, that takes its time.
func requireTimeToEnd(t *testing.T, spec process.Spec, starter string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	spec.Shell = starter + ` sh -c 'trap "sleep 0.5; echo got >term; exit" TERM; echo ready; while :; do sleep 0.05; done' & wait`
	spec.OnLine = func(process.Stream, []byte, bool) process.Verdict {
		cancel()
		return process.Continue
	}
	r, err := process.Run(ctx, spec)
	require.NoError(t, err)
	require.Equal(t, process.EndCancelled, r.Ended)
	require.Empty(t, r.Left)
	require.FileExists(t, filepath.Join(spec.Dir, "term"))
	require.Less(t, r.Finished.Sub(r.Started), process.MinTermGrace)
}

func TestManyProgramsAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 3 {
				spec := base(t)
				spec.Mark += fmt.Sprintf("/%d", i)
				spec.Direct = j == 2
				spec.Shell = fmt.Sprintf("sleep 1000 & echo %d; exit %d", i, i)
				r, err := process.Run(t.Context(), spec)
				if err != nil || r.ExitCode != i || r.StdoutTail != fmt.Sprintln(i) {
					t.Errorf("run %d: %v %v", i, r, err)
				}
			}
		})
	}
	all.Wait()
}

func TestProgramThatRunsFromProcessToProcessIsCaught(t *testing.T) {
	t.Parallel()
	spec := base(t)
	comet := filepath.Join(spec.Dir, "comet")
	count := filepath.Join(spec.Dir, "count")
	writeProgram(t, comet, "#!/bin/sh\necho >>count\nsetsid \"$0\" &\n")
	spec.Argv = []string{comet}
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, r.Succeeded(), r)
	size := func() int64 {
		info, err := os.Stat(count)
		require.NoError(t, err)
		return info.Size()
	}
	before := size()
	time.Sleep(200 * time.Millisecond)
	require.Equal(t, before, size(), "it is still running")
}
