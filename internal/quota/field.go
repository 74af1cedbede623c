package quota

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// role is what the name of a field or header says about its value. Names are
// read by their words, so resetsAt, reset_at and X-RateLimit-Reset-At agree.
type role uint8

const (
	noRole        role = iota
	resetAny           // instant or wait, told apart by the value
	resetAt            // instant
	resetIn            // wait
	remaining          // units left in a window
	usedPercent        // share used, 0 to 100
	utilization        // share used, 0 to 1
	windowVerdict      // allowed, rejected
)

// field is a name taken apart.
type field struct {
	role   role
	window string        // the words that say nothing about the role, joined
	unit   time.Duration // of a bare number; 0: not stated
	words  []string
}

// keyWords gives the words of a name in lower case.
func keyWords(name string) []string {
	toks := tokenize(clean(name))
	words := make([]string, 0, len(toks))
	for _, t := range toks {
		if t.kind != punct {
			words = append(words, t.text)
		}
	}
	return words
}

// fieldUnits are the units in names: resets_in_seconds, retry-after-ms.
var fieldUnits = names(map[string]time.Duration{
	"ms msec millis milliseconds": time.Millisecond,
	"s sec secs seconds":          time.Second,
	"minutes mins":                time.Minute,
	"hours":                       time.Hour,
	"days":                        24 * time.Hour,
})

func fieldOf(name string) field {
	f := field{words: keyWords(name)}
	var reset, retry, available, at, in, after bool
	var rest []string
	for _, w := range f.words {
		switch w {
		case "reset", "resets", "resetting", "renews":
			reset = true
		case "retry", "cooldown", "wait":
			retry = true
		case "at", "time", "timestamp", "stamp", "date", "epoch", "on":
			at = true
		case "until":
			reset, at = true, true
		case "available", "unlocks", "reopens", "resumes":
			available = true
		case "in", "delay":
			in = true
		case "after":
			in, after = true, true
		case "remaining":
			f.role = remaining
		case "used", "usage", "percent", "percentage":
			f.role = usedPercent
		case "utilization", "utilisation":
			f.role = utilization
		case "status":
			f.role = windowVerdict
		default:
			if u, ok := fieldUnits[w]; ok {
				f.unit = u
			} else {
				rest = append(rest, w)
			}
		}
	}
	reset = reset || available && (at || in)
	f.window = strings.Join(rest, "")
	switch {
	case reset && (in || f.unit != 0), retry && (in || f.unit != 0):
		f.role = resetIn
	case reset && at, retry && at && !after:
		f.role = resetAt
	case reset:
		f.role = resetAny
	case retry:
		f.role = noRole
	}
	if f.role == usedPercent && !slices.Contains(f.words, "percent") && !slices.Contains(f.words, "percentage") {
		f.role = noRole
	}
	return f
}

// stamp reads the value of a reset field. Bare numbers are epochs when they
// are large enough, else waits in the stated unit or seconds.
func (f field) stamp(c calendar, val string) (s stamp, relative, ok bool) {
	val = strings.TrimSpace(val)
	if n, err := strconv.ParseFloat(val, 64); err == nil {
		return f.number(c, n)
	}
	if len(val) > 80 {
		return s, false, false
	}
	if c.local = c.provider; c.local == nil {
		c.local = time.UTC
	}
	p := parser{calendar: c, src: clean(val)}
	p.toks = tokenize(p.src)
	start := 0
	for p.tok(start).is("in") || p.tok(start).is("at") || p.tok(start).is("after") || p.tok(start).is("on") {
		start++
	}
	if wait, unit, _, ok := p.duration(start); ok {
		at, ok := c.later(wait)
		if !strings.Contains(val, " ") {
			unit = Exact // 6m0s: a machine wrote it
		}
		return stamp{at, unit}, true, ok
	}
	s, _, state := p.moment(start)
	return s, false, state == read
}

func (f field) number(c calendar, n float64) (s stamp, relative, ok bool) {
	if math.IsNaN(n) || n <= 0 {
		return s, false, false
	}
	if at, ok := epoch(n); ok && (f.role != resetIn || n < 1e11) {
		return stamp{at, Exact}, false, true
	}
	if f.role == resetAt || n > 1e15 {
		return s, false, false
	}
	unit := f.unit
	if unit == 0 {
		unit = time.Second
	}
	if n*float64(unit) > float64(farthest) {
		return s, false, false
	}
	at, ok := c.later(time.Duration(n * float64(unit)))
	return stamp{at, Exact}, true, ok
}
