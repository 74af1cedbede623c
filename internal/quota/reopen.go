package quota

import "time"

const (
	// coarseSlack is added to a reset that was stated to the minute or coarser:
	// programs cut the seconds off.
	coarseSlack = 60 * time.Second
	// maxAhead bounds every wait; a longer one is a misread date.
	maxAhead = 35 * 24 * time.Hour
)

// Reopens gives the instant at which a limited pool is tried again: the stated
// reset, 60 s more when it was stated to the minute or coarser, plus margin,
// plus the given fraction (0 to 1) of jitter, at most 35 days after observed.
// A reset that is missing or already over means a probe now: observed itself.
func Reopens(v Verdict, observed time.Time, margin, jitter time.Duration, fraction float64) time.Time {
	if v.ResetAt == nil || !v.ResetAt.After(observed) {
		return observed
	}
	at := *v.ResetAt
	if v.ResetPrecision != Exact {
		at = at.Add(coarseSlack)
	}
	if !(fraction >= 0) { // also NaN
		fraction = 0
	}
	spread := time.Duration(float64(max(jitter, 0)) * min(fraction, 1))
	at = at.Add(max(margin, 0)).Add(spread)
	if limit := observed.Add(maxAhead); at.After(limit) {
		return limit
	}
	return at
}
