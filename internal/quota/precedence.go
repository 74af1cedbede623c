package quota

import (
	"slices"
	"strconv"
	"strings"
)

// judge says what one statement means: the first rule that holds, in the order
// of the contract. A too large request beats everything, money without a way
// to wait beats access, access beats limits, and a named limit beats a bare
// status.
func (s *statement) judge() (Outcome, string, sense) {
	for _, rule := range []func(*statement) (Outcome, string, sense){
		(*statement).tooLarge, (*statement).hard, (*statement).refused, (*statement).capacity, (*statement).rest,
	} {
		if o, name, rank := rule(s); name != "" {
			return o, name, rank
		}
	}
	return Error, "", noSense
}

func (s *statement) tooLarge() (Outcome, string, sense) {
	if rule, ok := s.either(size); ok {
		return PacketTooLarge, rule, size
	}
	if s.status(413) {
		return PacketTooLarge, "status:413", size
	}
	return "", "", 0
}

// hard covers money and models: what an operator must mend.
func (s *statement) hard() (Outcome, string, sense) {
	if rule, ok := s.either(spendCap); ok {
		return CreditExhausted, rule, spendCap
	}
	if rule, ok := s.either(noModel); ok && !s.passing() {
		return ModelUnavailable, rule, noModel
	}
	if (s.status(404) || s.codeNotFound()) && s.speaksOfModel() {
		return ModelUnavailable, "status:404-model", noModel
	}
	if rule, ok := s.code(noCredit); ok && rule != "field:"+freeTier {
		return CreditExhausted, rule, noCredit // a code is no wording: it stays hard
	}
	if rule, ok := s.either(noCredit); ok && !s.soft() {
		return CreditExhausted, rule, noCredit
	}
	return "", "", 0
}

// passing tells whether the provider itself says that the state will pass.
func (s *statement) passing() bool {
	_, ok := s.either(busy)
	return ok || s.status(429, 529)
}

// soft tells whether credit wording comes with a way to wait: then it is a
// limit like any other.
func (s *statement) soft() bool {
	if rule, _ := s.either(noCredit); rule == "text:"+freeTier && s.status(429) {
		return true
	}
	for _, w := range s.waits {
		if !w.own {
			return true
		}
	}
	for i := range s.readings {
		r := &s.readings[i]
		if len(softWords.find(r.toks)) > 0 {
			return true
		}
		for _, f := range r.allResets() {
			if !f.bad {
				return true
			}
		}
	}
	return false
}

var softWords = newLexicon([]group{
	{anchorReset, "soft", `
		reset|resets|resetting
		try|retry again|after|in later
		try|retry again|after|in tomorrow
		try|retry later
		retry after|in`},
})

// codeNotFound tells whether a code says that something was not found.
func (s *statement) codeNotFound() bool {
	return slices.ContainsFunc(s.codes, func(code string) bool {
		return strings.HasPrefix(strings.Join(keyWords(code), " "), "not found")
	})
}

func (s *statement) speaksOfModel() bool {
	for i := range s.readings {
		for _, t := range s.readings[i].toks {
			if t.is("model") || t.is("models") {
				return true
			}
		}
	}
	return false
}

// refused covers access.
func (s *statement) refused() (Outcome, string, sense) {
	if rule, ok := s.code(noAccess); ok {
		if _, limit := s.says(limited); !limit || s.status(401) {
			return AuthFailed, rule, noAccess
		}
	}
	if rule, ok := s.says(noAccess); ok {
		return AuthFailed, rule, noAccess
	}
	if s.status(401) {
		return AuthFailed, "status:401", noAccess
	}
	if s.status(403) {
		if _, ok := s.either(limited); !ok && !s.spentWindow() {
			return AuthFailed, "status:403", noAccess
		}
	}
	return "", "", 0
}

func (s *statement) spentWindow() bool {
	spent := func(w window) bool { return w.state() == exhausted }
	return slices.ContainsFunc(s.windows, spent) || slices.ContainsFunc(s.headers.windows, spent)
}

// capacity tells limits of the account from lack of capacity. Codes come
// first; among words, capacity is the more special one.
func (s *statement) capacity() (Outcome, string, sense) {
	if rule, ok := s.either(busyNotLimit); ok {
		return Overloaded, rule, busyNotLimit
	}
	for _, w := range s.windows {
		if w.verdict == exhausted {
			return RateLimited, "field:window-rejected", limited
		}
	}
	if rule, ok := s.code(busy); ok {
		return Overloaded, rule, busy
	}
	if rule, ok := s.code(limited); ok && rule != "field:resource" {
		return RateLimited, rule, limited
	}
	if rule, ok := s.says(busy); ok {
		return Overloaded, rule, busy
	}
	if rule, ok := s.either(limited); ok {
		return RateLimited, rule, limited
	}
	if s.status(529) {
		return Overloaded, "status:529", busy
	}
	if s.status(429) {
		return RateLimited, "status:429", limited
	}
	if s.status(403) && s.spentWindow() {
		return RateLimited, "header:window-spent", limited
	}
	if rule, ok := s.either(noCredit); ok { // softened
		return RateLimited, rule, limited
	}
	return "", "", 0
}

// rest covers what no rule names.
func (s *statement) rest() (Outcome, string, sense) {
	if s.status(402) {
		return QuotaUnclassified, "status:402", quotaWord
	}
	if rule, ok := s.either(quotaWord); ok && !s.status(404) {
		return QuotaUnclassified, rule, quotaWord
	}
	for _, code := range []int{408, 504, 524} {
		if s.status(code) {
			return Timeout, "status:" + strconv.Itoa(code), timedOut
		}
	}
	if rule, ok := s.either(timedOut); ok {
		return Timeout, rule, timedOut
	}
	return "", "", 0
}

// statuses gives the HTTP statuses that a message names as such: at its start,
// behind a word such as "status", in brackets, or before their reason phrase.
// Stray numbers are none.
func (r *reading) statuses() []int {
	var out []int
	for i, t := range r.toks {
		if t.kind != num || len(t.text) != 3 || t.text[0] != '4' && t.text[0] != '5' {
			continue
		}
		if next := r.tok(i + 1); next.kind == word && !next.space || next.is(".") && r.tok(i+2).kind == num || next.is("/") {
			continue
		}
		if r.statusAt(i) && !r.doubted(hit{from: i, to: i + 1}) {
			n, _ := r.number(i, 3)
			out = append(out, n)
		}
	}
	return out
}

func (r *reading) statusAt(i int) bool {
	if (i == 0 || r.toks[i].line) && r.headline(i+1) {
		return true
	}
	if reasons[r.toks[i].text][r.tok(i+1).text] {
		return true
	}
	if r.tok(i-1).is("(") && (r.tok(i+1).is(")") || r.tok(i+1).is("{")) {
		return true
	}
	for j := i - 1; j >= 0 && j >= i-4; j-- {
		if t := r.toks[j]; t.kind == word {
			return statusWords[t.text]
		} else if t.kind == num {
			return false
		}
	}
	return false
}

// headline tells whether token i continues a line that started with a status:
// "429 Free quota exceeded", "529: overloaded", but not "429 files changed".
func (r *reading) headline(i int) bool {
	t := r.tok(i)
	if i >= len(r.toks) || t.line || t.kind == punct {
		return true
	}
	c := r.src[t.from]
	return t.kind == word && c >= 'A' && c <= 'Z'
}

var statusWords = set("status", "error", "code", "http", "apierror", "api", "returned", "response", "err", "statuscode", "fehler", "erro")

var reasons = map[string]map[string]bool{
	"400": set("bad"),
	"401": set("unauthorized", "incorrect", "invalid"),
	"402": set("payment", "insufficient"),
	"403": set("forbidden"),
	"404": set("not", "model"),
	"408": set("request"),
	"413": set("payload", "request", "content"),
	"429": set("too", "rate", "you", "resource", "quota", "monthly", "weekly", "daily", "usage"),
	"500": set("internal"),
	"502": set("bad"),
	"503": set("service"),
	"504": set("gateway"),
	"529": set("overloaded", "site"),
}
