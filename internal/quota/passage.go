package quota

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// wrapColumn is where programs wrap at the earliest: a line that would have
// had room for the next word below it was ended on purpose.
const wrapColumn = 50

// passage is a run of lines that were written together.
type passage struct {
	text string
	gap  bool // an empty line stands before it, or lines were left out
}

// passages joins the kept lines into runs.
func (p *plainText) passages() []passage {
	var out []passage
	var run strings.Builder
	prev, head, gap := "", "", false
	flush := func() {
		if run.Len() > 0 {
			out = append(out, passage{run.String(), gap})
			run.Reset()
			gap = false
		}
	}
	for _, line := range p.lines {
		if strings.TrimSpace(line) == "" {
			flush()
			prev, gap = "", true
			continue
		}
		if run.Len() > 0 && prev != "" && run.Len() < chunkSize &&
			(continues(prev, line) || attempt(head) && !startsStatement(line)) {
			run.WriteByte('\n')
		} else {
			flush()
			head = line
		}
		run.WriteString(line)
		prev = line
	}
	flush()
	return out
}

// continues tells whether a line is the rest of the one before it.
func continues(prev, line string) bool {
	body := strings.TrimLeft(line, " \t")
	if line != body && line[0] == ' ' {
		return true // indented
	}
	r, _ := utf8.DecodeRuneInString(body)
	if r == '}' || r == ']' || r == ')' {
		return true
	}
	word, _, _ := strings.Cut(body, " ")
	return utf8.RuneCountInString(prev)+1+utf8.RuneCountInString(word) > wrapColumn && !startsStatement(body)
}

// attempt tells whether a run reports a failed try; all lines up to the next
// report belong to it.
func attempt(s string) bool {
	return len(s) > 8 && strings.EqualFold(s[:8], "attempt ")
}

// startsStatement tells whether a line starts as reports of errors do.
func startsStatement(s string) bool {
	lower := strings.ToLower(s[:min(len(s), 16)])
	if rest, ok := strings.CutPrefix(lower, "attempt "); ok {
		return rest != "" && rest[0] >= '0' && rest[0] <= '9'
	}
	for _, start := range []string{"error", "api error", "[api error", "fatal", "retrying", "reconnecting", "warning"} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	return false
}

// transparent tells whether a line only reports that a program ended.
func transparent(s string) bool {
	lower := strings.ToLower(strings.TrimSpace(s))
	for _, start := range []string{"exit status", "exit code", "exited", "process exited", "worker exited", "signal:", "killed", "terminated", "operation cancelled", "command failed"} {
		if strings.HasPrefix(lower, start) {
			return true
		}
	}
	return false
}

// chunkSize bounds the text that is read at once; overlap is what one chunk
// repeats of the one before it, so that nothing falls between them.
const (
	chunkSize = 64 << 10
	overlap   = 2 << 10
)

// hearPlain turns the plain lines into one statement. Announced retries count
// only as the last words, and then only the last of them.
func (h *hearing) hearPlain() {
	passages := h.plain.finish()
	retries := make([]bool, len(passages))
	for i, p := range passages {
		retries[i] = mentionsRetry(p.text) && len(retryLine.find(tokenize(p.text))) > 0
	}
	last := len(passages) - 1
	for last >= 0 && transparent(passages[last].text) {
		last--
	}
	var f facts
	kept := make([]passage, 0, len(passages))
	for i, p := range passages {
		if retries[i] && i != last {
			continue
		}
		kept = append(kept, p)
		if strings.ContainsRune(p.text, '{') && len(f.codes) < maxCodes {
			f.embedded(h.calendar, []byte(p.text), 0)
		}
	}
	s := h.statement(f, "")
	s.retry = last >= 0 && retries[last]
	heard := len(s.spoken) > 0 || s.retry
	for _, c := range slices.Backward(chunks(kept)) { // the last words first
		r := h.readPlain(c)
		statuses := r.statuses()
		if len(r.hits) == 0 && len(statuses) == 0 && !s.retry {
			continue
		}
		heard = true
		s.statuses = append(s.statuses, statuses...)
		s.readings = append(s.readings, r)
		if s.line == "" {
			s.line = excerpt([]byte(r.src))
		}
	}
	if heard {
		h.said = append(h.said, spoken{statement: s, final: true})
	}
}

// chunks joins passages to texts of about chunkSize.
func chunks(passages []passage) []string {
	var out []string
	var sb strings.Builder
	for _, p := range passages {
		if p.gap {
			sb.WriteByte('\n')
		}
		sb.WriteString(p.text)
		sb.WriteByte('\n')
		if sb.Len() > chunkSize {
			chunk := sb.String()
			out = append(out, chunk)
			sb.Reset()
			sb.WriteString(chunk[len(chunk)-overlap:])
		}
	}
	return append(out, sb.String())
}

func (h *hearing) readPlain(s string) reading {
	r := h.readText(s)
	r.plain = true
	h.strict(&r)
	return r
}

// mentionsRetry is a cheap test before the phrases of retryLine are looked for.
func mentionsRetry(s string) bool {
	for _, w := range []string{"etrying", "econnecting", "ttempt", "ETRYING", "ECONNECTING", "TTEMPT"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// strict drops the hits that plain text does not make as the provider.
func (h *hearing) strict(r *reading) {
	kept := r.hits[:0]
	for _, hit := range r.hits {
		if r.doubted(hit) || h.stdout && r.subject(hit) {
			continue
		}
		from, _ := r.sentence(hit)
		reported := h.plain.reported || strings.Contains(r.src[r.toks[hit.from].from:r.toks[hit.to-1].to], "_") // a code
		start, _ := r.period(hit)
		for i := start; i < hit.from; i++ {
			reported = reported || errorWords[r.toks[i].text]
		}
		lead := hit.from - from
		switch {
		case (hit.sense == quotaWord || hit.sense == limited) && r.inPath(hit):
			continue
		case hit.name == "limit-resets" && !reported && general[r.tok(hit.from-1).text]:
			continue // "the quota resets at midnight" tells how it works
		case hit.name == weakLimit && !reported && !r.ends(hit.to):
			continue
		case h.stdout && !h.failed && !reported && lead > 3:
			continue // an answer, not a banner
		}
		switch hit.sense {
		case quotaWord:
			if !h.failed || h.stdout && !reported || !reported && !r.failure(hit) {
				continue
			}
		case timedOut:
			if !h.failed || h.stdout && !reported && lead > 6 {
				continue
			}
		case noModel, noAccess, size, noCredit:
			if !reported && lead > 10 {
				continue
			}
		default:
			if h.stdout && !reported && lead > 16 {
				continue
			}
		}
		kept = append(kept, hit)
	}
	r.hits = kept
}

// ends tells whether nothing more stands on the line from token i on.
func (r *reading) ends(i int) bool {
	for r.tok(i).kind == punct && i < len(r.toks) && !r.toks[i].line {
		i++
	}
	return i >= len(r.toks) || r.toks[i].line
}

// inPath tells whether the first or the last word of a hit is part of a file
// name, an address or the name of an option.
func (r *reading) inPath(h hit) bool {
	slash := func(i int) bool { return r.tok(i).is("/") || r.tok(i).is("\\") }
	next := r.tok(h.to)
	after := r.tok(h.to + 1)
	return next.is(".") && !next.space && !after.space && after.kind == word && r.src[after.from] >= 'a' ||
		slash(h.to) && !next.space && !after.space ||
		slash(h.from-1) && !r.tok(h.from).space ||
		r.tok(h.from-1).is("-") && r.tok(h.from-2).is("-") && !r.tok(h.from).space ||
		slash(h.to-2) && !r.tok(h.to-1).space
}

// failure tells whether the sentence of a hit says that something failed.
func (r *reading) failure(h hit) bool {
	from, _ := r.period(h)
	_, to := r.sentence(h)
	for _, t := range r.toks[from:to] {
		if errorWords[t.text] || failureWords[t.text] {
			return true
		}
	}
	return false
}

var failureWords = set("violation", "refused", "refuses", "denied", "rejected", "exceeded", "exit", "blocked", "unavailable",
	"aborted", "abort", "invalid", "cannot", "can't", "unable", "forbidden", "disabled", "expired", "required", "violated",
	"insufficient", "stopped", "not", "problem", "issue", "declined", "suspended")

// general are words before a limit that is not the reader's own.
var general = set("the", "a", "an", "its", "their", "each", "every", "remaining", "this")

var errorWords = set("error", "apierror", "failed", "erro", "fehler", "exception", "failure")
