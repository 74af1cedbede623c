package dispatch

import "time"

// ramp limits how many attempts may be alive at once on a pool, an account or a
// model that has yet to prove itself: one, then 2, 4, … after successes
// (dispatch.md). Its zero value limits nothing.
type ramp struct {
	Allowed int       `json:"allowed,omitempty"` // 0: no limit
	Since   time.Time `json:"since,omitzero"`    // only launches after it prove anything
	From    time.Time `json:"from,omitzero"`     // only launches after it are counted
}

// start allows one attempt besides those that run already: after a reopening
// they are what is left of the time before it.
func (r *ramp) start(now time.Time) { *r = ramp{Allowed: 1, Since: now, From: now} }

// down halves what is allowed.
func (r *ramp) down(most int, now time.Time) {
	*r = ramp{Allowed: max(1, r.limit(most)/2), Since: now, From: r.From}
}

// success doubles what is allowed when the launch began under this ramp; the
// ramp ends when it no longer limits.
func (r *ramp) success(started time.Time, most int) {
	if r.Allowed == 0 || started.Before(r.Since) {
		return
	}
	if r.Allowed *= 2; r.Allowed >= most {
		r.Allowed = 0
	}
}

// counts reports whether an attempt granted at an instant is one of those allowed.
func (r ramp) counts(granted time.Time) bool { return !granted.Before(r.From) }

// limit is the number of attempts allowed at once, at most most.
func (r ramp) limit(most int) int {
	if r.Allowed == 0 {
		return most
	}
	return min(r.Allowed, most)
}

// ramping reports whether the ramp still limits.
func (r ramp) ramping() bool { return r.Allowed > 0 }
