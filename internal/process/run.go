package process

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Run runs a program to its end and returns when nothing of it is alive.
//
// The result is valid whatever the error. Errors are faults of the host:
// [StartError] (the program did not run), [OutputError] (it ran, its output is
// incomplete), [SupervisorError] (it was ended because its supervisor died) and
// [AliveError] (something of it could not be killed). A program that fails, is
// ended by a watchdog or by the end of ctx is a result without an error.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := spec.validate(); err != nil {
		return Result{}, err
	}
	path, err := LookPath(spec.argv()[0], spec.Dir, spec.Env)
	if err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		now := time.Now()
		return Result{Ended: EndCancelled, ExitCode: -1, Started: now, Finished: now}, nil
	}
	// The parent-death signal of a child is tied to the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	out := newCapture(&spec)
	began := time.Now()
	c, err := launch(&spec, path, out)
	if err != nil {
		out.drain()
		return Result{}, err
	}
	ended := watch(ctx, &spec, out, c)
	<-c.gone()
	end := c.end()
	finished := time.Now()
	out.drain()

	r := Result{
		Ended: ended, ExitCode: end.code, Signaled: end.signal != 0, Signal: end.signal,
		Started: began, Finished: finished, Left: end.left,
	}
	out.report(&r)
	return r, errors.Join(end.err, out.err())
}

// child is a program that was started.
type child interface {
	// stop begins to end the program: the spec's signal, TERM, KILL. More than
	// one call is the same as one.
	stop()
	// gone is closed when nothing of the program is alive.
	gone() <-chan struct{}
	// end is how the program ended, known when gone is closed.
	end() exit
}

// exit is how a child ended.
type exit struct {
	code   int // -1 if unknown or ended by a signal
	signal syscall.Signal
	left   []LeftProcess
	err    error
}

// stdio are the program's ends of its three pipes.
type stdio struct{ in, out, err *os.File }

func (s stdio) close() {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// launch opens the pipes and starts the program with them.
func launch(spec *Spec, path string, out *capture) (child, error) {
	var files stdio
	defer func() { files.close() }()
	var err error
	if files.out, err = out.open(Stdout); err != nil {
		return nil, err
	}
	if files.err, err = out.open(Stderr); err != nil {
		return nil, err
	}
	if spec.Stdin == nil {
		if files.in, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		return start(spec, path, files)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files.in = r
	c, err := start(spec, path, files)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	var feeder sync.WaitGroup
	feeder.Go(func() { feed(w, spec.Stdin) })
	out.feeder = func() {
		_ = w.Close() // whoever still holds the other end is not waited for
		feeder.Wait()
	}
	return c, nil
}

// watch waits until the program ends or has to be ended, and says why.
func watch(ctx context.Context, spec *Spec, out *capture, c child) End {
	absolute := after(spec.Absolute)
	defer absolute.Stop()
	idle := after(spec.Idle)
	defer idle.Stop()
	final := after(0)
	defer func() { final.Stop() }()
	finished := out.finished.ch

	for {
		var why End
		select {
		case <-c.gone():
			return EndExited
		case <-ctx.Done():
			why = EndCancelled
		case <-out.stop.ch:
			why = EndStopped
		case <-absolute.C:
			why = EndAbsolute
		case <-final.C:
			why = EndFinalEvent
		case <-finished:
			finished = nil
			final = after(orDefault(spec.FinalGrace, DefaultFinal))
		case <-idle.C:
			if left := spec.Idle - out.quietFor(); left > 0 {
				idle.Reset(left)
			} else {
				why = EndIdle
			}
		}
		if why != "" {
			c.stop()
			return why
		}
	}
}

// after is a timer that never fires if d is zero.
func after(d time.Duration) *time.Timer {
	if d > 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
