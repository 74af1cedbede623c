package quota

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Variations of the fixtures that must not change their verdicts.

func isTerminal(f fixture) bool { return f.Channel == "stdout" || f.Channel == "stderr" }

// provider tells whether the text of the fixture is the provider's own. Text
// of others (diffs, test output) cannot be told apart once it is wrapped.
func isProvider(f fixture) bool {
	return !strings.HasPrefix(f.ID, "neg-") && f.Expect.Outcome != Error && f.Expect.Outcome != Timeout
}

// announcesRetry: nothing may follow such a text.
func isRetry(f fixture) bool {
	lower := strings.ToLower(f.Text)
	return strings.Contains(lower, "retrying") || strings.Contains(lower, "reconnecting") || strings.Contains(lower, "api_retry")
}

var variations = []struct {
	name   string
	fits   func(fixture) bool
	change func(*fixture)
}{
	{"colours", isTerminal, func(f *fixture) {
		words := strings.SplitAfter(f.Text, " ")
		for i := range words {
			words[i] = []string{"\x1b[1m", "\x1b[38;5;203m", "\x1b[0m", "\x1b[2K", ""}[i%5] + words[i]
		}
		f.Text = strings.Join(words, "") + "\x1b[0m"
	}},
	{"colour inside words", isTerminal, func(f *fixture) {
		f.Text = strings.NewReplacer("limit", "li\x1b[1mmit", "reset", "re\x1b[22mset", "hit", "h\x1b[0mit").Replace(f.Text)
	}},
	{"wrapped at 60", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) { f.Text = wrap(f.Text, 60) }},
	{"wrapped at 80", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) { f.Text = wrap(f.Text, 80) }},
	{"CRLF", func(fixture) bool { return true }, func(f *fixture) { f.Text = strings.ReplaceAll(f.Text, "\n", "\r\n") }},
	{"final newlines", func(fixture) bool { return true }, func(f *fixture) { f.Text += "\n\n" }},
	{"doubled", func(fixture) bool { return true }, func(f *fixture) {
		if f.Channel != "http" {
			f.Text += "\n" + f.Text
		}
	}},
	{"logger", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) { f.Text = prefixLines(f.Text, "2026-01-02T03:04:05.678Z ") }},
	{"logger with level", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) { f.Text = prefixLines(f.Text, "[2026-01-02 03:04:05] ERROR ") }},
	{"clock prefix", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) { f.Text = prefixLines(f.Text, "03:04:05 ") }},
	{"typographic quotes", isTerminal, func(f *fixture) { f.Text = strings.ReplaceAll(f.Text, "'", "’") }},
	{"ASCII quotes", isTerminal, func(f *fixture) { f.Text = strings.ReplaceAll(f.Text, "’", "'") }},
	{"no-break spaces", isTerminal, func(f *fixture) { f.Text = strings.ReplaceAll(f.Text, " ", "\u00a0") }},
	{"other dots", isTerminal, func(f *fixture) { f.Text = strings.NewReplacer("∙", "·", "·", "•").Replace(f.Text) }},
	{"boxed", func(f fixture) bool { return isTerminal(f) && isProvider(f) }, func(f *fixture) {
		f.Text = "╭────────╮\n" + prefixLines(f.Text, "│ ") + "\n╰────────╯"
	}},
	{"assistant text before", func(f fixture) bool { return isTerminal(f) && f.Provider != "" && !strings.HasPrefix(f.ID, "long-") }, func(f *fixture) {
		f.Text = "I'll look at the failing test first and then change the client\nThe rate limit handler needs a test.\n\n" + f.Text
	}},
	{"assistant text after", func(f fixture) bool { return isTerminal(f) && !isRetry(f) }, func(f *fixture) {
		f.Text += "\n\nLet me check what happens when the usage limit is reached."
	}},
	{"assistant events before", func(f fixture) bool { return f.Channel == "stream-json" }, func(f *fixture) {
		f.Text = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"You've hit your usage limit. Try again at 3:45 PM."}]}}` + "\n" +
			`{"type":"item.completed","item":{"type":"agent_message","text":"Credit balance is too low"}}` + "\n" +
			`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"429 Too Many Requests, prompt is too long","is_error":true}]}}` + "\n" + f.Text
	}},
	{"broken line before", func(f fixture) bool { return f.Channel == "stream-json" }, func(f *fixture) {
		f.Text = `{"type":"assistant","message":{"content":[{"type":"te` + "\n" + f.Text
	}},
	{"indented JSON", hasJSON, func(f *fixture) {
		f.Text = eachLine(f.Text, func(line []byte) []byte {
			var b bytes.Buffer
			if json.Indent(&b, line, "", "    ") != nil {
				return line
			}
			return b.Bytes()
		})
	}},
	{"fields reversed", hasJSON, func(f *fixture) {
		f.Text = eachLine(f.Text, func(line []byte) []byte {
			v, _, whole := parseJSON(line, true)
			if !whole || v.kind != object {
				return line
			}
			return appendReversed(nil, v)
		})
	}},
	{"headers in upper case", isHTTP, func(f *fixture) { f.Headers = renamed(f.Headers, strings.ToUpper) }},
	{"headers in lower case", isHTTP, func(f *fixture) { f.Headers = renamed(f.Headers, strings.ToLower) }},
	{"headers with other headers", isHTTP, func(f *fixture) {
		f.Headers = renamed(f.Headers, func(s string) string { return s })
		f.Headers["date"] = "Tue, 02 Jun 2026 15:15:32 GMT"
		f.Headers["content-type"] = "application/json"
		f.Headers["x-request-id"] = "req_429"
	}},
}

func isHTTP(f fixture) bool { return f.Channel == "http" }

func hasJSON(f fixture) bool { return f.Channel == "http" || f.Channel == "stream-json" }

func TestVariationsKeepTheVerdict(t *testing.T) {
	t.Parallel()
	fixtures := readLines[fixture](t, "limit-messages.jsonl")
	for _, variation := range variations {
		t.Run(variation.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for _, f := range fixtures {
				if f.TextBase64 != "" || !variation.fits(f) {
					continue
				}
				n++
				variation.change(&f)
				got := Classify(f.launch(t))
				require.Equal(t, f.Expect, expectationOf(got), "%s: %s\nrule %s\n%.1500q", f.ID, f.Why, got.Rule, f.Text)
			}
			require.Greater(t, n, 10)
		})
	}
}

// fixture gives the shape in the form of a fixture, expecting the verdict that
// TestClassifyShapes checks.
func (s shape) fixture() fixture {
	f := fixture{ID: "shape", Provider: s.Provider, Channel: string(s.Channel), ExitCode: s.ExitCode, HTTPStatus: s.HTTPStatus,
		Headers: make(map[string]string), Text: string(s.Text), ObservedAt: s.ObservedAt, LocalZone: "Europe/Berlin"}
	for k, v := range s.Headers {
		f.Headers[k] = v[0]
	}
	f.Expect, f.Why = expectationOf(Classify(s.Launch)), s.line
	return f
}

func TestVariationsOfShapesKeepTheVerdict(t *testing.T) {
	t.Parallel()
	shapes := readShapes(t)
	for _, variation := range variations {
		t.Run(variation.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range shapes {
				f := s.fixture()
				if !variation.fits(f) {
					continue
				}
				variation.change(&f)
				got := Classify(f.launch(t))
				assert.Equal(t, f.Expect, expectationOf(got), "%s\nrule %s\n%.1500q", f.Why, got.Rule, f.Text)
			}
		})
	}
}

func wrap(s string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		column := 0
		for i, w := range strings.Fields(line) {
			switch {
			case i == 0:
			case column+1+len(w) > width:
				out.WriteByte('\n')
				column = 0
			default:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(w)
			column += len(w)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func prefixLines(s, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+prefix)
}

func eachLine(s string, change func([]byte) []byte) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		out = append(out, string(change([]byte(line))))
	}
	return strings.Join(out, "\n")
}

func renamed(in map[string]string, change func(string) string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[change(k)] = v
	}
	return out
}

// appendReversed writes a value with the members of all objects in reverse.
func appendReversed(b []byte, v value) []byte {
	switch v.kind {
	case object:
		b = append(b, '{')
		for i, m := range slices.Backward(v.members) {
			if i < len(v.members)-1 {
				b = append(b, ',')
			}
			key, _ := json.Marshal(m.key)
			b = append(append(b, key...), ':')
			b = appendReversed(b, m.val)
		}
		return append(b, '}')
	case array:
		b = append(b, '[')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendReversed(b, m.val)
		}
		return append(b, ']')
	case text:
		return append(append(append(b, '"'), v.raw...), '"')
	default:
		return append(b, v.raw...)
	}
}
