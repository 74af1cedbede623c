package process

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mendflow/internal/redact"
)

// MarkVariable carries [Spec.Mark] in the environment of a program and of all
// that it starts.
const MarkVariable = "MENDFLOW_MARK"

// Defaults and bounds of a [Spec].
const (
	DefaultLineCap  = 1 << 20  // bytes of one line
	DefaultTotalCap = 64 << 20 // bytes of the combined output
	MinTermGrace    = 5 * time.Second
	DefaultFinal    = 10 * time.Second
)

// Stream names one of a program's two outputs.
type Stream uint8

// The streams of a program.
const (
	Stdout Stream = iota + 1
	Stderr
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Verdict is what [Spec.OnLine] thinks of the program after a line.
type Verdict uint8

const (
	// Continue lets the program go on.
	Continue Verdict = iota
	// Finished says that the program has delivered: it has [Spec.FinalGrace] to
	// exit by itself and is then ended as [EndFinalEvent].
	Finished
	// Stop ends the program now, as [EndStopped].
	Stop
)

// Spec says what to run and how. The zero value of each field but Argv (or
// Shell) and Dir is usable.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in the PATH of Env.
	Argv []string
	// Shell is a command line for /bin/sh, instead of Argv.
	Shell string
	// Dir is the absolute path of an existing folder to run in.
	Dir string
	// Env is the complete environment, as NAME=value; see [Environment].
	Env []string
	// Stdin is written to the program, then its input is closed. Nil means
	// /dev/null.
	Stdin []byte

	// Mark names the attempt. It is put into the environment as [MarkVariable]
	// and is what [Sweep] looks for. Parts are divided by slashes, the host first.
	Mark string
	// Sandbox confines the program. Nil means no confinement.
	Sandbox *Sandbox
	// Direct runs a short and trusted program (git) as a child of this process,
	// without a supervisor: what leaves its process group is not followed.
	Direct bool

	// StopSignal is the first signal when the program is to be ended, before
	// TERM. Zero means TERM at once.
	StopSignal syscall.Signal
	// StopGrace is the time after StopSignal before TERM, and, if it is longer
	// than [MinTermGrace], the time after TERM before KILL.
	StopGrace time.Duration
	// Absolute is the longest the program may take, Idle the longest it may print
	// nothing. Zero means no limit.
	Absolute, Idle time.Duration
	// FinalGrace is the time to exit after the verdict [Finished]. Zero means
	// [DefaultFinal].
	FinalGrace time.Duration

	// Output receives both streams, masked, in whole lines, each of at most
	// LineCap bytes and altogether at most TotalCap bytes, the middle left out.
	// An error of Output does not stop the program; Run returns it.
	Output io.Writer
	// OnLine is called for each line, masked, without its line end; the slice is
	// valid during the call only. Calls do not overlap.
	OnLine func(stream Stream, line []byte, truncated bool) Verdict
	// Stdout receives the standard output as it is: unmasked, uncapped. It is for
	// trusted programs whose output is data. Such output is in no other place:
	// neither Output, OnLine nor the tails have it.
	Stdout io.Writer
	// LineCap and TotalCap are bytes; zero means the defaults above.
	LineCap  int
	TotalCap int64
	// Secrets masks the output. Nil masks the credentials that are known by
	// their look.
	Secrets *redact.Masker
}

// argv is the command to execute.
func (s *Spec) argv() []string {
	if s.Shell != "" {
		return []string{"/bin/sh", "-c", s.Shell}
	}
	return s.Argv
}

// env is the environment with the mark.
func (s *Spec) env() []string {
	env := make([]string, 0, len(s.Env)+1)
	for _, e := range s.Env {
		if s.Mark == "" || !strings.HasPrefix(e, MarkVariable+"=") {
			env = append(env, e)
		}
	}
	if s.Mark != "" {
		env = append(env, MarkVariable+"="+s.Mark)
	}
	return env
}

func (s *Spec) validate() error {
	switch {
	case (len(s.Argv) > 0) == (s.Shell != ""):
		return errors.New("run program: give either arguments or a shell line")
	case len(s.Argv) > 0 && s.Argv[0] == "":
		return errors.New("run program: its name is empty")
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("run program: folder %q is not absolute", s.Dir)
	case s.Direct && s.Sandbox != nil:
		return errors.New("run program: a direct program cannot be sandboxed")
	}
	for i, e := range s.Env {
		if strings.IndexByte(e, '=') <= 0 || strings.ContainsRune(e, 0) {
			return fmt.Errorf("run program: environment entry %d is not NAME=value", i+1)
		}
	}
	return nil
}

// termGrace is the time between TERM and KILL.
func (s *Spec) termGrace() time.Duration { return max(s.StopGrace, MinTermGrace) }

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
