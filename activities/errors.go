package activities

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/process"
)

// errInvalidPlan marks a plan or pools file that cannot be used.
var errInvalidPlan = errors.New("invalid plan")

// errBranchMoved says that somebody else wrote to the truth.
var errBranchMoved = errors.New("the truth was moved by somebody else")

// errorSize bounds the text of an error, so that it never becomes a large payload.
const errorSize = 1000

// translate is the only place where errors become Temporal's: a type from the
// contract, one bounded line. A cancellation stays what it is.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && stillAlive(err) == "" {
		if hostStops(ctx) { // nobody asked for the cancel: another host takes it at once
			return temporal.NewApplicationErrorWithOptions(errHostStops.Error(), contract.ErrorServiceUnready,
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
		}
		return temporal.NewCanceledError()
	}
	var options temporal.ApplicationErrorOptions
	if why := stillAlive(err); why != "" {
		where := contract.Unproven{Why: why}
		var at *hostError
		if errors.As(err, &at) {
			where.Host = at.host
		}
		options.Details = []any{where}
	}
	return temporal.NewApplicationErrorWithOptions(clip(foldSpace(err.Error()), errorSize), typeOf(err), options)
}

// stillAlive says what a program left that could not be ended; empty: nothing.
func stillAlive(err error) string {
	var alive *process.AliveError
	if !errors.As(err, &alive) {
		return ""
	}
	return oneLine(alive.Error())
}

// hostError says on which host something failed, where the workflow does not know it.
type hostError struct {
	host string
	err  error
}

func (e *hostError) Error() string { return e.err.Error() }
func (e *hostError) Unwrap() error { return e.err }

func typeOf(err error) string {
	switch {
	case errors.Is(err, errInvalidPlan):
		return contract.ErrorInvalidPlan
	case errors.Is(err, errUnserved):
		return contract.ErrorServiceUnready
	case stillAlive(err) != "":
		return contract.ErrorProcessAlive
	case errors.Is(err, errBranchMoved), errors.Is(err, gitrepo.ErrTruthMissing):
		return contract.ErrorBranchMoved
	case errors.Is(err, gitrepo.ErrBaseUnknown):
		return contract.ErrorBaseUnknown
	case errors.Is(err, gitrepo.ErrFenced):
		return contract.ErrorSuperseded
	case errors.Is(err, gitrepo.ErrUnreachable), errors.Is(err, gitrepo.ErrNotRepository),
		errors.Is(err, gitrepo.ErrEmptyRepository), errors.Is(err, gitrepo.ErrHubRefuses):
		return contract.ErrorRepositoryUnreachable
	case errors.Is(err, gitrepo.ErrNoWorktree), errors.Is(err, gitrepo.ErrOutOfPlace), errors.Is(err, fs.ErrNotExist):
		return contract.ErrorWorktreeMissing
	case errors.Is(err, gitrepo.ErrLocked):
		return contract.ErrorWorktreeBusy
	case errors.Is(err, gitrepo.ErrDiskFull), errors.Is(err, artifacts.ErrFull):
		return contract.ErrorDiskFull
	case errors.Is(err, artifacts.ErrNotFound):
		return contract.ErrorArtifactMissing
	}
	return contract.ErrorInternal
}

// foldSpace makes one line of a text.
func foldSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// oneLine is a text as one bounded line, fit for a reason.
func oneLine(text string) string { return clip(foldSpace(text), 500) }

// clip cuts text at a rune boundary to at most limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// clipHead keeps the end of a text, where failures say what is wrong.
func clipHead(text string, limit int) string {
	text = strings.TrimSpace(text)
	if len(text) <= limit {
		return text
	}
	start := len(text) - limit + len("…")
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return "…" + text[start:]
}
