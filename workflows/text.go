package workflows

import (
	"strings"
	"unicode/utf8"
)

// oneLine folds an error's text to one bounded line, fit for a reason.
func oneLine(text string) string {
	return clip(strings.Join(strings.Fields(text), " "), 500)
}

// clip cuts text at a rune boundary to at most limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
