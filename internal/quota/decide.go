package quota

import (
	"strings"
	"time"
)

// headerSet is what the headers of a response state.
type headerSet struct {
	waits   []wait
	windows []window
}

// Classify says how a launch ended. It is pure and total: any input gives a
// verdict, and the cost is proportional to the text.
func Classify(l Launch) Verdict {
	if l.HasResult {
		return verdict(Success, "result")
	}
	c := l.calendar()
	h := &hearing{calendar: c}
	h.failed = l.ExitCode == nil || *l.ExitCode != 0
	h.stdout = l.Channel != Stderr && l.Channel != HTTP
	h.plain.strict = h.stdout
	if l.Channel == HTTP {
		h.body(l.Text, l.HTTPStatus, l.Headers)
	} else {
		h.listen(l.Text)
		h.hearPlain()
	}
	if len(l.Patterns.rules) > 0 {
		if v, ok := l.Patterns.apply(c, h.quotable(l)); ok {
			return v
		}
	}
	return h.decide(l)
}

// quotable gives the text that a user's pattern may match: of a stream what
// the provider said, elsewhere everything.
func (h *hearing) quotable(l Launch) string {
	if l.Channel != StreamJSON {
		return clean(string(l.Text))
	}
	var sb strings.Builder
	for i := range h.said {
		for _, t := range append(h.said[i].texts, h.said[i].codes...) {
			sb.WriteString(t)
			sb.WriteByte('\n')
		}
	}
	for _, line := range h.plain.lines {
		sb.WriteString(line)
		sb.WriteByte('\n')
	}
	return clean(sb.String())
}

func (l Launch) calendar() calendar {
	c := calendar{observed: l.ObservedAt.UTC(), local: l.LocalZone, lookup: l.Zone}
	if c.local == nil {
		c.local = time.UTC
	}
	switch strings.ToLower(l.Provider) {
	case "glm", "zhipu", "zai", "z.ai", "bigmodel":
		c.local, c.provider = beijing, beijing
	}
	return c
}

// beijing is the zone of GLM's times, which name none.
var beijing = time.FixedZone("UTC+8", 8*60*60)

func verdict(o Outcome, rule string) Verdict {
	v := Verdict{Outcome: o, ResetPrecision: None, Scope: ScopeNone, Hard: o.Hard(), Rule: rule}
	switch o {
	case CreditExhausted, AuthFailed, RateLimited:
		v.Scope = ScopeAccount
	case ModelUnavailable:
		v.Scope = ScopeModel
	default:
	}
	return v
}

// decide picks the statement that explains the end, and the best reset among
// those that agree with it.
func (h *hearing) decide(l Launch) Verdict {
	findings := make([]finding, 0, len(h.said)+1)
	for i := range h.said {
		findings = append(findings, h.finding(&h.said[i].statement))
	}
	if f, ok := h.rejected(); ok {
		findings = append(findings, f)
	}
	best := -1
	for i, f := range findings {
		if f.rule != "" && (best < 0 || f.rank < findings[best].rank) {
			best = i
		}
	}
	if best < 0 {
		return h.unexplained(l, findings)
	}
	chosen := findings[best]
	v := verdict(chosen.outcome, chosen.rule)
	v.Evidence = chosen.text
	for _, f := range findings {
		if f.outcome != chosen.outcome || f.rule == "" {
			continue
		}
		if f.model && (v.Outcome == RateLimited || v.Outcome == Overloaded) {
			v.Scope = ScopeModel
		}
		if f.reset != nil && (chosen.reset == nil || f.source <= chosen.source) { // the later statement is the newer one
			chosen.reset, chosen.source = f.reset, f.source
		}
	}
	if f, ok := h.spent(); ok && v.Outcome == RateLimited && (chosen.reset == nil || f.source < chosen.source) {
		chosen.reset = f.reset
		if f.model {
			v.Scope = ScopeModel
		}
	}
	if chosen.reset != nil {
		at := chosen.reset.at.UTC()
		v.ResetAt, v.ResetPrecision = &at, chosen.reset.unit
	}
	return v
}

// unexplained is the verdict where nobody named a cause: the program was
// killed at its deadline in silence, or it failed for another reason.
func (h *hearing) unexplained(l Launch, findings []finding) Verdict {
	evidence := ""
	if len(findings) > 0 {
		evidence = findings[len(findings)-1].text
	}
	silent := len(findings) == 0
	switch {
	case l.Channel == HTTP && l.HTTPStatus == nil && len(strings.TrimSpace(string(ends(l.Text)))) == 0,
		l.Channel != HTTP && silent && (l.ExitCode == nil || *l.ExitCode == exitTimeout):
		return verdict(Timeout, "deadline")
	}
	v := verdict(Error, "exit")
	v.Evidence = evidence
	return v
}

// exitTimeout is how timeout(1) reports that it ended a program.
const exitTimeout = 124

// rejected gives the finding of windows that events reported as rejected.
func (h *hearing) rejected() (finding, bool) {
	f := finding{outcome: RateLimited, rule: "field:window-rejected", rank: limited}
	for _, name := range h.order {
		if w := h.windows[name]; w.verdict == exhausted {
			f.text, f.model = excerpt([]byte("window "+name+" rejected")), w.model
		}
	}
	return f, f.text != ""
}

// spent gives the reset of the windows that events reported as used up. Alone
// they are no evidence of a limit: a run may end at 100 % by accident.
func (h *hearing) spent() (finding, bool) {
	ws := make([]window, 0, len(h.order))
	for _, name := range h.order {
		ws = append(ws, h.windows[name])
	}
	s, model, ok := latest(ws, exhausted)
	return finding{outcome: RateLimited, rule: "field:window", reset: &s, source: fromField, model: model}, ok
}

// finding judges a statement and reads its reset.
func (h *hearing) finding(s *statement) finding {
	var f finding
	f.outcome, f.rule, f.rank = s.judge()
	f.text = s.evidence(f.rule)
	if f.outcome != RateLimited && f.outcome != Overloaded {
		return f
	}
	f.model = s.model || s.codesNameModel()
	for i := range s.readings {
		r := &s.readings[i]
		f.model = f.model || r.namesModel(append(r.of(limited), r.of(busy)...))
	}
	f.reset, f.source = s.reset(f.outcome)
	return f
}

// evidence gives the text around the phrase that decided, else the statement.
func (s *statement) evidence(rule string) string {
	for i := range s.readings {
		r := &s.readings[i]
		for _, h := range r.hits {
			if r.plain && "text:"+h.name == rule {
				from := max(int(r.toks[h.from].from)-maxEvidence/2, 0)
				to := min(int(r.toks[h.to-1].to)+maxEvidence/2, len(r.src))
				return excerpt([]byte(r.src[from:to]))
			}
		}
	}
	return s.line
}

func (s *statement) codesNameModel() bool {
	for _, code := range s.codes {
		if familyIn(keyWords(code)) {
			return true
		}
	}
	return false
}

// reset picks the reset of a statement: fields, then headers, then text, then
// the program's own back-off, which says something only about a limit.
func (s *statement) reset(o Outcome) (*stamp, resetSource) {
	fields := headerSet{s.waits, s.windows}
	headers := s.headers
	if o == Overloaded { // a window says nothing about it
		fields.windows, headers.windows = nil, nil
	}
	if st, ok := fieldReset(fields.waits, fields.windows); ok {
		return &st, fromField
	}
	if st, ok := fieldReset(headers.waits, headers.windows); ok {
		return &st, fromHeader
	}
	for i := range s.readings {
		r := &s.readings[i]
		all := r.allResets()
		if o == Overloaded {
			all = withoutOwn(all)
		}
		limits := r.of(limited)
		best, ok := pick(all, limits)
		if ok {
			source := fromText
			if best.sense == anchorOwn {
				source = fromOwn
			}
			return &best.stamp, source
		}
		if best.bad {
			return nil, noReset
		}
	}
	if o == RateLimited {
		for _, w := range s.waits {
			if w.own {
				return &w.stamp, fromOwn
			}
		}
	}
	return nil, noReset
}

func withoutOwn(all []found) []found {
	var out []found
	for _, f := range all {
		if f.sense != anchorOwn {
			out = append(out, f)
		}
	}
	return out
}

// fieldReset picks among structured resets: the wait that the provider asks
// for, relative before absolute, then the exhausted windows, then windows of
// which nothing but the reset is known.
func fieldReset(waits []wait, windows []window) (stamp, bool) {
	var best *wait
	for i := range waits {
		w := &waits[i]
		if w.own {
			continue
		}
		if best == nil || w.relative && !best.relative ||
			w.relative == best.relative && (w.fine && !best.fine || w.fine == best.fine && w.at.After(best.at)) {
			best = w
		}
	}
	if best != nil {
		return best.stamp, true
	}
	for _, state := range []windowState{exhausted, unknownState} {
		if s, _, ok := latest(windows, state); ok {
			return s, true
		}
	}
	return stamp{}, false
}
