package process_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mendflow/internal/process"
)

const playArg = "__play"

// programs are what the test binary plays when it is asked to, by name.
var programs = map[string]func(args []string) int{
	"flood":        flood,
	"longline":     longLine,
	"hostile":      hostile,
	"trace-parent": traceParent,
	"ignore":       ignore,
	"polite":       polite,
	"host":         host,
	"zombies":      zombies,
	"meter":        meter,
	"dial":         dial,
	"truncate":     truncate,
}

func play(name string, args []string) int {
	program, ok := programs[name]
	if !ok {
		return 99
	}
	return program(args)
}

// playing is the command line of a program above.
func playing(t *testing.T, name string, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return append([]string{self, playArg, name}, args...)
}

// flood prints as many bytes as it is told, in lines.
func flood(args []string) int {
	n, _ := strconv.ParseInt(args[0], 10, 64)
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	line := bytes.Repeat([]byte("0123456 "), 128)
	line[len(line)-1] = '\n'
	for ; n > 0; n -= int64(len(line)) {
		if _, err := w.Write(line); err != nil {
			return 1
		}
	}
	return boolCode(w.Flush() == nil)
}

// longLine prints one line of as many bytes as it is told, and a short one.
func longLine(args []string) int {
	n, _ := strconv.Atoi(args[0])
	_, err := io.WriteString(os.Stdout, strings.Repeat("0", n)+"\nafter\n")
	return boolCode(err == nil)
}

// ignore ignores the polite signals, says so, and stays.
func ignore([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println("ready")
	select {}
}

// polite says which signal it got and ends well.
func polite([]string) int {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("ready")
	fmt.Println("got", <-got)
	return 0
}

// hostile does all that keeps a process alive: it forks, its children lead
// sessions of their own, have an empty environment, ignore signals, hold the
// output open, and the one in between ends, so that they lose their parent. They
// write their numbers into the folder given. The second argument is a list of
// words: "end" makes the program end itself, "marked" makes it pass its
// environment on.
func hostile(args []string) int {
	folder, how := args[0], args[1]
	if role, ok := strings.CutPrefix(how, "child "); ok && role != "middle" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		_ = os.WriteFile(filepath.Join(folder, strconv.Itoa(os.Getpid())), nil, 0o600)
		select {}
	}
	middle := how == "child middle"
	for _, role := range []string{"child leaf", "child middle"} {
		if middle {
			role = "child leaf"
		}
		cmd := exec.Command(os.Args[0], playArg, "hostile", folder, role)
		cmd.Env = []string{"NOTHING=1"}
		if strings.Contains(how, "marked") || os.Getenv("MARKED") != "" {
			cmd.Env = append(os.Environ(), "MARKED=1")
		}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return 1
		}
	}
	if middle {
		return 0 // its children have lost their parent
	}
	waitForFiles(folder, hostileChildren)
	fmt.Println("ready", os.Getpid(), os.Getppid())
	if strings.Contains(how, "end") {
		return 0
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	select {}
}

// hostileChildren is the number of processes that hostile leaves.
const hostileChildren = 3

func waitForFiles(folder string, n int) {
	for {
		list, _ := os.ReadDir(folder)
		if len(list) >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// host is a host worker that runs hostile with the arguments given.
func host(args []string) int {
	ctx := context.Background()
	if err := process.BecomeSubreaper(ctx); err != nil {
		return 1
	}
	r, err := process.Run(ctx, process.Spec{
		Argv: []string{os.Args[0], playArg, "hostile", args[0], args[1]},
		Dir:  args[0], Mark: args[2], Output: os.Stdout,
	})
	fmt.Println(r, err)
	return 0
}

func boolCode(ok bool) int {
	if ok {
		return 0
	}
	return 1
}

// traceParent succeeds if one thread of its parent can be traced or written to.
func traceParent([]string) int {
	runtime.LockOSThread()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", os.Getppid()))
	if err != nil || len(threads) == 0 {
		fmt.Fprintln(os.Stderr, "no parent to trace", err)
		return 2
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			return 2
		}
		if unix.PtraceSeize(id) == nil {
			return 0
		}
		if memory, err := os.OpenFile(thread+"/mem", os.O_WRONLY, 0); err == nil {
			_ = memory.Close()
			return 0
		}
	}
	return 1
}

// truncate empties a file without opening it.
func truncate(args []string) int {
	err := os.Truncate(args[0], 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return boolCode(err == nil)
}

// dial says hello to a TCP address.
func dial(args []string) int {
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, err = io.WriteString(c, "hello")
	return boolCode(err == nil && c.Close() == nil)
}

// zombies starts programs that end at once and whose parent has ended before.
func zombies([]string) int {
	for range 20 {
		if exec.Command("/bin/sh", "-c", "(sleep 0.05 &) ; exit 0").Run() != nil {
			return 1
		}
	}
	fmt.Println("ready", os.Getpid(), os.Getppid())
	select {}
}

// meter runs a flood of as many bytes as it is told and prints how much came
// through and how much memory that took, in bytes.
func meter(args []string) int {
	var kept counter
	r, err := process.Run(context.Background(), process.Spec{
		Argv: []string{os.Args[0], playArg, "flood", args[0]}, Dir: "/", Output: &kept,
	})
	if err != nil || !r.Succeeded() {
		fmt.Println(r, err)
		return 1
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 1
	}
	fmt.Println(kept, r.DroppedBytes, usage.Maxrss<<10)
	return 0
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// base is a spec to start from.
func base(t *testing.T) process.Spec {
	t.Helper()
	return process.Spec{
		Dir:  t.TempDir(),
		Env:  []string{"PATH=/usr/bin:/bin"},
		Mark: "test-" + strconv.Itoa(os.Getpid()) + "/" + strings.ReplaceAll(t.Name(), "/", "-"),
	}
}
