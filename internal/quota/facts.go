package quota

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// facts are what one statement of a provider says.
type facts struct {
	statuses []int    // HTTP statuses
	codes    []string // machine-readable words: types, reasons, codes
	texts    []string // messages, not yet cleaned
	spare    []string // sentences under names that are not known; they count where there is no message
	waits    []wait
	windows  []window
	model    bool // a field names a model
}

// wait is a reset that a field states outside of any window.
type wait struct {
	stamp
	relative bool
	fine     bool // names its unit: retry-after-ms beats retry-after
	header   bool // stated in a header
	own      bool // the program's own back-off, not the provider's word
}

const (
	maxWalk    = 12        // nesting of errors in errors
	maxMessage = 256 << 10 // longer messages are read at their ends
	maxTexts   = 64
	maxCodes   = 256
)

// gather takes up all fields of an error object, and of JSON inside its
// strings. It passes over members that repeat what a model or a user said.
func (f *facts) gather(c calendar, v value, depth int) { f.named(c, "", v, depth) }

// named gathers from a value that stands under the given name.
func (f *facts) named(c calendar, name string, v value, depth int) {
	if depth > maxWalk {
		return
	}
	switch v.kind {
	case array:
		for _, m := range v.members {
			if m.val.kind == text {
				f.say(c, m.val.str(), depth)
			} else {
				f.named(c, name, m.val, depth+1)
			}
		}
	case object:
		w, isWindow := windowOf(c, v)
		if isWindow {
			if w.name == "" {
				w.name = name
			}
			f.windows = append(f.windows, w)
			if w.state() == open {
				return // what it contains is as open
			}
		}
		for _, m := range v.members {
			f.member(c, m, depth, isWindow)
		}
	default:
	}
}

func (f *facts) member(c calendar, m member, depth int, inWindow bool) {
	fl := fieldOf(m.key)
	name := strings.Join(fl.words, " ")
	if notProvider[name] {
		return
	}
	switch m.val.kind {
	case object, array:
		if name == "headers" || name == "response headers" {
			waits, windows := headerFacts(c, headerMap(m.val))
			f.waits = append(f.waits, waits...)
			f.windows = append(f.windows, windows...)
			return
		}
		if m.val.kind == object && name == "error" || name == "codex error info" {
			for _, k := range m.val.members { // {"usage_limit_exceeded": {…}}
				if m.val.kind == object && k.val.kind == object {
					f.codes = append(f.codes, k.key)
				}
			}
		}
		f.named(c, "/"+m.key, m.val, depth+1)
	case text, number:
		f.scalar(c, name, fl, m.val, depth, inWindow)
	default:
	}
}

func (f *facts) scalar(c calendar, name string, fl field, v value, depth int, inWindow bool) {
	s := v.str()
	switch {
	case fl.role == resetAny || fl.role == resetAt || fl.role == resetIn:
		if inWindow {
			return
		}
		if st, rel, ok := fl.stamp(c, s); ok {
			f.waits = append(f.waits, wait{stamp: st, relative: rel, fine: fl.unit != 0})
		}
	case statusKeys[name]:
		if n, err := strconv.Atoi(s); err == nil {
			if n >= 100 && n <= 599 {
				f.statuses = append(f.statuses, n)
			} else {
				f.codes = append(f.codes, s)
			}
			return
		}
		f.codes = append(f.codes, s)
	case codeKeys[name]:
		if len(f.codes) < maxCodes {
			f.codes = append(f.codes, s)
		}
		if strings.ContainsRune(s, ' ') {
			f.say(c, s, depth)
		}
	case modelKeys[name]:
		f.model = f.model || depth > 0 && s != "" && s != "<synthetic>"
	case v.kind != text:
	case textKeys[name]:
		f.say(c, s, depth)
	case strings.Count(s, " ") >= 2 && len(f.spare) < maxTexts:
		f.spare = append(f.spare, s)
	}
}

// say takes up a message, and the JSON that it may carry.
func (f *facts) say(c calendar, s string, depth int) {
	if s == "" || len(f.texts) >= maxTexts {
		return
	}
	if len(s) > maxMessage {
		s = s[:maxMessage/2] + "\n\n" + s[len(s)-maxMessage/2:]
	}
	f.texts = append(f.texts, s)
	f.embedded(c, []byte(s), depth)
}

// embedded reads the first JSON object inside of a message.
func (f *facts) embedded(c calendar, s []byte, depth int) {
	if i := bytes.IndexByte(s, '{'); i >= 0 {
		if v, _, _ := parseJSON(s[i:], false); v.kind == object {
			f.gather(c, v, depth+1)
		}
	}
}

// windowOf reads an object that describes a quota window: it has counters, or
// a verdict beside a reset.
func windowOf(c calendar, v value) (window, bool) {
	var w window
	reset := false
	for _, m := range v.members {
		if m.val.kind == object || m.val.kind == array {
			continue
		}
		f := fieldOf(m.key)
		switch f.role {
		case resetAny, resetAt, resetIn:
			reset = true
		case noRole:
			if slices.Contains(f.words, "type") && slices.Contains(f.words, "limit") {
				w.name = m.val.str()
				w.model = familyIn(keyWords(w.name))
			}
			continue
		default:
		}
		if f.role == windowVerdict && len(f.words) > 1 {
			continue // overageStatus speaks of another thing
		}
		w.note(c, f, m.val.str())
	}
	return w, w.measured != unknownState || w.verdict != unknownState && (reset || w.name != "")
}

func headerMap(v value) map[string][]string {
	out := make(map[string][]string, len(v.members))
	for _, m := range v.members {
		if s := m.val.str(); s != "" {
			out[m.key] = append(out[m.key], s)
		}
		for _, e := range m.val.members {
			if m.val.kind == array {
				out[m.key] = append(out[m.key], e.val.str())
			}
		}
	}
	return out
}

func set(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// Names of members, by their words.
var (
	statusKeys = set("status", "status code", "http status", "http status code", "http code",
		"code", "error code", "err code", "api error status", "error status", "errno", "last status")
	codeKeys = set("type", "reason", "kind", "name", "error", "error type", "error name", "error kind",
		"api error", "api error type", "rate limit reached type", "limit reached type", "codex error info", "limit source", "limit type", "rate limit type",
		"terminal reason", "quota id", "quota metric", "subtype", "violation", "category", "title")
	textKeys = set("message", "msg", "detail", "details", "description", "error description",
		"error message", "err msg", "status msg", "status message", "result", "text", "raw", "body",
		"response body", "localized message", "cause", "summary", "metadata raw")
	modelKeys = set("model", "model id", "model name", "model slug")
	// notProvider holds what a model, a user or the program's bookkeeping said.
	notProvider = set("choices", "content", "output", "candidates", "messages", "prompt", "input",
		"tools", "findings", "usage", "model usage", "permission denials", "arguments", "args",
		"command", "aggregated output", "stdout", "stderr", "diff", "patch", "request", "request body",
		"tool input", "tool output", "stack", "failed generation", "param", "documentation url", "url", "links", "last agent message")
)
