package quota

import (
	"strings"
	"unicode/utf8"
)

// maxEvidence bounds Verdict.Evidence, in characters.
const maxEvidence = 2000

// excerpt gives the end of a text, cleaned, scrubbed and cut to the size of an
// evidence.
func excerpt(b []byte) string {
	const bytesKept = 4 * maxEvidence
	if len(b) > bytesKept {
		b = b[len(b)-bytesKept:]
	}
	s := scrub(clean(string(b)))
	if n := utf8.RuneCountInString(s); n > maxEvidence {
		s = string([]rune(s)[n-maxEvidence:])
	}
	return s
}

// scrub masks what looks like a secret: keys with a known prefix, values of
// fields called key, token or secret, and long runs of letters and digits.
func scrub(s string) string {
	var sb strings.Builder
	sb.Grow(len(s))
	secretNext := false
	for len(s) > 0 {
		n := 0
		for n < len(s) && secretChar(s[n]) {
			n++
		}
		if n == 0 {
			_, size := utf8.DecodeRuneInString(s)
			sb.WriteString(s[:size])
			s = s[size:]
			continue
		}
		run := s[:n]
		s = s[n:]
		if secretNext && len(run) >= 6 || looksSecret(run) {
			sb.WriteString("***")
		} else {
			sb.WriteString(run)
		}
		lower := strings.ToLower(run)
		secretNext = lower == "bearer" || strings.HasSuffix(lower, "api_key") || strings.HasSuffix(lower, "apikey") ||
			strings.HasSuffix(lower, "secret") || strings.HasSuffix(lower, "password") || lower == "authorization" ||
			strings.HasSuffix(lower, "access_token") || secretNext && len(run) < 6
	}
	return sb.String()
}

func secretChar(c byte) bool {
	return asciiLetter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '+'
}

func looksSecret(run string) bool {
	for _, prefix := range []string{"sk-", "sk_", "pk_", "ghp_", "gho_", "ghs_", "github_pat_", "xoxb-", "xoxp-", "AKIA", "AIza", "eyJ", "glpat-", "hf_", "gsk_", "xai-"} {
		if strings.HasPrefix(run, prefix) && len(run) >= len(prefix)+4 {
			return true
		}
	}
	if len(run) < 32 || strings.Count(run, "-") == 4 && len(run) == 36 { // a UUID
		return false
	}
	letters, digits := 0, 0
	for i := range len(run) {
		if asciiLetter(run[i]) {
			letters++
		} else if run[i] >= '0' && run[i] <= '9' {
			digits++
		}
	}
	return letters >= 6 && digits >= 6
}
