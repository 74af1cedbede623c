package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlFD is the supervisor's end of the line to the host worker.
const controlFD = 3

// A process that [Run] started as a supervisor never comes to its main. Of the
// packages whose imports are ready the one with the least path is initialised
// first, so this one comes before all that imports net/http, which spares a
// third of a supervisor's processor time.
func init() {
	if len(os.Args) > 1 && os.Args[1] == superviseArg {
		os.Exit(supervise())
	}
}

// supervisor is the state of a supervising process. Its main goroutine owns it.
type supervisor struct {
	order   order
	control *os.File
	program int // process id

	// stopping is set before the first signal of the ladder; from then on what
	// outlives the program gets its time too.
	stopping atomic.Bool
	latest   syscall.Signal
	timer    *time.Timer

	exited  chan syscall.WaitStatus
	nobody  chan struct{} // closed when there are no children left
	alone   atomic.Bool   // the program left nothing behind; set before its exit is told
	status  syscall.WaitStatus
	over    bool          // the program has ended
	termed  map[proc]bool // who got TERM
	killing time.Time     // since when everything is being killed

	mu   sync.Mutex
	left map[proc]LeftProcess
}

func supervise() int {
	// The program's parent-death signal is tied to the thread that starts it.
	runtime.LockOSThread()
	unix.CloseOnExec(controlFD)
	s := &supervisor{
		control: os.NewFile(controlFD, "control"),
		timer:   after(0),
		exited:  make(chan syscall.WaitStatus, 1),
		nobody:  make(chan struct{}),
		left:    map[proc]LeftProcess{},
		termed:  map[proc]bool{},
	}
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	messages := json.NewDecoder(s.control)
	if err := messages.Decode(&s.order); err != nil {
		fmt.Fprintln(os.Stderr, "mendflow: this command is for internal use")
		return 2
	}
	if err := s.start(); err != nil {
		s.say(startReport(err))
		return 1
	}
	s.say(report{Started: true})
	stop := make(chan struct{})
	go func() {
		var text string
		_ = messages.Decode(&text) // a message and the end of the line mean the same
		close(stop)
	}()
	s.loop(asked, stop)
	return 0
}

func (s *supervisor) say(r report) {
	_ = json.NewEncoder(s.control).Encode(r) // a host that is gone need not know
}

func startReport(err error) report {
	errno, _ := errors.AsType[syscall.Errno](err)
	return report{StartError: err.Error(), Errno: errno}
}

// start starts the program, in its own group, and lets go of its output, so
// that only the program and what it starts hold that.
func (s *supervisor) start() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// A core file in the worktree would count as the program's work.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	attr := &syscall.ProcAttr{
		Dir: s.order.Dir, Env: s.order.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	var err error
	if s.order.Sandbox != nil {
		s.program, err = startConfined(s.order, attr)
	} else {
		s.program, err = syscall.ForkExec(s.order.Path, s.order.Argv, attr)
		err = executing(s.order.Path, err)
	}
	if err != nil {
		return err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	go s.reap()
	return nil
}

// executing names the program in an error of its execution, which alone would
// read as if the program itself were missing.
func executing(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("execute %s: %w", path, err)
}

// reap reaps the program and all that the supervisor adopts, until there are no
// children left. With a subreaper that means that nothing of the program is
// alive: whoever loses its parent becomes our child.
//
// Nothing of this looks into /proc unless the program left something behind: a
// process that was looked at there costs whoever reaps it several milliseconds.
func (s *supervisor) reap() {
	defer close(s.nobody)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no child
			return
		case pid == s.program:
			s.alone.Store(childless())
			s.exited <- status
		}
	}
}

// childless reports that this process has no children. A subreaper without
// children has no descendants either.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// loop follows the program until nothing of it is alive or killing is in vain.
func (s *supervisor) loop(asked <-chan os.Signal, stop <-chan struct{}) {
	for {
		select {
		case <-asked:
			s.begin()
		case <-stop:
			stop = nil
			s.begin()
		case s.status = <-s.exited:
			s.over = true
			s.afterExit()
		case <-s.timer.C:
			s.climb()
		case <-s.nobody:
			s.finish(nil)
			return
		}
		if alive := s.stuck(); alive != nil {
			s.finish(alive)
			return
		}
	}
}

// begin starts the ladder.
func (s *supervisor) begin() {
	if s.stopping.CompareAndSwap(false, true) && !s.over {
		s.climb()
	}
}

// climb takes the next step of the ladder; the last one is taken again and again.
func (s *supervisor) climb() {
	if s.latest == unix.SIGKILL {
		s.kill()
		return
	}
	sig, grace := s.order.Ladder.next(s.latest)
	s.latest = sig
	switch sig {
	case unix.SIGKILL:
		s.kill()
		return
	case unix.SIGTERM:
		s.terminate()
	default:
		_ = unix.Kill(-s.program, sig)
	}
	s.timer.Reset(grace)
}

// terminate sends TERM to the group, which no fork escapes, and to all in the
// tree that left the group; once to each.
func (s *supervisor) terminate() {
	if !s.over {
		_ = unix.Kill(-s.program, unix.SIGTERM)
	}
	for _, p := range s.tree() {
		id := proc{pid: p.pid, start: p.start}
		if !s.termed[id] && (s.over || p.group != s.program) {
			p.send(unix.SIGTERM)
		}
		s.termed[id] = true
	}
}

// afterExit deals with what outlives the program: it was asked to end and gets
// the time that is due, or it was left behind and gets none.
func (s *supervisor) afterExit() {
	switch {
	case s.alone.Load(): // nobody is left to look for, which would read all of /proc
	case !s.stopping.Load():
		s.latest = unix.SIGKILL
		s.kill()
	case s.latest == unix.SIGTERM:
		s.terminate() // what was forked while the others got theirs
	case s.latest != unix.SIGKILL:
		s.climb()
	}
}

// kill kills the whole tree, and comes back for what it forked meanwhile.
func (s *supervisor) kill() {
	if s.killing.IsZero() {
		s.killing = time.Now()
	}
	s.outlived()
	for _, p := range s.tree() {
		p.send(unix.SIGKILL)
	}
	pause := 2 * time.Millisecond // soon, for what runs from process to process
	if time.Since(s.killing) > time.Second {
		pause = 50 * time.Millisecond
	}
	s.timer.Reset(pause)
}

// outlived records who is alive beside the program.
func (s *supervisor) outlived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.tree() {
		id := proc{pid: p.pid, start: p.start}
		if _, known := s.left[id]; !known && p.pid != s.program {
			s.left[id] = LeftProcess{PID: p.pid, Command: commandOf(p.pid)}
		}
	}
}

// tree lists the living descendants of the supervisor.
func (s *supervisor) tree() []proc {
	self := os.Getpid()
	all := processes()
	var tree []proc
	for _, p := range descendants(all, func(p proc) bool { return p.parent == self }) {
		if !p.ended() {
			tree = append(tree, p)
		}
	}
	return tree
}

// stuck lists what is alive after it was killed for a long time.
func (s *supervisor) stuck() []LeftProcess {
	if s.killing.IsZero() || time.Since(s.killing) < killTime {
		return nil
	}
	return leftOf(s.tree())
}

func (s *supervisor) finish(alive []LeftProcess) {
	end := exitOf(s.status)
	if !s.over {
		select {
		case s.status = <-s.exited:
			end = exitOf(s.status)
		default:
			end = exit{code: -1}
		}
	}
	r := report{Ended: true, Code: end.code, Signal: int(end.signal), Alive: alive}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Left = slices.SortedFunc(maps.Values(s.left), func(a, b LeftProcess) int { return cmp.Compare(a.PID, b.PID) })
	s.say(r)
}
