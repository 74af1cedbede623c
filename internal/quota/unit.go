package quota

import (
	"strings"
	"unicode/utf8"
)

// wrapColumn is where programs wrap at the earliest: a line that would have
// had room for the next word below it was ended on purpose.
const wrapColumn = 50

// units joins the lines of plain text into runs that were written together.
func (p *plainText) units() []string {
	var out []string
	prev := ""
	for _, line := range p.lines {
		if strings.TrimSpace(line) == "" {
			prev = ""
			continue
		}
		if n := len(out); n > 0 && prev != "" && (continues(prev, line) || attempt(out[n-1]) && !startsStatement(line)) {
			out[n-1] += "\n" + line
		} else {
			out = append(out, line)
		}
		prev = line
	}
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
func attempt(unit string) bool {
	return len(unit) > 8 && strings.EqualFold(unit[:8], "attempt ")
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

// hearPlain turns the plain lines into one statement. Announced retries count
// only as the last words, and then only the last of them.
func (h *hearing) hearPlain() {
	units := h.plain.units()
	isRetry := func(u string) bool {
		return len(retryLine.find(tokenize(u))) > 0
	}
	lastRetry := -1
	for i := len(units) - 1; i >= 0; i-- {
		if transparent(units[i]) {
			continue
		}
		if isRetry(units[i]) {
			lastRetry = i
		}
		break
	}
	var kept []string
	for i, u := range units {
		if i == lastRetry || !isRetry(u) {
			kept = append(kept, u)
		}
	}
	if len(kept) == 0 {
		return
	}
	var f facts
	for _, u := range kept {
		if strings.ContainsRune(u, '{') {
			f.embedded(h.calendar, []byte(u), 0)
		}
	}
	s := h.statement(f, "")
	r := h.readText(strings.Join(kept, "\n"))
	r.plain = true
	h.strict(&r)
	s.statuses = append(s.statuses, r.statuses()...)
	s.readings = append([]reading{r}, s.readings...)
	s.line = excerpt([]byte(r.src))
	s.retry = lastRetry >= 0
	if len(s.spoken) > 0 || s.retry || len(r.hits) > 0 || len(s.statuses) > 0 {
		h.said = append(h.said, spoken{statement: s, final: true})
	}
}

// strict drops the hits that plain text does not make as the provider.
func (h *hearing) strict(r *reading) {
	kept := r.hits[:0]
	for _, hit := range r.hits {
		if r.doubted(hit) {
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
		case hit.sense == quotaWord && r.inPath(hit):
			continue
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

// inPath tells whether a hit is part of a file name or an address.
func (r *reading) inPath(h hit) bool {
	next, prev := r.tok(h.to), r.tok(h.from-1)
	return next.is(".") && !next.space && !r.tok(h.to+1).space && r.tok(h.to+1).kind == word ||
		(next.is("/") || next.is("\\")) && !next.space || (prev.is("/") || prev.is("\\")) && !r.tok(h.from).space
}

// failure tells whether the sentence of a hit says that something failed.
func (r *reading) failure(h hit) bool {
	from, to := r.period(h)
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

var errorWords = set("error", "apierror", "failed", "erro", "fehler", "exception", "failure")
