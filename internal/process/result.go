package process

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// End says why a program is no longer running.
type End string

const (
	// EndExited: it ended by itself.
	EndExited End = "exited"
	// EndAbsolute: it took longer than [Spec.Absolute].
	EndAbsolute End = "absolute"
	// EndIdle: it printed nothing for [Spec.Idle].
	EndIdle End = "idle"
	// EndCancelled: the context ended.
	EndCancelled End = "cancelled"
	// EndFinalEvent: it had finished and did not exit within [Spec.FinalGrace].
	EndFinalEvent End = "final-event"
	// EndStopped: [Spec.OnLine] asked for it.
	EndStopped End = "stopped"
)

// Result is how a program ended.
type Result struct {
	Ended End
	// ExitCode is the exit status, -1 if a signal ended the program.
	ExitCode int
	// Signaled and Signal tell the signal that ended the program.
	Signaled bool
	Signal   syscall.Signal

	Started, Finished time.Time

	// StdoutTail and StderrTail are the last bytes printed, at most [TailBytes],
	// masked and valid UTF-8.
	StdoutTail, StderrTail string
	// LastStderrLines are the last lines of StderrTail that are not blank, at
	// most [TailLines].
	LastStderrLines []string
	// TruncatedLines counts lines longer than the cap; DroppedBytes is what the
	// total cap left out.
	TruncatedLines int
	DroppedBytes   int64

	// Left are the processes that outlived the program and had to be killed.
	Left []LeftProcess
}

// Bounds of a [Result].
const (
	TailBytes = 8 << 10
	TailLines = 20
)

// LeftProcess is a process that outlived its program.
type LeftProcess struct {
	PID     int
	Command string // cut to 200 bytes
}

// Succeeded says whether the program ended by itself with status 0.
func (r Result) Succeeded() bool {
	return r.Ended == EndExited && !r.Signaled && r.ExitCode == 0
}

// String says how the program ended, in a few words.
func (r Result) String() string {
	var how string
	switch {
	case r.Signaled:
		how = "ended by " + signalName(r.Signal)
	default:
		how = fmt.Sprintf("exit status %d", r.ExitCode)
	}
	if r.Ended != EndExited {
		return fmt.Sprintf("%s (%s)", r.Ended, how)
	}
	return how
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGKILL:
		return "SIGKILL"
	default:
		return s.String()
	}
}

// ErrNotFound is what a [StartError] wraps when there is no such program, and
// ErrNoFolder when there is no such folder.
var (
	ErrNotFound = errors.New("program not found")
	ErrNoFolder = errors.New("no such folder")
)

// StartError says that a program could not be started.
type StartError struct {
	Program string
	Path    string // the PATH searched, when the program was not found in it
	Err     error
}

// Error names the program and, when it was not found, where it was looked for.
func (e *StartError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("start %s: %v in PATH %s", e.Program, e.Err, e.Path)
	}
	return fmt.Sprintf("start %s: %v", e.Program, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// SupervisorError says that the supervisor of a program died. Nothing of the
// program is alive, but how it ended is unknown.
type SupervisorError struct{ Err error }

// Error tells how the supervisor ended.
func (e *SupervisorError) Error() string { return fmt.Sprintf("supervise program: %v", e.Err) }

// Unwrap returns the cause.
func (e *SupervisorError) Unwrap() error { return e.Err }

// AliveError says that processes of a program survived being killed. What they
// may write to must not be used again.
type AliveError struct{ Left []LeftProcess }

// Error names the survivors.
func (e *AliveError) Error() string {
	names := make([]string, len(e.Left))
	for i, p := range e.Left {
		names[i] = fmt.Sprintf("%d (%s)", p.PID, p.Command)
	}
	return "end program: still alive: " + strings.Join(names, ", ")
}

// OutputError says that [Spec.Output] or [Spec.Stdout] failed.
type OutputError struct{ Err error }

// Error tells the cause.
func (e *OutputError) Error() string { return fmt.Sprintf("keep output: %v", e.Err) }

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }
