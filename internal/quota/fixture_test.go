package quota

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixture is one line of testdata/limit-messages.jsonl.
type fixture struct {
	ID         string            `json:"id"`
	Provider   string            `json:"provider"`
	Channel    string            `json:"channel"`
	ExitCode   *int              `json:"exit_code"`
	HTTPStatus *int              `json:"http_status"`
	Headers    map[string]string `json:"headers"`
	Text       string            `json:"text"`
	TextBase64 string            `json:"text_base64"`
	ObservedAt time.Time         `json:"observed_at"`
	LocalZone  string            `json:"local_zone"`
	HasResult  bool              `json:"has_result"`
	Expect     expectation       `json:"expect"`
	Why        string            `json:"why"`
}

type expectation struct {
	Outcome        Outcome    `json:"outcome"`
	ResetAt        *time.Time `json:"reset_at"`
	ResetPrecision Precision  `json:"reset_precision"`
	Scope          Scope      `json:"scope"`
	Hard           bool       `json:"hard"`
}

func (f fixture) launch(tb testing.TB) Launch {
	tb.Helper()
	zone, err := time.LoadLocation(f.LocalZone)
	require.NoError(tb, err)
	content := []byte(f.Text)
	if f.TextBase64 != "" {
		content, err = base64.StdEncoding.DecodeString(f.TextBase64)
		require.NoError(tb, err)
	}
	headers := make(map[string][]string)
	for k, v := range f.Headers {
		headers[k] = []string{v}
	}
	return Launch{ID: f.ID, Provider: f.Provider, Channel: Channel(f.Channel), ExitCode: f.ExitCode,
		HTTPStatus: f.HTTPStatus, Headers: headers, Text: content, ObservedAt: f.ObservedAt,
		LocalZone: zone, Zone: time.LoadLocation, HasResult: f.HasResult}
}

// verdictOf drops what fixtures say nothing about.
func expectationOf(v Verdict) expectation {
	return expectation{v.Outcome, v.ResetAt, v.ResetPrecision, v.Scope, v.Hard}
}

func readLines[T any](tb testing.TB, name string) []T {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(tb, err)
	var out []T
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var v T
		require.NoError(tb, json.Unmarshal(sc.Bytes(), &v))
		out = append(out, v)
	}
	require.NoError(tb, sc.Err())
	require.NotEmpty(tb, out)
	return out
}

func TestClassifyFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range readLines[fixture](t, "limit-messages.jsonl") {
		t.Run(f.ID, func(t *testing.T) {
			t.Parallel()
			got := Classify(f.launch(t))
			require.Equal(t, f.Expect, expectationOf(got), "%s\nrule %s, text %q", f.Why, got.Rule, f.Text[:min(len(f.Text), 500)])
		})
	}
}
