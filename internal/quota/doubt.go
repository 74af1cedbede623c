package quota

// prose holds words that speak about a message instead of being one. They
// count only before the phrase, in its sentence.
var prose = set("when", "if", "once", "whenever", "unless", "whether", "i", "i'll", "i've", "i'm", "we", "we've",
	"we'll", "let", "let's", "tests", "testing", "expected", "expects", "expect", "want", "got", "assert", "asserts",
	"parser", "regex", "string", "should", "must", "function", "returns", "handle", "handles", "handling", "simulate",
	"simulates", "mock", "docs", "documentation", "readme", "todo", "fix", "fixes", "fixed", "bug", "example",
	"comment", "implement", "implemented", "implements", "added", "banner", "case", "cases", "quote", "quotes",
	"says", "said", "that", "which", "retries", "where", "how", "why", "so", "because", "fixture", "grep", "match", "matches")

// doubted tells whether plain text only speaks about the phrase: it stands in
// quotes or behind words of prose.
func (r *reading) doubted(h hit) bool {
	if !r.plain {
		return false
	}
	from, _ := r.sentence(h)
	from = r.report(from, h.from)
	for i := from; i < h.from; i++ {
		if t := r.toks[i]; t.is("we") && r.tok(i+1).is("are") {
			continue // "We are experiencing high demand"
		} else if t.kind == word && prose[t.text] {
			return true
		}
	}
	return r.quoted(from, h.from) || r.survived(h)
}

// survived tells whether the sentence goes on with what is done instead:
// "Opus limit reached, now using Sonnet".
func (r *reading) survived(h hit) bool {
	_, to := r.sentence(h)
	for i := h.to; i < to; i++ {
		if r.toks[i].is("now") && r.tok(i+1).is("using") || r.toks[i].is("continuing") && r.tok(i+1).is("with") {
			return true
		}
	}
	return false
}

// subject tells whether the phrase only names a thing that the sentence is
// about: "rate limit exceeded errors are retried".
func (r *reading) subject(h hit) bool { return things[r.tok(h.to).text] }

var things = set("errors", "handling", "handler", "responses", "response", "tests", "test", "banner", "banners", "message", "messages",
	"text", "texts", "string", "strings", "case", "cases", "exception", "exceptions", "logic", "detection", "check", "checks", "parser")

// report passes over the head of a sentence that reports an error: "Error when
// talking to the API: " is not prose about the message behind it.
func (r *reading) report(from, to int) int {
	head := from
	for head < to && r.toks[head].kind == punct {
		head++
	}
	for head < to && (r.tok(head).is("api") || r.tok(head).is("an") || r.tok(head).is("the")) {
		head++
	}
	if head >= to || !errorWords[r.toks[head].text] {
		return from
	}
	for i := to - 1; i > head; i-- {
		if r.toks[i].is(":") && r.tok(i+1).space {
			return i + 1
		}
	}
	return from
}

// quoted tells whether a quote opens between the start of the sentence and the
// phrase. The value of a field (message="…", "error": "…") is no quotation.
func (r *reading) quoted(from, to int) bool {
	open, field := "", false
	for i := from; i < to; i++ {
		t := r.toks[i]
		switch {
		case !t.is(`"`) && !t.is("`"):
		case open == t.text:
			open = ""
		case open == "":
			open = t.text
			prev := r.tok(i - 1)
			field = i == from || prev.is("=") || prev.is(":") || prev.is("{") || prev.is(",") || prev.is("(")
		}
	}
	return open != "" && !field
}
