package process_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
	"mendflow/internal/redact"
)

// bothWays runs a test with a supervisor and without.
func bothWays(t *testing.T, test func(t *testing.T, spec process.Spec)) {
	t.Helper()
	t.Parallel()
	for name, direct := range map[string]bool{"supervised": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := base(t)
			spec.Direct = direct
			test(t, spec)
		})
	}
}

// writeProgram writes a file that is to be executed. A process that another test
// forks meanwhile would hold it open for writing until it executes, and until
// then the file is busy.
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

func TestProgramRunsWithExactlyWhatItIsGiven(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		var out bytes.Buffer
		spec.Shell = `pwd; env | sort; cat; echo to stderr >&2; exit 7`
		spec.Env = append(spec.Env, "A=b c")
		spec.Stdin = []byte("input\n")
		spec.Output = &out
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndExited, r.Ended)
		require.Equal(t, 7, r.ExitCode)
		require.False(t, r.Signaled)
		require.Empty(t, r.Left)
		require.Equal(t, []string{"to stderr"}, r.LastStderrLines)
		require.Equal(t, "exit status 7", r.String())
		require.Equal(t, spec.Dir+"\nA=b c\nMENDFLOW_MARK="+spec.Mark+"\nPATH=/usr/bin:/bin\nPWD="+spec.Dir+"\ninput\n",
			strings.ReplaceAll(r.StdoutTail, "\nOLDPWD=/", ""))
		require.Equal(t, len(r.StdoutTail)+len(r.StderrTail), out.Len())
		require.False(t, r.Finished.Before(r.Started))
	})
}

func TestInputIsClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Argv = []string{"cat"}
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.True(t, r.Succeeded(), r)
	})
}

func TestInputNobodyReadsIsNotWaitedFor(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Argv = []string{"true"}
		spec.Stdin = make([]byte, 4<<20)
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.True(t, r.Succeeded(), r)
	})
}

func TestSignalThatEndsTheProgramIsReported(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = "kill -KILL $$"
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.True(t, r.Signaled)
		require.Equal(t, syscall.SIGKILL, r.Signal)
		require.Equal(t, -1, r.ExitCode)
		require.Equal(t, process.EndExited, r.Ended)
	})
}

func TestMissingProgramIsNamedWithThePathSearched(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Argv = []string{"no-such-agent"}
		_, err := process.Run(t.Context(), spec)
		require.ErrorIs(t, err, process.ErrNotFound)
		require.EqualError(t, err, "start no-such-agent: program not found in PATH /usr/bin:/bin")
	})
}

func TestStartThatFailsSaysWhy(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		broken := filepath.Join(spec.Dir, "broken")
		writeProgram(t, broken, "#!/no/such/interpreter\n")
		spec.Argv = []string{broken}
		_, err := process.Run(t.Context(), spec)
		require.ErrorAs(t, err, new(*process.StartError))
		require.ErrorIs(t, err, syscall.ENOENT)

		spec.Argv = []string{"./plain"}
		require.NoError(t, os.WriteFile(filepath.Join(spec.Dir, "plain"), nil, 0o600))
		_, err = process.Run(t.Context(), spec)
		require.ErrorIs(t, err, os.ErrPermission)

		spec.Argv = []string{"true"}
		spec.Dir = filepath.Join(spec.Dir, "gone")
		_, err = process.Run(t.Context(), spec)
		require.ErrorIs(t, err, process.ErrNoFolder)
	})
}

func TestInvalidSpecIsRefused(t *testing.T) {
	t.Parallel()
	for _, spec := range []process.Spec{
		{Dir: "/"},
		{Argv: []string{""}, Dir: "/"},
		{Argv: []string{"true"}, Shell: "true", Dir: "/"},
		{Argv: []string{"true"}, Dir: "relative"},
		{Argv: []string{"true"}, Dir: "/", Env: []string{"novalue"}},
		{Argv: []string{"true"}, Dir: "/", Direct: true, Sandbox: &process.Sandbox{}},
	} {
		_, err := process.Run(t.Context(), spec)
		require.Error(t, err)
	}
}

func TestIdleWatchdogEndsASilentProgram(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = "echo hello; sleep 1000"
		spec.Idle = 200 * time.Millisecond
		spec.Absolute = time.Minute
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndIdle, r.Ended)
		require.Equal(t, "hello\n", r.StdoutTail)
		require.Equal(t, syscall.SIGTERM, r.Signal)
	})
}

func TestAbsoluteWatchdogEndsAProgramThatPrintsForEver(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = "while :; do echo tick; sleep 0.01; done"
		spec.Idle = time.Minute
		spec.Absolute = 300 * time.Millisecond
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndAbsolute, r.Ended)
		require.Contains(t, r.StdoutTail, "tick\n")
	})
}

func TestOutputRestartsTheIdleClock(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = "for i in 1 2 3 4 5 6 7; do echo $i >&2; sleep 0.5; done"
		spec.Idle = 2500 * time.Millisecond
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.True(t, r.Succeeded(), r)
	})
}

func TestCancelSendsTheStopSignalFirst(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		ctx, cancel := context.WithCancel(t.Context())
		spec.Argv = playing(t, "polite")
		spec.StopSignal = syscall.SIGINT
		spec.OnLine = func(_ process.Stream, line []byte, _ bool) process.Verdict {
			if string(line) == "ready" {
				cancel()
			}
			return process.Continue
		}
		r, err := process.Run(ctx, spec)
		require.NoError(t, err)
		require.Equal(t, process.EndCancelled, r.Ended)
		require.Equal(t, 0, r.ExitCode)
		require.Contains(t, r.StdoutTail, "got interrupt\n")
	})
}

func TestProgramThatIgnoresSignalsGetsItsGraceAndIsKilled(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked time.Time
		spec.Argv = playing(t, "ignore")
		spec.OnLine = func(process.Stream, []byte, bool) process.Verdict {
			asked = time.Now()
			cancel()
			return process.Continue
		}
		r, err := process.Run(ctx, spec)
		require.NoError(t, err)
		require.Equal(t, syscall.SIGKILL, r.Signal)
		require.Equal(t, process.EndCancelled, r.Ended)
		took := r.Finished.Sub(asked)
		require.GreaterOrEqual(t, took, process.MinTermGrace)
		require.Less(t, took, process.MinTermGrace+3*time.Second)
	})
}

func TestCancelledContextStartsNothing(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		spec.Shell = "echo started >file"
		r, err := process.Run(ctx, spec)
		require.NoError(t, err)
		require.Equal(t, process.EndCancelled, r.Ended)
		require.NoFileExists(t, filepath.Join(spec.Dir, "file"))
	})
}

func TestFinishedProgramThatDoesNotExitIsEnded(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = `echo '{"type":"result"}'; sleep 1000`
		spec.FinalGrace = 200 * time.Millisecond
		spec.OnLine = func(process.Stream, []byte, bool) process.Verdict { return process.Finished }
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndFinalEvent, r.Ended)
		require.Less(t, r.Finished.Sub(r.Started), 10*time.Second)
	})
}

func TestFinishedProgramThatExitsHasExited(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = `echo done; sleep 0.1; exit 3`
		spec.FinalGrace = time.Minute
		spec.OnLine = func(process.Stream, []byte, bool) process.Verdict { return process.Finished }
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndExited, r.Ended)
		require.Equal(t, 3, r.ExitCode)
	})
}

func TestVerdictStopEndsTheProgramAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = `echo 'Retrying after 64702058ms' >&2; sleep 1000`
		spec.OnLine = func(s process.Stream, line []byte, _ bool) process.Verdict {
			require.Equal(t, process.Stderr, s)
			return process.Stop
		}
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, process.EndStopped, r.Ended)
	})
}

func TestSecretIsMaskedInEveryPlaceThatShowsOutput(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for name, masker := range map[string]*redact.Masker{"masked": redact.NewMasker([]string{secret}), "off": redact.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, lines bytes.Buffer
			spec := base(t)
			spec.Shell = `printf 'key hunter2-'; sleep 0.05; echo hunter2; echo "$K" >&2`
			spec.Env = append(spec.Env, "K="+secret)
			spec.Secrets = masker
			spec.Output = &out
			spec.OnLine = func(_ process.Stream, line []byte, _ bool) process.Verdict {
				lines.Write(line)
				return process.Continue
			}
			r, err := process.Run(t.Context(), spec)
			require.NoError(t, err)
			for _, text := range append([]string{out.String(), lines.String(), r.StdoutTail, r.StderrTail}, r.LastStderrLines...) {
				require.Equal(t, name == "off", strings.Contains(text, secret), text)
			}
		})
	}
}

func TestRawOutputIsUnchanged(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		var raw, out bytes.Buffer
		spec.Shell = `printf 'a\0b\377 ghp_0123456789012345678901234567890123456'; echo no >&2`
		spec.Stdout, spec.Output = &raw, &out
		r, err := process.Run(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, "a\x00b\xff ghp_0123456789012345678901234567890123456", raw.String())
		require.Equal(t, "no\n", out.String())
		require.Empty(t, r.StdoutTail)
	})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatCannotBeKeptIsAnError(t *testing.T) {
	bothWays(t, func(t *testing.T, spec process.Spec) {
		spec.Shell = "echo hello; exit 4"
		spec.Output = fullDisk{}
		r, err := process.Run(t.Context(), spec)
		require.ErrorAs(t, err, new(*process.OutputError))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Equal(t, 4, r.ExitCode)

		spec.Shell = "yes"
		spec.Output, spec.Stdout = nil, fullDisk{}
		r, err = process.Run(t.Context(), spec)
		require.True(t, errors.Is(err, syscall.ENOSPC))
		require.Equal(t, process.EndStopped, r.Ended)
	})
}
