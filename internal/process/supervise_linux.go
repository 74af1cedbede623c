package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// superviseArg is the argument that makes this binary a supervisor.
const superviseArg = "__supervise"

// order is what the supervisor is told, once at the start.
type order struct {
	Path    string   `json:"path"`
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env"`
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	Ladder  ladder   `json:"ladder"`
}

// stopLine is the only later message to the supervisor.
const stopLine = "\"stop\"\n"

// report is what the supervisor says: first whether the program started, last
// how it ended.
type report struct {
	Started    bool          `json:"started,omitempty"`
	StartError string        `json:"start_error,omitempty"`
	Errno      syscall.Errno `json:"errno,omitempty"`
	Ended      bool          `json:"ended,omitempty"`
	Code       int           `json:"code,omitempty"`
	Signal     int           `json:"signal,omitempty"`
	Left       []LeftProcess `json:"left,omitempty"`
	Alive      []LeftProcess `json:"alive,omitempty"`
}

const (
	// startTime is how long a program may take to start.
	startTime = time.Minute
	// killTime is how long killed processes may take to vanish.
	killTime = 10 * time.Second
	// replyTime is the time beyond all graces after which a supervisor that is
	// asked to stop counts as dead.
	replyTime = 10 * time.Second
)

func start(spec *Spec, path string, files stdio) (child, error) {
	if spec.Direct {
		return startDirect(spec, path, files)
	}
	return startSupervised(spec, path, files)
}

// frugal keeps the Go runtime of a supervisor small: it lives for one program
// and needs neither a collection while it starts nor a thread per core.
var frugal = []string{"GOGC=off", "GOMEMLIMIT=32MiB", "GOMAXPROCS=1"}

// supervisedChild is a program that runs under a supervisor.
type supervisedChild struct {
	mark    string
	cmd     *exec.Cmd
	control *os.File
	ladder  ladder

	stopOnce sync.Once
	stopping chan struct{}
	cleared  chan struct{}
	result   exit
}

func startSupervised(spec *Spec, path string, files stdio) (child, error) {
	fail := func(err error) (child, error) {
		return nil, &StartError{Program: spec.argv()[0], Err: err}
	}
	ours, theirs, err := controlPair()
	if err != nil {
		return fail(err)
	}
	c := &supervisedChild{
		mark:    spec.Mark,
		control: ours, ladder: spec.ladder(),
		stopping: make(chan struct{}), cleared: make(chan struct{}),
	}
	// The link names this very binary, also after it was replaced on disk.
	c.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{os.Args[0], superviseArg, spec.Mark}, Dir: "/",
		Env:   append([]string{MarkVariable + "=" + spec.Mark}, frugal...),
		Stdin: files.in, Stdout: files.out, Stderr: files.err, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM},
	}
	err = c.fork()
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return fail(err)
	}
	reports := json.NewDecoder(ours)
	var first report
	err = json.NewEncoder(ours).Encode(order{
		Path: path, Argv: spec.argv(), Dir: spec.Dir, Env: spec.env(), Sandbox: spec.Sandbox, Ladder: c.ladder,
	})
	if err == nil {
		// A folder on a dead network drive must not hold up the host for ever.
		_ = ours.SetReadDeadline(time.Now().Add(startTime))
		err = reports.Decode(&first)
		_ = ours.SetReadDeadline(time.Time{})
	}
	if err == nil && first.Started {
		go c.follow(reports)
		return c, nil
	}
	if err == nil {
		err = &startFailure{first.StartError, first.Errno}
	}
	c.lost(err) // nothing runs, but the supervisor has to be reaped
	return fail(err)
}

// fork starts the supervisor and records it, so that its adopted relatives can
// be told from it.
func (c *supervisedChild) fork() error {
	unlock := children.starting()
	defer unlock()
	if err := c.cmd.Start(); err != nil {
		return err
	}
	children.add(c.cmd.Process.Pid)
	return nil
}

// startFailure is an error of another process: its text and the number behind it.
type startFailure struct {
	text  string
	errno syscall.Errno
}

func (e *startFailure) Error() string { return e.text }

func (e *startFailure) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// controlPair makes the two ends of the line to a supervisor. When this process
// dies, the kernel closes ours, which is how the supervisor knows.
func controlPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open control line: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // for the runtime's poller
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

func (c *supervisedChild) stop() { c.stopOnce.Do(func() { close(c.stopping) }) }

func (c *supervisedChild) gone() <-chan struct{} { return c.cleared }

func (c *supervisedChild) end() exit { return c.result }

// follow waits for the last report, passes on the request to stop, and takes
// over when the supervisor dies.
func (c *supervisedChild) follow(reports *json.Decoder) {
	defer close(c.cleared)
	type answer struct {
		last report
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.err = reports.Decode(&a.last)
		answers <- a
	}()
	stopping := c.stopping
	var overdue <-chan time.Time
	for {
		select {
		case <-stopping:
			stopping = nil
			_, _ = io.WriteString(c.control, stopLine) // a dead supervisor is noticed by its silence
			timer := time.NewTimer(c.ladder.total() + killTime + replyTime)
			defer timer.Stop()
			overdue = timer.C
		case <-overdue:
			overdue = nil
			_ = c.cmd.Process.Kill()
		case a := <-answers:
			if a.err != nil || !a.last.Ended {
				c.lost(fmt.Errorf("supervisor ended without a word: %w", errors.Join(a.err, io.ErrUnexpectedEOF)))
				return
			}
			c.finish(a.last)
			return
		}
	}
}

// finish takes the supervisor's last report as the result.
func (c *supervisedChild) finish(last report) {
	c.reap()
	c.result = exit{code: last.Code, signal: syscall.Signal(last.Signal), left: last.Left}
	if len(last.Alive) > 0 {
		c.result.err = &AliveError{Left: last.Alive}
	}
}

// lost ends what a dead supervisor left.
func (c *supervisedChild) lost(cause error) {
	_ = c.cmd.Process.Kill()
	supervisor, _ := readProc(c.cmd.Process.Pid) // a process that nobody reaped keeps its number and its start
	state := c.reap()
	left, alive := endOrphans(c.mark, supervisor)
	c.result = exit{code: -1, left: left, err: &SupervisorError{Err: fmt.Errorf("%w (%s)", cause, state)}}
	if len(alive) > 0 {
		c.result.err = errors.Join(c.result.err, &AliveError{Left: alive})
	}
}

func (c *supervisedChild) reap() string {
	_ = c.cmd.Wait() // how it ended is in the state
	children.remove(c.cmd.Process.Pid)
	_ = c.control.Close()
	if c.cmd.ProcessState == nil {
		return "unknown"
	}
	return c.cmd.ProcessState.String()
}
