package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mendflow/internal/testkit"
)

// remainName as the only argument turns the program into what a misdeed leaves behind.
const remainName = "remain"

func init() {
	register(map[string]misdeed{
		"forks":             (*villain).forks,
		"setsid":            (*villain).setsid,
		"clears-env":        (*villain).clearsEnv,
		"holds-stdout":      (*villain).holdsStdout,
		"ignores-term":      (*villain).ignoresTerm,
		"long-line":         (*villain).longLine,
		"fills-log":         (*villain).fillsLog,
		"prints-for-ever":   (*villain).printsForEver,
		"silent-for-ever":   (*villain).silentForEver,
		"kills-itself":      (*villain).killsItself,
		"kills-supervisor":  (*villain).killsSupervisor,
		"fails-after-all":   (*villain).failsAfterAll,
		"prints-the-secret": (*villain).printsTheSecret,
		"runs-starter":      (*villain).runsStarter,
	})
}

// remain ignores what it can and never ends.
func remain() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	for {
		time.Sleep(time.Hour)
	}
}

// leave starts a process that outlives the worker, and logs it.
func (v *villain) leave(session bool, change func(*exec.Cmd)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, remainName)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return v.control.Record(v.run, testkit.Event{
		Kind: "orphan", Node: v.node, Attempt: v.attempt, Process: testkit.Identify(cmd.Process.Pid),
	})
}

func (v *villain) forks() (int, error) {
	for range 20 {
		if err := v.leave(false, nil); err != nil {
			return 0, err
		}
	}
	return 0, v.honest()
}

func (v *villain) setsid() (int, error) {
	if err := v.leave(true, nil); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) clearsEnv() (int, error) {
	if err := v.leave(true, func(cmd *exec.Cmd) { cmd.Env, cmd.Dir = []string{"PATH=/bin"}, "/" }); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) holdsStdout() (int, error) {
	if err := v.leave(true, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr }); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) ignoresTerm() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	remain()
	return 0, nil
}

func (v *villain) longLine() (int, error) {
	out := bufio.NewWriter(os.Stdout)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		if _, err := out.Write(chunk); err != nil {
			return 0, err
		}
	}
	_, _ = out.WriteString("\nafter the long line\n")
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

// fillsLog prints more than any log keeps.
func (v *villain) fillsLog() (int, error) {
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	line := strings.Repeat("all work and no play ", 48) + "\n"
	for range 200 << 10 {
		if _, err := out.WriteString(line); err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) printsForEver() (int, error) {
	if err := v.work(); err != nil || !v.first() {
		return 0, err
	}
	for {
		_, _ = os.Stdout.WriteString("still thinking\n")
		time.Sleep(100 * time.Millisecond)
	}
}

func (v *villain) silentForEver() (int, error) {
	if err := v.work(); err != nil || !v.first() {
		return 0, err
	}
	remain()
	return 0, nil
}

func (v *villain) killsItself() (int, error) {
	if err := v.work(); err != nil {
		return 0, err
	}
	return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func (v *villain) killsSupervisor() (int, error) {
	v.try("kill the supervisor", syscall.Kill(os.Getppid(), syscall.SIGKILL))
	return 0, v.honest()
}

// failsAfterAll delivers and then ends as badly as a session can.
func (v *villain) failsAfterAll() (int, error) {
	_, _ = os.Stderr.WriteString("API Error: Rate limit reached\n")
	return 1, v.honest()
}

func (v *villain) printsTheSecret() (int, error) {
	_, _ = os.Stdout.WriteString("my key is " + os.Getenv("HOSTILE_SECRET") + "\n")
	return 0, v.honest()
}

// runsStarter runs the orchestrator from inside an attempt.
func (v *villain) runsStarter() (int, error) {
	out, err := exec.Command(v.starter, "cancel", v.run).CombinedOutput()
	_, _ = os.Stdout.Write(out)
	v.try("cancel the run", err)
	return 0, v.honest()
}
