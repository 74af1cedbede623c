package quota

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	word tokenKind = iota
	num
	punct
)

// token is a word, a run of digits or one other character. Words are lower
// case, without possessive 's, and split where case or digits change, so that
// "usageLimitReached", "usage_limit_reached" and "usage limit reached" are the
// same words.
type token struct {
	kind  tokenKind
	text  string
	from  int32 // byte offsets in the cleaned text
	to    int32 //
	space bool  // a blank or a line break stands before it
	line  bool  // a line break stands before it
	stop  bool  // the sentence ends after it
}

// is tells whether the token is the given punctuation or word.
func (t token) is(s string) bool { return t.text == s && t.kind != num }

// tokenize cuts cleaned text into tokens.
func tokenize(s string) []token {
	toks := make([]token, 0, len(s)/4+8)
	space, lines := true, 1
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			space = true
			if r == '\n' {
				lines++
			}
			i += size
			continue
		}
		kind, n := scan(s[i:], r, size)
		t := token{kind: kind, text: s[i : i+n], from: int32(i), to: int32(i + n), space: space, line: lines > 0}
		if kind == word {
			t.text = strings.TrimSuffix(fold(t.text), "'s")
		}
		if len(toks) > 0 {
			endSentence(&toks[len(toks)-1], t, lines)
		}
		toks = appendWord(toks, t)
		i += n
		space, lines = false, 0
	}
	return toks
}

// appendWord appends a token, cut up when it is several words without blanks.
func appendWord(toks []token, t token) []token {
	if t.kind != word || len(t.text) != int(t.to-t.from) {
		return append(toks, t)
	}
	whole, at := t.text, 0
	for _, n := range unglue(whole) {
		part := t
		part.text, part.from, part.to = whole[at:at+n], t.from+int32(at), t.from+int32(at+n)
		if at > 0 {
			part.space, part.line = false, false
		}
		toks = append(toks, part)
		at += n
	}
	if at == 0 {
		toks = append(toks, t)
	}
	return toks
}

// endSentence marks the end of a sentence: a full stop and its kin before a
// blank, or an empty line.
func endSentence(last *token, next token, lines int) {
	switch {
	case lines >= 2:
		last.stop = true
	case last.kind == punct:
		switch last.text {
		case ".", "!", "?", ";":
			last.stop = next.space
		case "。", "！", "？":
			last.stop = true
		}
	}
}

// scan gives the kind and the length of the token at the start of s, whose
// first rune is r.
func scan(s string, r rune, size int) (tokenKind, int) {
	switch {
	case r >= '0' && r <= '9':
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return num, n
	case ideograph(r):
		return word, size
	case unicode.IsLetter(r):
		return word, letters(s)
	}
	return punct, size
}

// letters gives the length of the word at the start of s.
func letters(s string) int {
	lower := false
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z':
			lower = true
		case r >= 'A' && r <= 'Z':
			if lower {
				return i
			}
		case r == '\'' && i > 0 && i+1 < len(s) && asciiLetter(s[i+1]):
		case r < utf8.RuneSelf:
			return i
		case unicode.Is(unicode.Mn, r):
		case !unicode.IsLetter(r) || ideograph(r), unicode.IsUpper(r) && lower:
			return i
		default:
			lower = unicode.IsLower(r)
		}
	}
	return len(s)
}

func asciiLetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

// ideograph tells whether a rune is a word of its own: scripts without blanks.
func ideograph(r rune) bool {
	return r >= 0x3040 && r <= 0x30ff || r >= 0x3400 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3
}

// fold gives lower case without the accents of western European letters.
func fold(s string) string {
	s = strings.ToLower(s)
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return unaccent.Replace(s)
		}
	}
	return s
}

var unaccent = strings.NewReplacer(
	"á", "a", "à", "a", "â", "a", "ã", "a", "ä", "a", "å", "a",
	"é", "e", "è", "e", "ê", "e", "ë", "e",
	"í", "i", "ì", "i", "î", "i", "ï", "i",
	"ó", "o", "ò", "o", "ô", "o", "õ", "o", "ö", "o", "ø", "o",
	"ú", "u", "ù", "u", "û", "u", "ü", "u",
	"ç", "c", "ñ", "n", "ß", "ss")
