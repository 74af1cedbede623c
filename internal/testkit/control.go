package testkit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

// Control is the folder through which a test and its scripted workers speak:
// scripts say what a worker does, signals make one wait for the other, and a
// log keeps what each worker did.
type Control struct{ Dir string }

// NewControl makes the folder.
func NewControl(dir string) (Control, error) {
	c := Control{Dir: dir}
	for _, sub := range []string{"scripts", "signals", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return c, fmt.Errorf("make control folder: %w", err)
		}
	}
	return c, nil
}

// Command is the command line of a pool whose worker follows this folder.
// The test's TestMain must call [AsScriptedWorker].
func (c Control) Command() []string {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a running test binary has a path
	}
	return []string{self, scriptedWorker, c.Dir}
}

// Script says what the workers of a run do. Name is NODE for every attempt of
// a node, NODE.aK for its attempt K, or "default" for what has no script of its
// own; without any script a worker marks NODE/work.txt and resolves F-NODE.
// A script has one step per line; {node}, {run} and {attempt} are replaced.
//
//	mark PATH            add a unique line to a file and log it: an edit that must never be lost
//	write PATH TEXT      replace a file
//	append PATH TEXT     add a line to a file
//	remove PATH          remove a file
//	result STATUS        deliver a result: the same status for the finding F-{node}
//	result F=STATUS ...  deliver a result: a status per finding
//	raw TEXT             deliver TEXT as the result
//	say TEXT             print to standard output
//	cry TEXT             print to standard error
//	prompt               print the prompt, each line after "told: "
//	tell NAME            give a signal
//	wait NAME            wait for a signal
//	work DURATION        take time
//	orphan               leave a process behind in a session of its own that ignores TERM
//	stubborn             ignore TERM from now on
//	hang                 never end
//	exit CODE            end
func (c Control) Script(t testing.TB, run, name string, steps ...string) {
	t.Helper()
	path := filepath.Join(c.Dir, "scripts", run, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(steps, "\n")+"\n"), 0o644))
}

// script returns the steps of an attempt.
func (c Control) script(run, node, attempt string) (string, error) {
	for _, name := range []string{node + ".a" + attempt, node, "default"} {
		data, err := os.ReadFile(filepath.Join(c.Dir, "scripts", run, name))
		if err == nil {
			return string(data), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read script: %w", err)
		}
	}
	return "mark {node}/work.txt\nresult resolved\n", nil
}

func (c Control) signal(run, name string) string {
	return filepath.Join(c.Dir, "signals", run, name)
}

// Tell gives a signal, which ends every `wait NAME` of the run.
func (c Control) Tell(run, name string) error {
	path := c.signal(run, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("give signal: %w", err)
	}
	return os.WriteFile(path, nil, 0o644)
}

// Told reports whether a signal was given.
func (c Control) Told(run, name string) bool {
	_, err := os.Stat(c.signal(run, name))
	return err == nil
}

// Await waits until a worker gives a signal.
func (c Control) Await(t testing.TB, run, name string) {
	t.Helper()
	Eventually(t, "signal "+name+" of "+run, func() bool { return c.Told(run, name) })
}

// Event is one line of the log of a run's workers.
type Event struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"` // start | mark | end | orphan
	Node    string    `json:"node"`
	Attempt string    `json:"attempt"`
	Process Identity  `json:"process"`
	Tree    string    `json:"tree"`            // the worker's worktree, which tells its host
	Alive   int       `json:"alive,omitempty"` // start: workers of the run alive, this one included
	Twins   int       `json:"twins,omitempty"` // start: other workers of the same node still alive
	Mark    string    `json:"mark,omitempty"`
}

// Identity names a process beyond the reuse of its number.
type Identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // kernel's start time
}

// Mark makes and logs an edit of somebody who works on a node by hand.
func (c Control) Mark(t testing.TB, run, node string, attempt int, tree string) {
	t.Helper()
	w := &worker{control: c, run: run, node: node, attempt: fmt.Sprint(attempt), tree: tree}
	require.NoError(t, w.mark(node+"/work.txt"))
}

// Events returns what the workers of a run did, oldest first.
func (c Control) Events(t testing.TB, run string) []Event {
	t.Helper()
	unlock, err := c.lock(run)
	require.NoError(t, err)
	defer unlock()
	events, err := c.read(run)
	require.NoError(t, err)
	return events
}

// Starts counts the workers that were launched for a node.
func (c Control) Starts(t testing.TB, run, node string) int {
	t.Helper()
	n := 0
	for _, e := range c.Events(t, run) {
		if e.Kind == "start" && e.Node == node {
			n++
		}
	}
	return n
}

func (c Control) logPath(run string) string { return filepath.Join(c.Dir, "log", run+".jsonl") }

func (c Control) lock(run string) (func(), error) {
	lock := flock.New(filepath.Join(c.Dir, "log", run+".lock"))
	if err := lock.Lock(); err != nil {
		return nil, fmt.Errorf("lock log: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// read reads the log; a last line that a killed worker cut off counts for nothing.
func (c Control) read(run string) ([]Event, error) {
	file, err := os.Open(c.logPath(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	defer func() { _ = file.Close() }()
	var events []Event
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var e Event
		if json.Unmarshal(scanner.Bytes(), &e) == nil {
			events = append(events, e)
		}
	}
	return events, scanner.Err()
}

// append adds an event under the lock; prepare sees what was there before.
func (c Control) append(run string, e Event, prepare func(*Event, []Event)) error {
	unlock, err := c.lock(run)
	if err != nil {
		return err
	}
	defer unlock()
	if prepare != nil {
		before, err := c.read(run)
		if err != nil {
			return err
		}
		prepare(&e, before)
	}
	e.At = time.Now().UTC()
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.logPath(run), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	defer func() { _ = file.Close() }()
	// The newline first: whatever a killed writer left is a line of its own.
	if _, err := file.Write(append([]byte("\n"), data...)); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	EventuallyNone(t, what, func() []string {
		if holds() {
			return nil
		}
		return []string{"not so"}
	})
}

// EventuallyNone waits until a list is empty.
func EventuallyNone(t testing.TB, what string, list func() []string) {
	t.Helper()
	deadline := time.Now().Add(Guard)
	for {
		left := list()
		switch {
		case len(left) == 0:
			return
		case time.Now().After(deadline):
			t.Fatalf("wait for %s: after %v still %v", what, Guard, left)
		}
		time.Sleep(poll)
	}
}
