package quota

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// agentRun is one line of testdata/agent-runs.jsonl: what a real program
// printed for a scripted answer of a model server.
type agentRun struct {
	Provider string    `json:"provider"`
	Case     string    `json:"case"`
	Channel  string    `json:"channel"`
	ExitCode *int      `json:"exit_code"`
	Text     string    `json:"text"`
	Raw      []string  `json:"raw"`
	Rollout  []string  `json:"rollout"`
	Observed time.Time `json:"observed_at"`
	TZ       string    `json:"tz"`
	Expect   struct {
		Outcome      Outcome    `json:"outcome"`
		ResetAt      *time.Time `json:"reset_at"`
		ResetSeconds *float64   `json:"reset_seconds"`
		RolloutEpoch int64      `json:"rollout_reset_epoch"` // what the rollout file adds
	} `json:"expect"`
}

func (r agentRun) name() string { return r.Provider + " " + r.Case }

func (r agentRun) launch(tb testing.TB, channel Channel, lines ...string) Launch {
	tb.Helper()
	zone, err := time.LoadLocation(r.TZ)
	require.NoError(tb, err)
	provider := r.Provider
	if provider == "claude" {
		provider = "claude-code"
	}
	return Launch{ID: r.name(), Provider: provider, Channel: channel, ExitCode: r.ExitCode, Text: []byte(strings.Join(lines, "\n")),
		ObservedAt: r.Observed, LocalZone: zone, Zone: time.LoadLocation, HasResult: r.Expect.Outcome == Success}
}

// requireVerdict compares with a tolerance: wall times were cut to the minute,
// waits were rounded by the programs.
func (r agentRun) requireVerdict(tb testing.TB, l Launch) {
	tb.Helper()
	got := Classify(l)
	require.Equal(tb, r.Expect.Outcome, got.Outcome, "%s by %s", l.Text, got.Rule)
	want := r.Expect.ResetAt
	if r.Expect.ResetSeconds != nil {
		at := r.Observed.Add(time.Duration(*r.Expect.ResetSeconds * float64(time.Second)))
		want = &at
	}
	if want == nil {
		require.Nil(tb, got.ResetAt, "%s", l.Text)
		return
	}
	require.NotNil(tb, got.ResetAt, "%s", l.Text)
	tolerance := time.Second
	if got.ResetPrecision != Exact {
		tolerance = time.Minute
	}
	require.WithinDuration(tb, *want, *got.ResetAt, tolerance, "%s", l.Text)
}

// notInText says which rows cannot be right from their text alone.
var notInText = map[string]string{
	"opencode anthropic_rl_retry_after_short": "the wait stands in a header of the raw event only",
	"gemini hang.bounded":                     "the same text as gemini drop.bounded, which is an error",
	"gemini hang.bounded.stderr":              "the same text as gemini drop, which is an error",
	"gemini hang":                             "the same text as gemini drop, which is an error",
	"gemini rl_capacity.stderr":               "the program's own back-off for an overload is no reset (contract, 6)",
	"claude oauth_watchdog_rl_unified_5h":     "the delay counts from the event, which was 25 s before the observation; the raw events have the instant",
	"qwen sse_error":                          "the program's own wait for a limit is a reset (contract, 6)",
}

// notInEvents does the same for the raw events.
var notInEvents = map[string]string{
	"gemini hang.bounded": notInText["gemini hang.bounded"],
	"qwen rl_ms":          "the retry event names no cause; it stands on stderr",
	"qwen sse_error":      "the retry event names no cause; it stands on stderr",
}

func TestClassifyTextOfRealPrograms(t *testing.T) {
	t.Parallel()
	skipped := 0
	for _, r := range readLines[agentRun](t, "agent-runs.jsonl") {
		if notInText[r.name()] != "" {
			skipped++
			continue
		}
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			// The text of a JSON channel is the message that the adapter read
			// from it: like stderr, it is nobody's but the program's.
			channel := Stderr
			if r.Channel == "stdout" {
				channel = Stdout
			}
			r.requireVerdict(t, r.launch(t, channel, r.Text))
		})
	}
	require.Equal(t, len(notInText), skipped)
}

func TestClassifyEventsOfRealPrograms(t *testing.T) {
	t.Parallel()
	skipped := 0
	for _, r := range readLines[agentRun](t, "agent-runs.jsonl") {
		if len(r.Raw) == 0 {
			continue
		}
		if notInEvents[r.name()] != "" {
			skipped++
			continue
		}
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			r.requireVerdict(t, r.launch(t, StreamJSON, r.Raw...))
			if at := time.Unix(r.Expect.RolloutEpoch, 0); r.Expect.RolloutEpoch != 0 {
				r.Expect.ResetAt = &at
			}
			r.requireVerdict(t, r.launch(t, StreamJSON, append(r.Raw, r.Rollout...)...))
		})
	}
	require.Equal(t, len(notInEvents), skipped)
}
