package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Errors that callers tell apart. Each is wrapped with what it concerns.
var (
	// ErrNotRepository: the path or URL is not a git repository.
	ErrNotRepository = errors.New("not a git repository")
	// ErrInsideRepository: the path is a folder inside another repository; its top has to be named.
	ErrInsideRepository = errors.New("inside another git repository")
	// ErrEmptyRepository: the hub has no commit.
	ErrEmptyRepository = errors.New("the repository has no commit")
	// ErrIncompleteHub: the hub is a shallow or partial clone, so that objects are missing in it.
	ErrIncompleteHub = errors.New("the repository is a shallow or partial clone")
	// ErrUnreachable: the hub could not be reached; it may be later.
	ErrUnreachable = errors.New("the repository cannot be reached")
	// ErrDubiousOwnership: git refuses the hub because someone else owns it.
	ErrDubiousOwnership = errors.New("the repository is owned by someone else")
	// ErrHubRefuses: the hub does not accept what a run must write to it.
	ErrHubRefuses = errors.New("the repository refuses the refs of a run")
	// ErrBaseUnknown: the revision names no commit of the hub.
	ErrBaseUnknown = errors.New("unknown base revision")
	// ErrTruthMissing: the run has no truth ref in the hub.
	ErrTruthMissing = errors.New("the run has no truth ref")
	// ErrInvalidName: a run, node or attempt cannot be part of a ref or path.
	ErrInvalidName = errors.New("invalid name")
	// ErrNoWorktree: the attempt has no worktree on this host.
	ErrNoWorktree = errors.New("no worktree of this attempt")
	// ErrOutOfPlace: the worktree is not the one that our record describes.
	ErrOutOfPlace = errors.New("the worktree is out of place")
	// ErrFenced: the fence names another attempt.
	ErrFenced = errors.New("the fence names another attempt")
	// ErrRefMoved: a ref did not have the expected value.
	ErrRefMoved = errors.New("the ref has moved")
	// ErrLocked: a lock of git is held by somebody else.
	ErrLocked = errors.New("a git lock is held")
	// ErrDiskFull: no space is left on this host.
	ErrDiskFull = errors.New("no space left on device")
)

// A CommandError is a git command that ended in an unexpected way.
type CommandError struct {
	Args   []string // without the leading "git"
	Code   int      // exit code; -1 when it was killed or did not start
	Stderr string   // at most 4 KiB
	Err    error    // what the operating system or the context said; nil for a plain exit
}

func (e *CommandError) Error() string {
	verb := "git"
	for _, a := range e.Args {
		if !strings.HasPrefix(a, "-") {
			verb += " " + a
			break
		}
	}
	text := strings.TrimSpace(e.Stderr)
	switch {
	case text != "" && e.Err != nil:
		return fmt.Sprintf("run %s: %v: %s", verb, e.Err, text)
	case text != "":
		return fmt.Sprintf("run %s: exit %d: %s", verb, e.Code, text)
	case e.Err != nil:
		return fmt.Sprintf("run %s: %v", verb, e.Err)
	}
	return fmt.Sprintf("run %s: exit %d", verb, e.Code)
}

// Unwrap gives the cause and the kind that git's text stands for, so that errors.Is works on both.
func (e *CommandError) Unwrap() []error {
	var causes []error
	if e.Err != nil {
		causes = append(causes, e.Err)
	}
	if kind := classify(e.Stderr); kind != nil {
		causes = append(causes, kind)
	}
	return causes
}

// kinds maps texts of git 2.39 (LC_ALL=C) to the errors above; the first match wins.
var kinds = []struct {
	text string
	kind error
}{
	{"No space left on device", ErrDiskFull},
	{"detected dubious ownership", ErrDubiousOwnership},
	{"Could not resolve host", ErrUnreachable},
	{"Connection refused", ErrUnreachable},
	{"Connection timed out", ErrUnreachable},
	{"Connection reset", ErrUnreachable},
	{"Failed to connect", ErrUnreachable},
	{"The requested URL returned error: 5", ErrUnreachable},
	{"does not appear to be a git repository", ErrNotRepository},
	{"not a git repository", ErrNotRepository},
	{"does not exist", ErrNotRepository},
	{"Could not read from remote repository", ErrUnreachable},
	{"unable to access", ErrUnreachable},
	{".lock': File exists", ErrLocked},
}

func classify(stderr string) error {
	for _, k := range kinds {
		if strings.Contains(stderr, k.text) {
			return k.kind
		}
	}
	return nil
}

// exitCode returns the exit code of a git command that ended by itself, -1 for anything else.
func exitCode(err error) int {
	if ce, ok := errors.AsType[*CommandError](err); ok && ce.Err == nil {
		return ce.Code
	}
	return -1
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
