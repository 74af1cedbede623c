package quota

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Pattern is a user's rule of a pools file for texts that the built-in rules
// do not name.
type Pattern struct {
	// Match is a regular expression (RE2) over the cleaned text: no colours, plain
	// quotes and dashes. Of a JSON stream it sees what the provider said only.
	Match string
	// Outcome is what a matching launch means.
	Outcome Outcome
	// Reset names the group of Match that holds the reset; empty: the groups
	// called "reset" (any time expression), "at" (an instant), "in" (a wait) or
	// "epoch", where they exist. What is no group is a wait of its own, as
	// time.ParseDuration reads it: "15m".
	Reset string
}

// Patterns are compiled rules, tried in order. The zero value has none.
type Patterns struct {
	rules []userRule
}

type userRule struct {
	re      *regexp.Regexp
	outcome Outcome
	groups  []int         // of the reset, in order of preference
	wait    time.Duration // fixed; 0: none
	name    string
}

// CompilePatterns compiles the rules. The error joins all faults, each with
// the index of its rule.
func CompilePatterns(rules []Pattern) (Patterns, error) {
	var out Patterns
	var faults []error
	for i, p := range rules {
		r, err := compile(p, i)
		if err != nil {
			faults = append(faults, fmt.Errorf("compile limit_patterns[%d]: %w", i, err))
			continue
		}
		out.rules = append(out.rules, r)
	}
	if len(faults) > 0 {
		return Patterns{}, errors.Join(faults...)
	}
	return out, nil
}

func compile(p Pattern, i int) (userRule, error) {
	r := userRule{outcome: p.Outcome, name: fmt.Sprintf("pattern:%d", i)}
	var faults []error
	if !patternOutcomes[p.Outcome] {
		faults = append(faults, fmt.Errorf("read outcome: %q is none that a pattern may give", p.Outcome))
	}
	if p.Match == "" {
		faults = append(faults, errors.New("read match: it is empty"))
	}
	re, err := regexp.Compile(p.Match)
	if err != nil {
		return r, errors.Join(append(faults, fmt.Errorf("read match: %w", err))...)
	}
	if p.Match != "" && re.MatchString("") {
		faults = append(faults, fmt.Errorf("read match: %q matches an empty text", p.Match))
	}
	r.re = re
	names := []string{"reset", "at", "in", "epoch"}
	if p.Reset != "" {
		names = []string{p.Reset}
		if re.SubexpIndex(p.Reset) < 0 {
			if r.wait, err = time.ParseDuration(p.Reset); err != nil || r.wait < 0 {
				faults = append(faults, fmt.Errorf("read reset: match has no group %q, and it is no duration", p.Reset))
			}
		}
	}
	for _, name := range names {
		if g := re.SubexpIndex(name); g >= 0 {
			r.groups = append(r.groups, g)
		}
	}
	if p.Reset != "" && p.Outcome.Hard() {
		faults = append(faults, fmt.Errorf("read reset: %s has none", p.Outcome))
	}
	return r, errors.Join(faults...)
}

// patternOutcomes are the outcomes that a user may give.
var patternOutcomes = map[Outcome]bool{
	RateLimited: true, Overloaded: true, CreditExhausted: true, AuthFailed: true,
	ModelUnavailable: true, PacketTooLarge: true, QuotaUnclassified: true, Timeout: true, Error: true,
}

// apply gives the verdict of the first rule that matches the cleaned text.
func (ps Patterns) apply(c calendar, src string) (Verdict, bool) {
	for _, r := range ps.rules {
		m := r.re.FindStringSubmatchIndex(src)
		if m == nil {
			continue
		}
		v := verdict(r.outcome, r.name)
		v.Evidence = excerpt([]byte(src[m[0]:m[1]]))
		if r.outcome != RateLimited && r.outcome != Overloaded {
			return v, true
		}
		if r.wait > 0 {
			at := c.observed.Add(r.wait)
			v.ResetAt, v.ResetPrecision = &at, Exact
		}
		for _, g := range r.groups {
			if m[2*g] < 0 {
				continue
			}
			if s, ok := c.stated(src[m[2*g]:m[2*g+1]]); ok {
				at := s.at.UTC()
				v.ResetAt, v.ResetPrecision = &at, s.unit
				break
			}
		}
		return v, true
	}
	return Verdict{}, false
}

// stated reads a time expression that stands alone; a bare number is an epoch
// or a wait in seconds.
func (c calendar) stated(s string) (stamp, bool) {
	p := parser{calendar: c, src: s, toks: tokenize(s)}
	st, next, state := p.moment(0)
	if state == read && next >= len(p.toks) {
		return st, true
	}
	if _, after := p.float(0); p.tok(0).kind == num && after >= len(p.toks) {
		st, _, ok := field{role: resetAny, unit: time.Second}.stamp(c, s)
		return st, ok
	}
	return st, state == read
}
