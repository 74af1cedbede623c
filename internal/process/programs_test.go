package process_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

const playArg = "__play"

// programs are what the test binary plays when it is asked to, by name.
var programs = map[string]func(args []string) int{
	"flood":    flood,
	"longline": longLine,
	"hostile":  hostile,
	"ignore":   ignore,
	"polite":   polite,
	"host":     host,
	"sleep":    func([]string) int { select {} },
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
	_, err := io.WriteString(os.Stdout, strings.Repeat("x", n)+"\nafter\n")
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
// write their numbers into the folder given. The program ends itself if its
// second argument says so.
func hostile(args []string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	if len(args) > 1 && args[1] == "child" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		os.WriteFile(filepath.Join(args[0], strconv.Itoa(os.Getpid())), nil, 0o600)
		select {}
	}
	for _, generations := range []string{"child", "parent"} {
		next := []string{playArg, "hostile", args[0], generations}
		if len(args) > 1 && args[1] == "parent" {
			next[3] = "child"
		}
		cmd := exec.Command(self, next...)
		cmd.Env = []string{"NOTHING=1"}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return 1
		}
	}
	if len(args) > 1 && args[1] == "parent" {
		return 0 // its children have lost their parent
	}
	waitForFiles(args[0], 3)
	fmt.Println("ready")
	if len(args) > 1 && args[1] == "end" {
		return 0
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	select {}
}

func waitForFiles(folder string, n int) {
	for {
		list, _ := os.ReadDir(folder)
		if len(list) >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// host is a host worker: it runs the hostile program in the folder given.
func host(args []string) int {
	ctx := context.Background()
	if err := process.BecomeSubreaper(ctx); err != nil {
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	fmt.Println("host up")
	r, err := process.Run(ctx, process.Spec{
		Argv: []string{self, playArg, "hostile", args[0]},
		Dir:  args[0], Mark: args[1], Output: os.Stdout,
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

// base is a spec to start from.
func base(t *testing.T) process.Spec {
	t.Helper()
	return process.Spec{
		Dir:  t.TempDir(),
		Env:  []string{"PATH=/usr/bin:/bin"},
		Mark: "test-" + strconv.Itoa(os.Getpid()) + "/" + strings.ReplaceAll(t.Name(), "/", "-"),
	}
}
