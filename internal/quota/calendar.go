package quota

import "time"

// calendar resolves stated times against the moment at which they were seen.
type calendar struct {
	observed time.Time
	local    *time.Location // zone of a clock time that names none
	provider *time.Location // zone of the provider's own times; nil: not known
	lookup   ZoneLookup
}

// stamp is a read instant and the smallest unit in which it was stated.
type stamp struct {
	at   time.Time
	unit Precision
}

// farthest bounds what is believed of a stated wait.
const farthest = 2 * 366 * 24 * time.Hour

// wall gives the instant of a local time: of a doubled one the later instant,
// of a skipped one the first that exists after the gap.
func wall(year int, month time.Month, day, hour, minute, second int, loc *time.Location) time.Time {
	naive := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	guess := time.Date(year, month, day, hour, minute, second, 0, loc)
	start, end := guess.ZoneBounds()
	_, offset := guess.Zone()
	offsets := []int{offset}
	if !start.IsZero() {
		_, o := start.Add(-time.Second).Zone()
		offsets = append(offsets, o)
	}
	if !end.IsZero() {
		_, o := end.Zone()
		offsets = append(offsets, o)
	}
	var best time.Time
	for _, o := range offsets {
		at := naive.Add(-time.Duration(o) * time.Second).In(loc)
		if _, real := at.Zone(); real == o && (best.IsZero() || at.After(best)) {
			best = at
		}
	}
	if !best.IsZero() {
		return best
	}
	return gapEnd(naive, start, end)
}

// gapEnd picks the change of offset whose gap swallowed the local time naive.
func gapEnd(naive, start, end time.Time) time.Time {
	for _, change := range []time.Time{start, end} {
		if change.IsZero() {
			continue
		}
		_, before := change.Add(-time.Second).Zone()
		_, after := change.Zone()
		utc := change.UTC()
		if !naive.Before(utc.Add(time.Duration(before)*time.Second)) &&
			naive.Before(utc.Add(time.Duration(after)*time.Second)) {
			return change
		}
	}
	return start
}

// nextClock is the next occurrence of a clock time strictly after observed.
func (c calendar) nextClock(k clock, loc *time.Location) time.Time {
	y, m, d := c.observed.In(loc).Date()
	var at time.Time
	for ahead := -1; ahead <= 3; ahead++ {
		at = wall(y, m, d+ahead, k.hour, k.minute, k.second, loc)
		if at.After(c.observed) {
			break
		}
	}
	return at
}

// on resolves a date with or without a clock. ok is false for a date that
// names no instant (31 June) and for one that is too uncertain to wait for.
func (c calendar) on(d date, k clock, loc *time.Location) (at time.Time, ok bool) {
	here := c.observed.In(loc)
	switch {
	case d.ahead != noDay:
		y, m, day := here.Date()
		at = wall(y, m, day+int(d.ahead), k.hour, k.minute, k.second, loc)
		return at, k.given || d.ahead > 0
	case d.month == 0:
		return c.onWeekday(d, k, loc)
	case d.year != 0:
		if !valid(d.year, d.month, d.day) {
			return at, false
		}
		y, m, day := here.Date()
		today := y == d.year && m == d.month && day == d.day
		at = wall(d.year, d.month, d.day, k.hour, k.minute, k.second, loc)
		return at, k.given || !today
	}
	return c.nextDate(d, k, loc)
}

// nextDate is the next occurrence of a date without a year. One that has just
// passed is no reset of next year.
func (c calendar) nextDate(d date, k clock, loc *time.Location) (at time.Time, ok bool) {
	year := c.observed.In(loc).Year()
	for y := year - 1; y <= year+8; y++ {
		if !valid(y, d.month, d.day) {
			continue
		}
		at = wall(y, d.month, d.day, k.hour, k.minute, k.second, loc)
		if at.After(c.observed) {
			return at, true
		}
		over := at
		if !k.given {
			over = wall(y, d.month, d.day+1, 0, 0, 0, loc)
		}
		if c.observed.Sub(over) < 24*time.Hour {
			return at, false
		}
	}
	return at, false
}

func (c calendar) onWeekday(d date, k clock, loc *time.Location) (at time.Time, ok bool) {
	here := c.observed.In(loc)
	y, m, day := here.Date()
	ahead := (int(d.weekday) - int(here.Weekday()) + 7) % 7
	at = wall(y, m, day+ahead, k.hour, k.minute, k.second, loc)
	if at.After(c.observed) {
		return at, true
	}
	if !k.given {
		return at, false // names today
	}
	return wall(y, m, day+ahead+7, k.hour, k.minute, k.second, loc), true
}

func valid(year int, month time.Month, day int) bool {
	if month < 1 || month > 12 || day < 1 || year < 1970 || year > 9999 {
		return false
	}
	_, m, _ := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Date()
	return m == month
}

// epoch reads seconds, milliseconds, microseconds or nanoseconds since 1970 by
// the size of the number. Zero, negative and early values are no instants.
func epoch(n float64) (time.Time, bool) {
	switch {
	case n >= 1e9 && n < 1e11:
		return fromSeconds(n), true
	case n >= 1e12 && n < 1e14:
		return time.UnixMilli(int64(n)).UTC(), true
	case n >= 1e15 && n < 1e17:
		return time.UnixMicro(int64(n)).UTC(), true
	case n >= 1e18 && n < 9e18:
		return time.Unix(0, int64(n)).UTC(), true
	}
	return time.Time{}, false
}

func fromSeconds(n float64) time.Time {
	whole := int64(n)
	return time.Unix(whole, int64((n-float64(whole))*1e9)).UTC()
}

// later adds a wait to the observation; a wait of nothing or of years is none.
func (c calendar) later(wait time.Duration) (time.Time, bool) {
	if wait <= 0 || wait > farthest {
		return time.Time{}, false
	}
	return c.observed.Add(wait), true
}
