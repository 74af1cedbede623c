package run

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// Bounds of a publication (gate-and-close.md, Close).
const (
	publishTries    = 5
	publishDelay    = 2 * time.Second // doubled after every try
	minPublishDelay = time.Second     // of what the other side asks for
	maxPublishDelay = time.Hour
)

// PublishStep is what a publication does next.
type PublishStep string

// Steps of a publication.
const (
	PublishTry  PublishStep = "try"  // look what is there and publish what is missing
	PublishLook PublishStep = "look" // only look: the last try gave no clear answer
	PublishWait PublishStep = "wait"
	PublishDone PublishStep = "done"
)

// Publication is the state of a run's closing action: when it is tried, how often,
// and what an unclear answer means. Make one with NewPublication.
type Publication struct {
	View   contract.PublicationView `json:"view"`
	Looked bool                     `json:"looked,omitempty"` // after the last try
}

// NewPublication returns one that was not tried yet.
func NewPublication(action string) *Publication {
	return &Publication{View: contract.PublicationView{Action: action, State: contract.PublishPending}}
}

// SkippedPublication returns one that is not tried, and why.
func SkippedPublication(action, why string) *Publication {
	return &Publication{View: contract.PublicationView{Action: action, State: contract.PublishSkipped, Detail: why}}
}

// Next says what to do now; the instant is that of the end of a wait.
func (p *Publication) Next(now time.Time) (PublishStep, time.Time) {
	if p.View.State.Over() {
		return PublishDone, time.Time{}
	}
	if until := p.View.Until; until != nil && until.After(now) {
		return PublishWait, *until
	}
	if p.View.Attempts >= publishTries {
		return PublishLook, time.Time{}
	}
	return PublishTry, time.Time{}
}

// Begin records that a try, or a last look, is under way.
func (p *Publication) Begin() {
	p.View.Until = nil
	if p.View.Attempts >= publishTries {
		p.Looked = true
		return
	}
	p.View.State = contract.PublishInFlight
	p.View.Attempts++
}

// Answer takes in how a try ended.
func (p *Publication) Answer(end contract.PublishEnd, now time.Time) {
	v := &p.View
	v.State, v.Detail = end.State, end.Detail
	for _, f := range []struct {
		to *string
		is string
	}{{&v.Branch, end.Branch}, {&v.URL, end.URL}, {&v.Commit, end.Commit}} {
		if f.is != "" {
			*f.to = f.is
		}
	}
	if v.State.Over() {
		return
	}
	// A try whose answer is unknown may have done it: there is one more look after the last.
	if v.Attempts >= publishTries && (p.Looked || v.State == contract.PublishRetryable) {
		v.State = contract.PublishExhausted
		return
	}
	until := now.Add(delay(v.Attempts, end.RetryAfter))
	v.Until = &until
}

// Lost takes in that a try gave no answer at all: its host died, or could not begin.
func (p *Publication) Lost(why string, now time.Time) {
	p.Answer(contract.PublishEnd{State: contract.PublishUncertain, Detail: why}, now)
}

// Hurry ends a wait.
func (p *Publication) Hurry() { p.View.Until = nil }

// delay is the time between a try and the next. What the other side asks for counts
// within bounds: neither a slip of it nor its malice may hold a run for days.
func delay(attempts, retryAfter int) time.Duration {
	if retryAfter > 0 {
		return max(time.Duration(min(retryAfter, int(maxPublishDelay/time.Second)))*time.Second, minPublishDelay)
	}
	return publishDelay << max(attempts-1, 0)
}

// PublishMark is what the text of a pull request carries, so that it is known again.
func PublishMark(run, head string) string {
	return fmt.Sprintf("<!-- mendflow run=%s head=%s -->", run, head)
}

var markPattern = regexp.MustCompile(`<!-- mendflow run=([A-Za-z0-9._-]+) head=([0-9a-f]+) -->`)

// Request is a pull request of the branch, as the forge tells it.
type Request struct {
	Name   string // as people call it: #12, !12
	URL    string
	Body   string
	Open   bool
	Merged bool
}

// JudgeRequests says what the pull requests of a branch mean for a publication:
// ours, open or merged, is success; ours that somebody closed, or one that is
// somebody else's, is for people. ok is false when there is none in the way.
func JudgeRequests(run, head string, found []Request) (end contract.PublishEnd, ok bool) {
	mine := func(r Request) (string, bool) {
		marks := markPattern.FindAllStringSubmatch(r.Body, -1)
		i := slices.IndexFunc(marks, func(m []string) bool { return m[1] == run })
		if i < 0 {
			return "", false
		}
		return marks[i][2], true
	}
	// Success first: what was opened twice by hand does not undo it.
	for _, r := range found {
		if at, ours := mine(r); ours && at == head && (r.Open || r.Merged) {
			state := "open"
			if r.Merged {
				state = "merged"
			}
			return contract.PublishEnd{State: contract.PublishSucceeded, URL: r.URL, Commit: head, Detail: r.Name + " is " + state}, true
		}
	}
	for _, r := range found {
		at, ours := mine(r)
		switch {
		case ours && at == head:
			return contract.PublishEnd{State: contract.PublishFailed, URL: r.URL, Detail: r.Name + " was closed without being merged"}, true
		case r.Open && ours:
			return contract.PublishEnd{State: contract.PublishFailed, URL: r.URL, Detail: fmt.Sprintf("%s is open for an earlier state of this run: close it, then publish again", r.Name)}, true
		case r.Open:
			return contract.PublishEnd{State: contract.PublishFailed, URL: r.URL, Detail: fmt.Sprintf("%s is open for the branch and not of this run: close it, or give close.branch another name", r.Name)}, true
		}
	}
	return contract.PublishEnd{}, false
}
