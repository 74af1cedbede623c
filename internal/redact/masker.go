package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Bounds on what is taken as a secret value. Shorter or simpler values occur in
// ordinary text, and masking them would destroy it and tell their value.
const (
	minSecret   = 8
	minDistinct = 4
	minLine     = 24 // of a secret of several lines, to be masked by itself
)

// trivial values are configured as passwords and are ordinary words.
var trivial = []string{
	"changeme", "password", "password1", "localhost", "production", "development", "undefined", "disabled",
	"postgres", "username", "12345678", "123456789", "1234567890", "administrator", "anonymous", "example.com",
}

// Masker masks a set of secret values and all credentials that are known by
// their look. It does not change after its making and serves any number of
// writers at once. Make one with [NewMasker] or [Off].
type Masker struct {
	auto    *automaton // nil: masking is off
	ignored []string
}

// NewMasker returns a masker for the values in secrets and the known patterns.
// Surrounding white space does not belong to a value. Values that are too short
// or too common to be told from ordinary text are left out, see [Masker.Ignored].
func NewMasker(secrets []string) *Masker {
	m := &Masker{}
	b := newBuilder()
	for i, s := range secrets {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if why := refuse(s); why != "" {
			m.ignored = append(m.ignored, fmt.Sprintf("secret %d: %s", i+1, why))
			continue
		}
		for shape := range shapes(s) {
			b.addValue(shape)
		}
	}
	for _, r := range knownRules() {
		b.addRule(&r)
	}
	m.auto = b.build()
	return m
}

// Off returns a masker that masks nothing.
func Off() *Masker { return &Masker{} }

// Ignored lists the values that are not masked, by their place in the list
// given to [NewMasker] and with the reason, never the value.
func (m *Masker) Ignored() []string { return slices.Clone(m.ignored) }

// Writer returns a writer that passes on to dst what is written to it, masked.
// Close it to release what it holds back; that leaves dst open.
func (m *Masker) Writer(dst io.Writer) *Writer {
	if m.auto == nil {
		return &Writer{dst: dst, pass: true}
	}
	return &Writer{dst: dst, raw: matcher{auto: m.auto}}
}

// String returns s masked.
func (m *Masker) String(s string) string {
	if m.auto == nil {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	w := m.Writer(&b)
	_, _ = io.WriteString(w, s) // a strings.Builder does not fail
	_ = w.Close()
	return b.String()
}

func refuse(s string) string {
	distinct := map[byte]bool{}
	for i := range len(s) {
		distinct[s[i]] = true
	}
	switch {
	case len(s) < minSecret:
		return fmt.Sprintf("shorter than %d bytes", minSecret)
	case len(distinct) < minDistinct:
		return fmt.Sprintf("fewer than %d different bytes", minDistinct)
	case slices.Contains(trivial, strings.ToLower(s)):
		return "an ordinary word"
	}
	return ""
}

// shapes are the forms in which a secret is looked for.
func shapes(secret string) map[string]bool {
	found := map[string]bool{}
	add := func(s string) {
		if len(s) >= minSecret {
			found[s] = true
		}
		if len(s) >= 2*minSecret {
			found[headless(s)] = true
		}
	}
	for _, s := range values(secret) {
		add(s)
		add(strings.ReplaceAll(s, "/", `\/`))
		for _, html := range []bool{false, true} {
			once := inJSON(s, html)
			add(once)
			add(inJSON(once, html)) // an event that quotes an event
		}
		for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s), percent(s), percentAll(s)} {
			add(escaped)
			add(lowerPercent(escaped))
		}
		add(hex.EncodeToString([]byte(s)))
		add(strings.ToUpper(hex.EncodeToString([]byte(s))))
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for shift := range 3 {
				add(aligned(enc, s, shift))
			}
		}
	}
	return found
}

// headless is a secret without its first bytes, for one that is broken over two
// lines so early that the break could not be seen as part of it.
func headless(s string) string { return s[wrapDepth-1:] }

// inJSON is s as it stands between the quotes of a JSON string.
func inJSON(s string, html bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil { // strings always encode
		return s
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// values are the secret itself and, if it has several lines, each line long
// enough to be told from text.
func values(secret string) []string {
	all := []string{secret}
	if strings.Contains(secret, "\n") {
		all = append(all, strings.ReplaceAll(secret, "\n", "\r\n"))
		for line := range strings.Lines(secret) {
			line = strings.TrimSpace(line)
			if len(line) >= minLine && !strings.ContainsAny(line, " \t") {
				all = append(all, line)
			}
		}
	}
	return all
}

// aligned is the part of the base64 text of any bytes that hold s at a place
// that leaves rest shift when divided by three, which depends on s alone.
func aligned(enc *base64.Encoding, s string, shift int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + s))
	from := (shift*8 + 5) / 6
	to := (shift + len(s)) * 8 / 6
	return text[from:to]
}

// percent encodes every byte that is not a letter or digit, as strict encoders do.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if alnum[s[i]] {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

// percentAll encodes every byte, as what encodes blindly does.
func percentAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// lowerPercent writes the digits of percent escapes in lower case.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}
