package startercmd

import (
	"errors"
	"fmt"
)

// Exit codes of the program (a contract with scripts).
const (
	ExitDone        = 0   // and for waits: the run completed green
	ExitError       = 1   // anything that went wrong
	ExitUsage       = 2   // usage, invalid plan or pools
	ExitNotGreen    = 3   // the run closed and is not green
	ExitHeld        = 4   // the run is paused or waits for an answer
	ExitUnreachable = 5   // no Temporal server answers
	ExitInterrupted = 130 // the run goes on
)

// exitError carries an exit code; a nil err says that everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit returns an error that ends the program with the code and prints nothing more.
func exit(code int) error {
	if code == ExitDone {
		return nil
	}
	return &exitError{code: code}
}

// usage marks an error as the user's: exit code 2.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// codeOf returns the exit code of an error and whether there is still something to print.
func codeOf(err error) (code int, silent bool) {
	if err == nil {
		return ExitDone, true
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code, e.err == nil
	}
	return ExitError, false
}
