package quota

import (
	"strings"
	"unicode/utf8"
)

// clean makes terminal output plain: no escape sequences, no box drawing, no
// invalid bytes, and one form for quotes, dashes, dots and blanks. Line breaks
// stay (CRLF and a lone CR become LF).
func clean(s string) string {
	if plain(s) {
		return s
	}
	var sb strings.Builder
	sb.Grow(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if c == 0x1b {
			n, blank := escape(s[i:])
			if blank {
				sb.WriteByte(' ')
			}
			i += n
			continue
		}
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '\r':
				if i >= len(s) || s[i] != '\n' {
					sb.WriteByte('\n')
				}
			case c < 0x20 && c != '\n' && c != '\t', c == 0x7f:
				sb.WriteByte(' ')
			default:
				sb.WriteByte(c)
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		sb.WriteString(simple(r, s[i:i+size]))
		i += size
	}
	return sb.String()
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < 0x20 && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// simple gives the plain form of a rune that stands in the text as s.
func simple(r rune, s string) string {
	switch {
	case r == utf8.RuneError:
		return " "
	case r >= 0x2500 && r <= 0x259f: // box drawing and block elements
		return " "
	case r >= 0xff10 && r <= 0xff19: // full-width digits
		return string(r - 0xff10 + '0')
	}
	switch r {
	case '‘', '’', 'ʼ', '´', '＇':
		return "'"
	case '“', '”', '„', '«', '»', '＂':
		return `"`
	case '–', '—', '‐', '‑', '‒', '−', '－':
		return "-"
	case '∙', '•', '‧', '⋅', '・', '●':
		return "·"
	case '…':
		return "..."
	case '（':
		return "("
	case '）':
		return ")"
	case '：':
		return ":"
	case '，', '、':
		return ", "
	case '／':
		return "/"
	case '｜':
		return "|"
	case '\u200b', '\u200c', '\u200d', '\ufeff', '\u2060', '\u00ad':
		return ""
	case '\u2028', '\u2029', '\u0085':
		return "\n"
	}
	if r == '\u00a0' || r >= '\u2000' && r <= '\u200a' || r == '\u202f' || r == '\u3000' {
		return " "
	}
	return s
}

// escape gives the length of the escape sequence at the start of s, and
// whether it moves the cursor forward (programs draw blanks that way).
func escape(s string) (n int, blank bool) {
	if len(s) < 2 {
		return len(s), false
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if c := s[i]; c >= 0x40 && c <= 0x7e {
				return i + 1, c == 'C' || c == 'G' && s[2:i] != "1" && s[2:i] != ""
			} else if c < 0x20 || c >= 0x80 {
				return i, false
			}
		}
		return len(s), false
	case ']', 'P', '_', '^':
		// An unterminated sequence ends with its line.
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1, false
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2, false
			case s[i] == '\n':
				return i, false
			}
		}
		return len(s), false
	case '(', ')', '*', '+', '#':
		return min(3, len(s)), false
	}
	return 2, false
}
