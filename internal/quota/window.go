package quota

import (
	"slices"
	"strconv"
	"strings"
)

// windowState is what is known of a quota window.
type windowState uint8

const (
	unknownState windowState = iota
	open
	exhausted
)

// window is one quota window as fields or headers describe it.
type window struct {
	name     string
	verdict  windowState // as the provider says: allowed, rejected
	measured windowState // as its counters say
	absolute stamp       // zero when not stated
	relative stamp
	model    bool // the window belongs to one model
}

func (w window) state() windowState {
	if w.verdict != unknownState {
		return w.verdict
	}
	return w.measured
}

// reset prefers the relative twin: it does not depend on the provider's clock.
func (w window) reset() (stamp, bool) {
	if !w.relative.at.IsZero() {
		return w.relative, true
	}
	return w.absolute, !w.absolute.at.IsZero()
}

// note takes up one field of the window.
func (w *window) note(c calendar, f field, val string) {
	switch f.role {
	case windowVerdict:
		w.verdict = verdictOf(val)
	case remaining, usedPercent, utilization:
		n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(val), "%"), 64)
		if err != nil {
			return
		}
		full := f.role == remaining && n <= 0 || f.role == usedPercent && n >= 100 || f.role == utilization && n >= 1
		if full {
			w.measured = exhausted
		} else if w.measured == unknownState {
			w.measured = open
		}
	case resetAny, resetAt, resetIn:
		s, relative, ok := f.stamp(c, val)
		switch {
		case !ok:
		case relative:
			w.relative = s
		default:
			w.absolute = s
		}
	default:
	}
}

func verdictOf(s string) windowState {
	words := keyWords(s)
	if len(words) == 0 {
		return unknownState
	}
	switch words[0] {
	case "allowed", "ok", "active", "available":
		return open
	case "rejected", "exceeded", "exhausted", "blocked", "limited", "denied":
		return exhausted
	}
	return unknownState
}

// latest gives the latest reset of the windows in the given state.
func latest(ws []window, state windowState) (best stamp, model, ok bool) {
	for _, w := range ws {
		s, has := w.reset()
		if w.state() != state || !has {
			continue
		}
		if !ok || s.at.After(best.at) {
			best, model, ok = s, w.model, true
		}
	}
	return best, model, ok
}

// headerFacts reads a set of headers: the wait that the provider asks for, and
// the windows.
func headerFacts(c calendar, headers map[string][]string) (waits []wait, windows []window) {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	byName := make(map[string]int)
	for _, name := range names {
		f := fieldOf(name)
		for _, val := range headers[name] {
			if strings.EqualFold(name, "ratelimit") || strings.EqualFold(name, "x-ratelimit") {
				windows = append(windows, structured(c, val)...)
				continue
			}
			if f.role == noRole {
				continue
			}
			if direct(f) {
				if s, rel, ok := f.stamp(c, val); ok {
					waits = append(waits, wait{stamp: s, relative: rel, fine: f.unit != 0, header: true})
				}
				continue
			}
			i, ok := byName[f.window]
			if !ok {
				i = len(windows)
				byName[f.window] = i
				windows = append(windows, window{name: f.window})
			}
			windows[i].note(c, f, val)
		}
	}
	return waits, windows
}

// direct tells whether a header states a wait that belongs to no window:
// Retry-After and its kin.
func direct(f field) bool {
	return slices.Contains(f.words, "retry") && (f.role == resetIn || f.role == resetAt || f.role == resetAny)
}

// structured reads the RateLimit header of the IETF drafts:
// "limit=100, remaining=0, reset=42" and "\"default\";r=0;t=42".
func structured(c calendar, val string) []window {
	w := window{name: val}
	for part := range strings.FieldsFuncSeq(val, func(r rune) bool { return r == ',' || r == ';' }) {
		key, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			continue
		}
		switch strings.ToLower(key) {
		case "r", "remaining":
			w.note(c, field{role: remaining}, v)
		case "t", "reset":
			w.note(c, field{role: resetAny}, v)
		}
	}
	return []window{w}
}
