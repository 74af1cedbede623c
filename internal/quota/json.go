package quota

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is a JSON reader for damaged input: it keeps what it has read when
// the text ends or breaks off, decodes strings only on demand, and spends a
// bounded number of nodes on one value. encoding/json can do neither.

type kind uint8

const (
	absent kind = iota
	object
	array
	text
	number
	other // true, false, null
)

// value is one JSON value. Its zero value is "absent".
type value struct {
	kind    kind
	raw     []byte // content of a string without its quotes, else the literal
	members []member
}

// member is a member of an object, or an element of an array (key empty).
type member struct {
	key string
	val value
}

const (
	maxDepth = 48   // deeper values are skipped
	maxNodes = 4096 // further values of one text are skipped
	maxKey   = 256
)

// reader reads one value. lines ends it at a raw line break inside a string,
// as JSON Lines demand; without it a break counts as a blank (wrapped text).
type reader struct {
	b      []byte
	pos    int
	nodes  int
	strict bool
	broken bool // syntax error, as opposed to the end of the input
}

// parseJSON reads the value that starts at b[0]. It gives what was read, the
// number of bytes used, and whether the value was whole.
func parseJSON(b []byte, strict bool) (v value, n int, whole bool) {
	r := &reader{b: b, strict: strict}
	v, whole = r.value(0)
	return v, r.pos, whole && !r.broken
}

func (r *reader) blanks() {
	for r.pos < len(r.b) {
		switch r.b[r.pos] {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return
		}
	}
}

func (r *reader) peek() byte {
	if r.pos < len(r.b) {
		return r.b[r.pos]
	}
	return 0
}

func (r *reader) value(depth int) (value, bool) {
	r.blanks()
	r.nodes++
	switch c := r.peek(); {
	case c == '{' || c == '[':
		if depth >= maxDepth || r.nodes > maxNodes {
			return value{}, r.skip()
		}
		return r.container(depth, c == '{')
	case c == '"':
		s, ok := r.str()
		return value{kind: text, raw: s}, ok
	case c == '-' || c >= '0' && c <= '9':
		return value{kind: number, raw: r.literal("+-.eE0123456789")}, true
	case c >= 'a' && c <= 'z':
		return value{kind: other, raw: r.literal("abcdefghijklmnopqrstuvwxyz")}, true
	}
	r.broken = r.pos < len(r.b)
	return value{}, false
}

func (r *reader) literal(set string) []byte {
	from := r.pos
	for r.pos < len(r.b) && strings.IndexByte(set, r.b[r.pos]) >= 0 {
		r.pos++
	}
	return r.b[from:r.pos]
}

func (r *reader) container(depth int, isObject bool) (value, bool) {
	v := value{kind: array}
	closing := byte(']')
	if isObject {
		v.kind, closing = object, '}'
	}
	r.pos++
	for {
		r.blanks()
		switch r.peek() {
		case closing:
			r.pos++
			return v, true
		case ',':
			r.pos++
			continue
		case 0:
			if r.pos >= len(r.b) {
				return v, false
			}
		}
		m, ok := r.member(depth, isObject)
		if m.val.kind != absent && r.nodes <= maxNodes {
			v.members = append(v.members, m)
		}
		if !ok {
			return v, false
		}
	}
}

func (r *reader) member(depth int, isObject bool) (member, bool) {
	var m member
	if isObject {
		if r.peek() != '"' {
			r.broken = true
			return m, false
		}
		key, ok := r.str()
		if !ok {
			return m, false
		}
		m.key = decode(key[:min(len(key), maxKey)])
		r.blanks()
		if r.peek() != ':' {
			r.broken = r.pos < len(r.b)
			return m, false
		}
		r.pos++
	}
	var ok bool
	m.val, ok = r.value(depth + 1)
	return m, ok
}

// str reads a string, the position being at its opening quote.
func (r *reader) str() ([]byte, bool) {
	r.pos++
	from := r.pos
	for {
		rest := r.b[r.pos:]
		end := bytes.IndexByte(rest, '"')
		if end < 0 {
			end = len(rest)
		}
		chunk := rest[:end]
		if r.strict {
			if nl := bytes.IndexByte(chunk, '\n'); nl >= 0 {
				r.pos += nl
				r.broken = true
				return r.b[from:r.pos], false
			}
		}
		r.pos += end
		if r.pos >= len(r.b) {
			return r.b[from:], false
		}
		slashes := 0
		for i := r.pos - 1; i >= from && r.b[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			s := r.b[from:r.pos]
			r.pos++
			return s, true
		}
		r.pos++
	}
}

// skip passes over a container without building it.
func (r *reader) skip() bool {
	for depth := 0; r.pos < len(r.b); {
		switch r.b[r.pos] {
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			depth--
			r.pos++
			if depth <= 0 {
				return true
			}
		case '"':
			if _, ok := r.str(); !ok {
				return false
			}
		default:
			r.pos++
		}
	}
	return false
}

// get gives the member of an object with the first of the given keys.
func (v value) get(keys ...string) value {
	for _, k := range keys {
		for i := range v.members {
			if v.kind == object && v.members[i].key == k {
				return v.members[i].val
			}
		}
	}
	return value{}
}

// str is the decoded string, or the literal of a number; else "".
func (v value) str() string {
	switch v.kind {
	case text:
		return decode(v.raw)
	case number:
		return string(v.raw)
	default:
		return ""
	}
}

// yes is true for the literal true.
func (v value) yes() bool { return v.kind == other && string(v.raw) == "true" }

// decode resolves the escapes of a JSON string; a bad escape stays as it is.
func decode(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var sb strings.Builder
	sb.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			sb.WriteByte(c)
			continue
		}
		i++
		switch raw[i] {
		case 'n':
			sb.WriteByte('\n')
		case 't':
			sb.WriteByte('\t')
		case 'r':
			sb.WriteByte('\r')
		case 'b', 'f':
			sb.WriteByte(' ')
		case 'u':
			r, n := decodeRune(raw[i+1:])
			sb.WriteRune(r)
			i += n
		default:
			sb.WriteByte(raw[i])
		}
	}
	return sb.String()
}

// decodeRune reads the hexadecimal digits after \u, and a second half of a
// surrogate pair; n is the number of bytes used.
func decodeRune(b []byte) (r rune, n int) {
	hex := func(b []byte) (rune, bool) {
		if len(b) < 4 {
			return 0, false
		}
		u, err := strconv.ParseUint(string(b[:4]), 16, 16)
		return rune(u), err == nil
	}
	r, ok := hex(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex(b[6:]); ok {
			return utf16.DecodeRune(r, low), 10
		}
	}
	return utf8.RuneError, 4
}
