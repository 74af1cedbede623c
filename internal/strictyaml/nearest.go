package strictyaml

import (
	"fmt"
	"strings"
)

// Nearest returns the known word that a misspelt one was probably meant to be: the
// first of the least edit distance, ignoring case, when that is at most a third
// of its length; shorter words than three letters must be the same but for case.
func Nearest(word string, known []string) (string, bool) {
	const longest = 64 // ids and keys are shorter
	if len(word) == 0 || len(word) > longest {
		return "", false
	}
	folded := strings.ToLower(word)
	best, least := "", len(word)/3+1
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		if d := distance(folded, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best, best != ""
}

// DidYouMean is the remedy that proposes a word.
func DidYouMean(word string) string { return fmt.Sprintf("did you mean %q?", word) }

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
