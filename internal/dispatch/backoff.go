package dispatch

import (
	"time"

	"mendflow/internal/contract"
)

// Delays of dispatch.md, "Outcomes of an attempt", and landing.md, "LandWork".
const (
	pauseBase    = time.Minute      // rate_limited without a reset, quota_unclassified
	pauseLimit   = 15 * time.Minute // of those
	overloadBase = 2 * time.Minute  // overloaded: minutes scale
	overloadMost = 30 * time.Minute
	retryBase    = 30 * time.Second // charged errors with cause provider or host
	retryLimit   = 15 * time.Minute
	downAfter    = time.Hour // nobody succeeded for this long: pool_down
)

// doubled is base·2^(n−1), at most limit; n counts from 1.
func doubled(base time.Duration, n int, limit time.Duration) time.Duration {
	delay := base
	for range n - 1 {
		if delay >= limit {
			break
		}
		delay *= 2
	}
	return min(delay, limit)
}

// pauseFor is how long a pool rests after its nth limit in a row when the
// provider stated no reset.
func pauseFor(outcome contract.Outcome, n int) time.Duration {
	if outcome == contract.OutcomeOverloaded {
		return doubled(overloadBase, n, overloadMost)
	}
	return doubled(pauseBase, n, pauseLimit)
}

// reopening is the instant at which a limited pool is tried again, and whether
// the provider stated it. A stated instant in the past means a probe now; when
// that probe was limited again the statement is worth nothing and the pool
// backs off, so that no wall is hammered.
func reopening(outcome contract.Outcome, limit *contract.Limit, n int, now time.Time) (until time.Time, stated bool) {
	if limit == nil || limit.ReopensAt == nil {
		return now.Add(pauseFor(outcome, n)), false
	}
	if limit.ReopensAt.After(now) {
		return *limit.ReopensAt, true
	}
	if n <= 1 {
		return now, true
	}
	return now.Add(pauseFor(outcome, n-1)), false
}

// limitModel is the key of a limit inside its account: the model it concerns,
// or empty for the whole account. An overload is the model's unless the text
// said otherwise, and so is a limit that nobody could read; every other limit is the account's.
func limitModel(outcome contract.Outcome, limit *contract.Limit, model string) string {
	scope := ""
	if limit != nil {
		scope = limit.Scope
	}
	switch {
	case scope == scopeModel:
		return model
	case scope == scopeAccount:
		return ""
	case outcome == contract.OutcomeOverloaded, outcome == contract.OutcomeQuotaUnclassified:
		return model
	}
	return ""
}

// Scopes of a limit (contract.Limit).
const (
	scopeAccount = "account"
	scopeModel   = "model"
)

// later returns the later of two instants; the zero instant is before all others.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest returns the earlier of two instants, where zero means none.
func earliest(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero(), a.Before(b):
		return a
	}
	return b
}
