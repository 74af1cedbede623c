package process

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// directChild is a program that runs as a child of this process, the leader of
// its own session and group.
type directChild struct {
	process *os.Process
	ladder  ladder

	stopOnce sync.Once
	stopping chan struct{}
	exited   chan struct{} // the program ended and is not reaped yet
	cleared  chan struct{}
	result   exit
}

func startDirect(spec *Spec, path string, files stdio) (child, error) {
	argv := spec.argv()
	unlock := children.starting()
	defer unlock()
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.env(),
		Files: []*os.File{files.in, files.out, files.err},
		Sys:   directAttributes(),
	})
	if err != nil {
		return nil, &StartError{Program: argv[0], Err: err}
	}
	children.add(p.Pid)
	c := &directChild{
		process:  p,
		ladder:   spec.ladder(),
		stopping: make(chan struct{}),
		exited:   make(chan struct{}),
		cleared:  make(chan struct{}),
	}
	go c.run()
	return c, nil
}

func (c *directChild) stop() { c.stopOnce.Do(func() { close(c.stopping) }) }

func (c *directChild) gone() <-chan struct{} { return c.cleared }

func (c *directChild) end() exit { return c.result }

// run follows the program: it observes the end without reaping, ends the group,
// and reaps then, so that the group's number cannot belong to anybody else.
func (c *directChild) run() {
	defer close(c.cleared)
	pid := c.process.Pid
	defer children.remove(pid)
	go func() {
		observeExit(pid)
		close(c.exited)
	}()
	select {
	case <-c.exited:
	case <-c.stopping:
		c.climb(pid)
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	state, err := c.process.Wait()
	if err != nil {
		c.result = exit{code: -1, err: &SupervisorError{Err: err}}
		return
	}
	c.result = exitOf(state.Sys().(syscall.WaitStatus))
}

// climb goes up the ladder until the group is gone or to be killed.
func (c *directChild) climb(pid int) {
	for latest := syscall.Signal(0); ; {
		sig, grace := c.ladder.next(latest)
		if sig == syscall.SIGKILL {
			return
		}
		latest = sig
		_ = syscall.Kill(-pid, sig)
		deadline := time.NewTimer(grace)
		select {
		case <-c.exited:
			deadline.Stop()
			c.awaitGroup(pid, latest, grace)
			return
		case <-deadline.C:
		}
	}
}

// awaitGroup lets the rest of the group, which got the same signal as its
// leader, end in its own time.
func (c *directChild) awaitGroup(pid int, latest syscall.Signal, grace time.Duration) {
	if latest != syscall.SIGTERM {
		_ = syscall.Kill(-pid, syscall.SIGTERM)
		grace = c.ladder.TermGrace
	}
	for deadline := time.Now().Add(grace); groupAlive(pid) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}

// exitOf translates a wait status.
func exitOf(status syscall.WaitStatus) exit {
	if status.Signaled() {
		return exit{code: -1, signal: status.Signal()}
	}
	return exit{code: status.ExitStatus()}
}
