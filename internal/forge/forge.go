// Package forge opens pull requests on GitHub and merge requests on GitLab.
//
// It looks up and opens; what an answer means for a run (a retry, the end) is
// decided elsewhere. Each call is one request that is never repeated here: the
// caller owns the number of tries, and an answer that never came may still have
// had its effect. Errors are *Error and say which of these it was.
package forge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mendflow/internal/plan"
)

// A PullRequest is a pull request or a merge request.
type PullRequest struct {
	Name   string // as people call it: #12 on GitHub, !12 on GitLab
	URL    string
	Body   string
	Open   bool
	Merged bool
}

// Proposal is what to open.
type Proposal struct {
	Head  string // branch with the work
	Into  string // branch that it is for
	Title string
	Body  string
	Draft bool
}

// Forge is a project on a service.
type Forge interface {
	// Find lists the requests of a branch, in every state, newest first.
	Find(ctx context.Context, head string) ([]PullRequest, error)
	// Open opens a request.
	Open(ctx context.Context, p Proposal) (PullRequest, error)
}

// Settings say which project, and how it is reached.
type Settings struct {
	Kind    plan.Forge
	API     string // base URL; empty: the public service
	Project string // owner/name; on GitLab with all groups
	Token   string
	Client  *http.Client // nil: one with a time limit
}

// requestLimit bounds one request, its answer included.
const requestLimit = 30 * time.Second

// agent names us to the services, which ask for it.
const agent = "mendflow"

// New returns the project's forge. Nothing is sent yet.
func New(s Settings) (Forge, error) {
	if s.Client == nil {
		s.Client = &http.Client{Timeout: requestLimit}
	}
	client := *s.Client
	client.CheckRedirect = followReads
	s.Client = &client
	switch s.Kind {
	case plan.ForgeGitHub:
		return newGitHub(s)
	case plan.ForgeGitLab:
		return newGitLab(s)
	}
	return nil, fmt.Errorf("open forge: %q is none: want github or gitlab", s.Kind)
}

// followReads follows redirects of reads. One of a write would be sent again as a
// read, and its answer taken for that of the write.
func followReads(_ *http.Request, via []*http.Request) error {
	const most = 10 // as many as the standard library follows
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) >= most {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// Effect says what a failed request may have done.
type Effect int

// What a failed request may have done.
const (
	// Nothing: it changed nothing, and may be tried again.
	Nothing Effect = iota + 1
	// Unknown: no clear answer came, it may have been done.
	Unknown
	// Refused: it changed nothing, and trying again would not help.
	Refused
	// Exists: it was refused because a request of the branch is there already.
	Exists
)

// Error is a failed request.
type Error struct {
	Effect     Effect
	RetryAfter time.Duration // what the service asks to wait; 0: it does not say
	Err        error
}

// Error is the service's own words on one line.
func (e *Error) Error() string { return strings.Join(strings.Fields(e.Err.Error()), " ") }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// EffectOf is the effect of an error of this package; of any other it is unknown.
func EffectOf(err error) (Effect, time.Duration) {
	var e *Error
	if errors.As(err, &e) {
		return e.Effect, e.RetryAfter
	}
	return Unknown, 0
}

// unanswered classifies an error without an answer of the service: a request that
// was never sent changed nothing.
func unanswered(err error) *Error {
	effect := Unknown
	var op *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" {
		effect = Nothing
	}
	return &Error{Effect: effect, Err: err}
}

// answered classifies a status code. write says that the request would have changed something.
func answered(code int, header http.Header, write bool, now time.Time, err error) *Error {
	e := &Error{Err: err, RetryAfter: retryAfter(header, now)}
	switch {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout,
		code == http.StatusForbidden && e.RetryAfter > 0: // a limit, and no missing permission
		e.Effect = Nothing
	case code >= 500 && write:
		e.Effect = Unknown // a gateway may have given up on what still happens behind it
	case code >= 500:
		e.Effect = Nothing
	default:
		e.Effect = Refused
	}
	return e
}

// retryAfter reads Retry-After (seconds or a date), else the reset of an exhausted rate limit.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		// Within what a Duration holds; at least a moment, since the service did say something.
		return time.Duration(min(max(seconds, 1), 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), time.Second)
	}
	for _, limit := range []struct{ left, reset string }{
		{"X-RateLimit-Remaining", "X-RateLimit-Reset"}, {"RateLimit-Remaining", "RateLimit-Reset"},
	} {
		if reset, err := strconv.ParseInt(h.Get(limit.reset), 10, 64); err == nil && h.Get(limit.left) == "0" {
			return max(time.Unix(reset, 0).Sub(now), time.Second)
		}
	}
	return 0
}
