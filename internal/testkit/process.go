package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// launcher starts every program from one thread that lives as long as the test
// binary: the parent-death signal of a child is tied to the thread that made it.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go launchForEver(work)
	return work
})

func launchForEver(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

// Process is a program that a test started, known by its process id.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  *logFile
	done chan struct{}
	err  error // of Wait; after done
}

// start launches a program whose output goes to a log file; it dies with the test binary.
func start(name, logPath string, cmd *exec.Cmd) (*Process, error) {
	log, err := openLog(logPath)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, cmd: cmd, log: log, done: make(chan struct{})}
	// A file, not a pipe: nothing that outlives the program can hold the test.
	cmd.Stdout, cmd.Stderr = log.file, log.file
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	launcher() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		log.close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		log.close()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the program has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the program at once, as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// Stop asks the program to end, and kills it when it has not after the guard.
// The error tells how it ended.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
		return p.err
	case <-time.After(Guard):
		p.Kill()
		return fmt.Errorf("stop %s: still running after %v", p.Name, Guard)
	}
}

// Terminate asks the program to end and does not wait.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) } // it may have ended

// Output is what the program has printed in this life.
func (p *Process) Output() string { return string(p.log.since()) }

// await looks for a complete line in the output that accept takes.
func (p *Process) await(accept func(line []byte) bool) error {
	deadline := time.Now().Add(Guard)
	for {
		ended := !p.Alive()
		lines := bytes.SplitAfter(p.log.since(), []byte("\n"))
		for _, line := range lines {
			if bytes.HasSuffix(line, []byte("\n")) && accept(line) {
				return nil
			}
		}
		switch {
		case ended:
			return fmt.Errorf("start %s: it ended (%w) with:\n%s", p.Name, p.err, p.Output())
		case time.Now().After(deadline):
			return fmt.Errorf("start %s: not ready after %v:\n%s", p.Name, Guard, p.Output())
		}
		time.Sleep(poll)
	}
}

// logFile is the output of all lives of a program, appended to one file.
type logFile struct {
	file  *os.File
	path  string
	begin int64 // where this life begins
}

func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{file: file, path: path, begin: info.Size()}, nil
}

func (l *logFile) close() { _ = l.file.Close() }

func (l *logFile) since() []byte {
	data, err := os.ReadFile(l.path)
	if err != nil || int64(len(data)) < l.begin {
		return nil
	}
	return data[l.begin:]
}

// attachLog shows the end of a log when the test failed.
func attachLog(t testing.TB, path string) {
	if !t.Failed() {
		return
	}
	const most = 16 << 10
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if len(data) > most {
		data = data[len(data)-most:]
	}
	t.Logf("--- end of %s\n%s", path, data)
}
