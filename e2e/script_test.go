package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestScripts runs the *.txtar files. Beside testscript's own commands they have
//
//	starter ARGS            the built program, connected to the shared lab; ! negates
//	exits CODE PROGRAM ARGS runs a program that must end with this code
//	repo DIR                makes DIR a git repository and remembers the user's checkout
//	scripts DIR [RUN]       gives the worker scripts in DIR to the script's run, or to another
//	await STATUS            waits until the run has the status
//	await-node NODE STATE   waits until a node of the run has the state
//	await-signal NAME       waits until a worker gives a signal
//	tell NAME               gives a signal to the workers
//	await-match FILE REGEXP waits until a file matches, and keeps a group in $MATCH
//	untouched               checks that the user's checkout is as it was
//	invariants              checks the invariants of a run that has closed or stands still
//
// $RUN is an id for the script's run, $POOLS the pools file of the shared lab.
func TestScripts(t *testing.T) {
	t.Parallel()
	lab := theLab(t)
	testscript.Run(t, testscript.Params{
		Dir: ".",
		Setup: func(env *testscript.Env) error {
			s := &scripted{lab: lab, run: strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")}
			env.Values[scriptedKey{}] = s
			env.Setenv("TEMPORAL_ADDRESS", lab.Server.Address)
			env.Setenv("XDG_STATE_HOME", filepath.Dir(lab.Host.State))
			env.Setenv("RUN", s.run)
			env.Setenv("POOLS", lab.Pools)
			env.Setenv("MODULE", testkit.Root())
			env.Setenv("PATH", testkit.Bin()+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"starter":      starter,
			"exits":        exits,
			"repo":         with((*scripted).repository, 1),
			"scripts":      with((*scripted).scripts, 1, 2),
			"await":        with((*scripted).await, 1),
			"await-node":   with((*scripted).awaitNode, 2),
			"await-signal": with((*scripted).awaitSignal, 1),
			"tell":         with((*scripted).tell, 1),
			"await-match":  with((*scripted).awaitMatch, 2),
			"untouched":    with((*scripted).untouched, 0),
			"invariants":   with((*scripted).invariants, 0),
		},
	})
}

// starter runs the built program, which must succeed, or must not.
func starter(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("starter", args...)
	switch {
	case neg && err == nil:
		ts.Fatalf("starter succeeded")
	case !neg:
		ts.Check(err)
	}
}

// exits runs a program that must end with a certain code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

type scriptedKey struct{}

// scripted is the state of one script.
type scripted struct {
	lab    *testkit.Lab
	run    string
	repo   *testkit.Repo
	before testkit.Checkout
}

// with adapts a command that takes certain numbers of arguments and cannot be negated.
func with(f func(*scripted, *testscript.TestScript, []string), arguments ...int) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || !slices.Contains(arguments, len(args)) {
			ts.Fatalf("want %v arguments, and no !", arguments)
		}
		s, ok := ts.Value(scriptedKey{}).(*scripted)
		if !ok {
			ts.Fatalf("the script has no state")
		}
		f(s, ts, args)
	}
}

// fatal lets helpers for Go tests end a script.
type fatal struct {
	testing.TB
	ts *testscript.TestScript
}

func (f fatal) Context() context.Context          { return context.Background() }
func (f fatal) Helper()                           {}
func (f fatal) Name() string                      { return f.ts.Name() }
func (f fatal) Errorf(format string, args ...any) { f.ts.Fatalf(format, args...) }
func (f fatal) Fatalf(format string, args ...any) { f.ts.Fatalf(format, args...) }
func (f fatal) Logf(format string, args ...any)   { f.ts.Logf(format, args...) }
func (f fatal) FailNow()                          { f.ts.Fatalf("the script cannot go on") }

func (s *scripted) repository(ts *testscript.TestScript, args []string) {
	t := fatal{ts: ts}
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
	s.repo = testkit.NewRepo(t, ts.MkAbs(args[0]), nil)
	s.before = s.repo.Checkout(t)
}

func (s *scripted) scripts(ts *testscript.TestScript, args []string) {
	dir, run := ts.MkAbs(args[0]), s.run
	if len(args) > 1 {
		run = args[1]
	}
	entries, err := os.ReadDir(dir)
	ts.Check(err)
	for _, e := range entries {
		s.lab.Control.Script(fatal{ts: ts}, run, e.Name(), ts.ReadFile(filepath.Join(dir, e.Name())))
	}
}

func (s *scripted) await(ts *testscript.TestScript, args []string) {
	v := s.lab.Client.AwaitStatus(fatal{ts: ts}, s.run, contract.RunStatus(args[0]))
	if string(v.Status) != args[0] {
		ts.Fatalf("run %s closed as %s: %s", s.run, v.Status, v.Reason)
	}
}

func (s *scripted) awaitNode(ts *testscript.TestScript, args []string) {
	t := fatal{ts: ts}
	testkit.Eventually(t, args[0]+" is "+args[1], func() bool {
		return string(s.lab.Client.NodesSoFar(t, s.run)[args[0]].State) == args[1]
	})
}

func (s *scripted) awaitSignal(ts *testscript.TestScript, args []string) {
	s.lab.Control.Await(fatal{ts: ts}, s.run, args[0])
}

func (s *scripted) tell(ts *testscript.TestScript, args []string) {
	ts.Check(s.lab.Control.Tell(s.run, args[0]))
}

func (s *scripted) awaitMatch(ts *testscript.TestScript, args []string) {
	path, pattern := ts.MkAbs(args[0]), regexp.MustCompile(args[1])
	testkit.Eventually(fatal{ts: ts}, args[0]+" matches "+args[1], func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		found := pattern.FindSubmatch(data)
		if len(found) > 1 {
			ts.Setenv("MATCH", string(found[1]))
		}
		return found != nil
	})
}

func (s *scripted) untouched(ts *testscript.TestScript, _ []string) {
	t := fatal{ts: ts}
	s.before.Check(t, s.repo.Checkout(t))
}

func (s *scripted) invariants(ts *testscript.TestScript, _ []string) {
	testkit.CheckInvariants(fatal{ts: ts}, testkit.Scene{
		Run: s.run, Client: s.lab.Client, Control: s.lab.Control, Repo: s.repo, Before: s.before,
		States: []string{s.lab.Host.State},
	})
}
