package quota

import (
	"strings"
	"sync"
)

// Terminal scrapers lose blanks: "Weeklylimitreached·Resetsat3pm". A long word
// about limits that is a row of words of the vocabulary is cut into them.

const (
	gluedMin = 8   // shorter words are left alone
	gluedMax = 120 // and so are longer runs of letters
	partMax  = 14
)

var dictionary = sync.OnceValue(func() map[string]bool {
	dict := set("your", "you've", "youve", "you", "the", "claude", "code", "ai", "for", "will", "with", "has", "have", "been",
		"session", "weekly", "daily", "hourly", "monthly", "current", "upgrade", "please", "hour", "minute", "model", "opus", "sonnet")
	for _, l := range []*lexicon{refusals, anchors} {
		for w := range l.index().words {
			if len(w) > 1 && w[0] < 0x80 {
				dict[w] = true
			}
		}
	}
	for w := range months {
		dict[w] = true
	}
	for w := range weekdays {
		dict[w] = true
	}
	return dict
})

// unglue gives the lengths of the words that s consists of, or nil. It prefers
// long words.
func unglue(s string) []int {
	if len(s) < gluedMin || len(s) > gluedMax {
		return nil
	}
	if !strings.Contains(s, "limit") && !strings.Contains(s, "reset") && !strings.Contains(s, "quota") && !strings.Contains(s, "usage") {
		return nil
	}
	dict := dictionary()
	if dict[s] {
		return nil
	}
	next := make([]int, len(s)+1) // length of the word at i, 0 if none fits
	for i := len(s) - 1; i >= 0; i-- {
		for n := min(partMax, len(s)-i); n >= 2; n-- {
			if (i+n == len(s) || next[i+n] > 0) && dict[s[i:i+n]] {
				next[i] = n
				break
			}
		}
	}
	if next[0] == 0 || next[0] == len(s) {
		return nil
	}
	var parts []int
	for i := 0; i < len(s); i += next[i] {
		parts = append(parts, next[i])
	}
	return parts
}
