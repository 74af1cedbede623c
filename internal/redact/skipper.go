package redact

// skipper recognises what can stand between the bytes of a printed secret
// without being part of it: terminal codes (ECMA-48, section 5), raw or escaped
// the way that JSON and shells write them, and the line ends of wrapped text.
type skipper struct {
	state skipState
	text  []byte // bytes read of an escaped form, given back when it is none
	from  int64  // position of the first skipped byte
	// lineEnd: what is skipped is a line end and not a terminal code.
	lineEnd bool
}

type skipState uint8

const (
	skipNone      skipState = iota
	skipEscaped             // after a backslash: perhaps \u001b[
	skipEscape              // after ESC
	skipNF                  // ESC with intermediate bytes
	skipCSI                 // ESC [ up to its final byte
	skipString              // ESC ] and the like, up to BEL or ESC \
	skipStringEnd           // ESC inside a string
	skipLineEnd             // line ends, and the blanks that continue a wrapped line
)

// maxSkip bounds a terminal code; what is longer is text.
const maxSkip = 4 << 10

const escByte, belByte = 0x1b, 0x07

// verdict says what a byte is to the view without terminal codes.
type verdict uint8

const (
	verdictText     verdict = iota // part of the text
	verdictSkipped                 // swallowed, more may follow
	verdictLast                    // swallowed, and the code ends here
	verdictBefore                  // the code ended before this byte, which is text again
	verdictGiveBack                // what was swallowed since from is text, and so is this byte
)

// escapes are the ways to write ESC [ in escaped text.
var escapes = []string{`\u001b[`, `\u001B[`, `\x1b[`, `\x1B[`, `\033[`, `\e[`}

func (s *skipper) active() bool { return s.state != skipNone }

// enter starts at byte b, which stands at pos, if it can begin a code.
func (s *skipper) enter(b byte, pos int64, wrapped bool) bool {
	switch {
	case b == escByte:
		s.state = skipEscape
	case b == '\\':
		s.state = skipEscaped
		s.text = append(s.text[:0], b)
	case wrapped && (b == '\n' || b == '\r'):
		s.state = skipLineEnd
	default:
		return false
	}
	s.from, s.lineEnd = pos, s.state == skipLineEnd
	return true
}

func (s *skipper) next(b byte, pos int64, wrapped bool) verdict {
	if pos-s.from > maxSkip {
		s.state = skipNone
		return verdictBefore
	}
	switch s.state {
	case skipEscaped:
		return s.escaped(b, wrapped)
	case skipEscape:
		return s.escape(b)
	case skipNF:
		return s.until(b, 0x20, 0x2f, 0x30, 0x7e)
	case skipCSI:
		return s.until(b, 0x20, 0x3f, 0x40, 0x7e)
	case skipString:
		switch b {
		case belByte:
			return s.end(verdictLast)
		case escByte:
			s.state = skipStringEnd
		}
		return verdictSkipped
	case skipStringEnd:
		if b == '\\' {
			return s.end(verdictLast)
		}
		s.state = skipString
		return verdictSkipped
	case skipLineEnd:
		if b == '\n' || b == '\r' || b == ' ' || b == '\t' {
			return verdictSkipped
		}
		return s.end(verdictBefore)
	default:
		return verdictText
	}
}

func (s *skipper) end(v verdict) verdict {
	s.state = skipNone
	return v
}

func (s *skipper) escape(b byte) verdict {
	switch {
	case b == '[':
		s.state = skipCSI
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		s.state = skipString
	case b >= 0x20 && b <= 0x2f:
		s.state = skipNF
	case b >= 0x30 && b <= 0x7e:
		return s.end(verdictLast)
	default:
		return s.end(verdictBefore)
	}
	return verdictSkipped
}

// until goes on over bytes of the first range and ends with one of the second.
func (s *skipper) until(b, goFrom, goTo, endFrom, endTo byte) verdict {
	switch {
	case b >= goFrom && b <= goTo:
		return verdictSkipped
	case b >= endFrom && b <= endTo:
		return s.end(verdictLast)
	default:
		return s.end(verdictBefore)
	}
}

// escaped compares what follows a backslash with the forms in escapes, and with
// an escaped line end where a wrapped value is under way.
func (s *skipper) escaped(b byte, wrapped bool) verdict {
	s.text = append(s.text, b)
	if wrapped && len(s.text) == 2 && (b == 'n' || b == 'r') {
		s.lineEnd = true
		return s.end(verdictLast)
	}
	for _, e := range escapes {
		if len(s.text) <= len(e) && string(s.text) == e[:len(s.text)] {
			if len(s.text) == len(e) {
				s.state = skipCSI
			}
			return verdictSkipped
		}
	}
	return s.end(verdictGiveBack)
}
