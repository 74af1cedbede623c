package startercmd

import (
	"io"
	"strings"
	"unicode"
)

// printable makes a text harmless for a terminal: what runs, workers and plans
// wrote may hold control codes.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control) {
			return '�'
		}
		return r
	}, text)
}

// plain writes text for people to w, made printable.
type plain struct{ w io.Writer }

func (p plain) Write(data []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}
