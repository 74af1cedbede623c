package process

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A Daemon is a trusted program of our own that runs beside this one for as long
// as this one lives: a server, a worker. It gets this process's environment,
// needs no supervisor, and is asked to end when this process dies (on Linux).
type Daemon struct {
	pid   int
	ended chan struct{}
	err   error
}

// StartDaemon starts the program at path in a process group of its own, so that
// an interrupt from the terminal reaches this process alone.
func StartDaemon(path string, args []string, stdout, stderr io.Writer) (*Daemon, error) {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = daemonAttributes()
	d := &Daemon{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal follows the thread that started the program: keep it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		d.pid = cmd.Process.Pid
		started <- nil
		if d.err = cmd.Wait(); d.err == nil {
			d.err = errors.New("exit status 0")
		}
		close(d.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return d, nil
}

// Ended is closed when the program has ended.
func (d *Daemon) Ended() <-chan struct{} { return d.ended }

// Err says how the program ended; call it after Ended.
func (d *Daemon) Err() error { return d.err }

// Stop asks the program to end, kills it when it takes longer than patience, and waits for its end.
func (d *Daemon) Stop(patience time.Duration) {
	select {
	case <-d.ended:
		return
	default:
	}
	_ = syscall.Kill(d.pid, syscall.SIGTERM) // it may have ended just now
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
		_ = syscall.Kill(d.pid, syscall.SIGKILL)
		<-d.ended
	}
}
