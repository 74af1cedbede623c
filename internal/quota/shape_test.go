package quota

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shape is one line of testdata/shapes.txt.
type shape struct {
	line string
	want string
	Launch
}

func readShapes(tb testing.TB) []shape {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "shapes.txt"))
	require.NoError(tb, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(tb, err)
	var out []shape
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.SplitN(line, "|", 4)
		require.Len(tb, columns, 4, line)
		where := strings.Fields(columns[0])
		require.Len(tb, where, 2, line)
		s := shape{line: line, want: strings.TrimSpace(columns[1]), Launch: Launch{
			Provider: "generic", Channel: Channel(where[0]), ObservedAt: time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC),
			LocalZone: berlin, Zone: time.LoadLocation, Headers: make(map[string][]string)}}
		s.Text = []byte(unescaped(columns[3]))
		for part := range strings.SplitSeq(strings.TrimSpace(columns[2]), ";;") {
			if name, val, ok := strings.Cut(part, "="); ok {
				s.Headers[name] = []string{val}
			} else if part != "" {
				s.Provider = part
			}
		}
		if where[1] != "nil" {
			code, err := strconv.Atoi(where[1])
			require.NoError(tb, err)
			if s.Channel == HTTP {
				s.HTTPStatus = &code
			} else {
				s.ExitCode = &code
			}
		}
		out = append(out, s)
	}
	return out
}

// unescaped resolves \e, and \n except inside of JSON, where it is an escape
// of JSON itself unless it stands between two objects.
func unescaped(s string) string {
	s = strings.ReplaceAll(s, `\e`, "\x1b")
	if strings.HasPrefix(s, "{") {
		return strings.ReplaceAll(s, `}\n{`, "}\n{")
	}
	return strings.ReplaceAll(s, `\n`, "\n")
}

var outcomeLetters = map[Outcome]string{RateLimited: "R", Overloaded: "O", CreditExhausted: "C", AuthFailed: "A",
	ModelUnavailable: "M", PacketTooLarge: "P", QuotaUnclassified: "Q", Timeout: "T", Error: "E"}

func summary(v Verdict) string {
	out := outcomeLetters[v.Outcome]
	if v.ResetAt != nil {
		out += " " + strings.TrimPrefix(v.ResetAt.Format("2006-01-02T15:04:05.999Z"), "2026-") + " " + string(v.ResetPrecision[:1])
	}
	if v.Scope == ScopeModel {
		out += " model"
	}
	return out
}

func TestClassifyShapes(t *testing.T) {
	t.Parallel()
	shapes := readShapes(t)
	require.Greater(t, len(shapes), 200)
	for _, s := range shapes {
		v := Classify(s.Launch)
		if s.want != summary(v) {
			t.Errorf("%s\n   want %s, got %s by %s", s.line, s.want, summary(v), v.Rule)
		}
		requireSound(t, s.Launch, v)
	}
}
