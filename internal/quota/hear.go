package quota

import (
	"bytes"
	"slices"
	"strings"
)

// listen splits a stream or terminal text into JSON objects and plain lines.
func (h *hearing) listen(b []byte) {
	failedTo := 0 // objects over several lines were already tried up to here
	for pos := 0; pos < len(b); {
		eol := len(b)
		if nl := bytes.IndexByte(b[pos:], '\n'); nl >= 0 {
			eol = pos + nl
		}
		line := b[pos:eol]
		start := jsonStart(line)
		if start < 0 {
			h.plain.add(line)
			pos = eol + 1
			continue
		}
		src := b[pos+start:]
		if pos < failedTo {
			src = b[pos+start : eol]
		}
		v, n, whole := parseJSON(src, true)
		switch end := pos + start + n; {
		case whole:
			h.object(v, b[pos+start:end])
			if rest := bytes.TrimSpace(b[end:max(end, min(len(b), lineEnd(b, end)))]); len(rest) > 0 && rest[0] == '{' {
				pos = end
				continue
			}
			pos = lineEnd(b, end) + 1
		case end >= len(b) && v.get("type", "error", "event").kind != absent:
			h.object(v, b[pos+start:]) // cut off
			pos = len(b)
		default:
			failedTo = max(failedTo, end)
			if v.get("type", "event").kind == text {
				h.object(v, line) // damaged, but its kind is known
			} else {
				h.plain.add(line)
			}
			pos = eol + 1
		}
	}
}

func lineEnd(b []byte, from int) int {
	if nl := bytes.IndexByte(b[min(from, len(b)):], '\n'); nl >= 0 {
		return from + nl
	}
	return len(b)
}

// maxPrefix bounds what a logger may put before an object.
const maxPrefix = 80

// jsonStart finds an object at the start of a line, or behind a prefix that
// holds no words of its own ("data: ", a timestamp); -1 if there is none.
func jsonStart(line []byte) int {
	i := bytes.IndexByte(line, '{')
	if i < 0 || i > maxPrefix {
		return -1
	}
	prefix := strings.TrimSpace(string(line[:i]))
	if prefix == "" || prefix == "data:" || logPrefix(prefix+" ") == len(prefix)+1 {
		return i
	}
	return -1
}

// object takes up a JSON object that stands on its own.
func (h *hearing) object(v value, raw []byte) {
	h.event(v)
	if n := len(h.said); n > 0 && h.said[n-1].line == "" {
		h.said[n-1].line = excerpt(raw)
	}
	h.plain.mark()
}

// body reads the body of an HTTP response.
func (h *hearing) body(b []byte, status *int, headers map[string][]string) {
	var f facts
	trimmed := bytes.TrimSpace(b)
	failed := status == nil || *status >= 400
	switch {
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '['):
		v, _, _ := parseJSON(trimmed, false)
		if !failed && !errorShape(v, strings.ToLower(v.get("type").str())) && !numericCode(v) {
			return
		}
		f.gather(h.calendar, v, 0)
	case bytes.HasPrefix(trimmed, []byte("data:")) || bytes.HasPrefix(trimmed, []byte("event:")):
		h.listen(b)
	case failed:
		f.say(h.calendar, string(ends(b)), 0)
	default:
		return
	}
	if status != nil && failed {
		f.statuses = append(f.statuses, *status)
	}
	for name, vals := range headers {
		if strings.HasSuffix(strings.ToLower(name), "-limit-reached-type") {
			f.codes = append(f.codes, vals...)
		}
	}
	slices.Sort(f.codes)
	waits, windows := headerFacts(h.calendar, headers)
	s := h.statement(f, excerpt(trimmed))
	s.headers = headerSet{waits, windows}
	h.said = append(h.said, spoken{statement: s, final: true})
}

// numericCode tells whether a body without an HTTP error carries one of its
// own: {"code": 429, "msg": …}.
func numericCode(v value) bool {
	s := v.get("code", "status").str()
	return len(s) >= 3 && s[0] != '2' && s[0] >= '1' && s[0] <= '9' && v.get("msg", "message").kind == text
}

// ends gives a text whole, or its two ends when it is very long.
func ends(b []byte) []byte {
	if len(b) <= maxMessage {
		return b
	}
	out := make([]byte, 0, maxMessage+2)
	out = append(out, b[:maxMessage/2]...)
	out = append(out, "\n\n"...)
	return append(out, b[len(b)-maxMessage/2:]...)
}
