package provider_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/provider/claude"
	"mendflow/internal/provider/codex"
	"mendflow/internal/provider/gemini"
	"mendflow/internal/provider/opencode"
	"mendflow/internal/provider/qwen"
	"mendflow/internal/quota"
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
		Outcome      quota.Outcome `json:"outcome"`
		ResetAt      *time.Time    `json:"reset_at"`
		ResetSeconds *float64      `json:"reset_seconds"`
		RolloutEpoch int64         `json:"rollout_reset_epoch"` // what the rollout file adds
	} `json:"expect"`
}

func (r agentRun) name() string { return r.Provider + " " + r.Case }

func adapters() map[string]provider.Provider {
	return map[string]provider.Provider{
		"claude": claude.Provider{}, "codex": codex.Provider{}, "opencode": opencode.Provider{},
		"gemini": gemini.Provider{}, "qwen": qwen.Provider{},
	}
}

// rolloutThread is the thread whose rollout file a row's lines are written to.
const rolloutThread = "00000000-0000-4000-8000-00000000beef"

// judged lists the rows that are judged wrong, with the reason.
var judged = map[string]string{
	"gemini hang.bounded":        "the same text as gemini drop.bounded, which is an error; nothing in the output tells the two apart",
	"gemini hang.bounded.stderr": "the same text as gemini drop, which is an error",
	"gemini hang":                "the same text as gemini drop, which is an error",
	"gemini rl_capacity.stderr":  "the program's own back-off after an overload is not the provider's reset",
	"qwen sse_error":             "the program announces a sleep of 60 s for a limit: that is the time of the next try",
}

func agentRuns(t *testing.T) []agentRun {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "agent-runs.jsonl"))
	require.NoError(t, err)
	var rows []agentRun
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r agentRun
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		rows = append(rows, r)
	}
	require.NoError(t, lines.Err())
	return rows
}

// report feeds what the program printed to its adapter, as the supervisor would.
func (r agentRun) report(t *testing.T, adapter provider.Provider) provider.Report {
	t.Helper()
	req := provider.Request{Pool: contract.Pool{ID: "p"}, Home: t.TempDir()}
	reader := adapter.Read(req)
	feed := func(stream process.Stream, lines ...string) {
		for _, line := range lines {
			if reader.Line(stream, []byte(line), false) == process.Stop {
				return
			}
		}
	}
	if len(r.Rollout) > 0 {
		feed(process.Stdout, `{"type":"thread.started","thread_id":"`+rolloutThread+`"}`)
		dir := filepath.Join(adapter.About().HomeOf(req.Pool, req.Home), "sessions", "2026", "11", "30")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "rollout-2026-11-30T10-00-00-"+rolloutThread+".jsonl"), []byte(strings.Join(r.Rollout, "\n")+"\n"), 0o600))
	}
	feed(process.Stdout, r.Raw...)
	switch {
	case r.Channel == "stderr":
		feed(process.Stderr, strings.Split(r.Text, "\n")...)
	case len(r.Raw) == 0:
		feed(process.Stdout, strings.Split(r.Text, "\n")...)
	}
	return reader.Report()
}

func (r agentRun) require(t *testing.T, adapter provider.Provider) {
	zone, err := time.LoadLocation(r.TZ)
	require.NoError(t, err)
	report := r.report(t, adapter)
	got := report.Verdict(adapter.About(), quota.Launch{ID: r.name(), ExitCode: r.ExitCode, ObservedAt: r.Observed, LocalZone: zone, Zone: time.LoadLocation})
	require.Equal(t, r.Expect.Outcome, got.Outcome, "by %s: %s", got.Rule, got.Evidence)
	require.Equal(t, r.Expect.Outcome == quota.Success, report.Done)
	want := r.Expect.ResetAt
	if r.Expect.ResetSeconds != nil {
		at := r.Observed.Add(time.Duration(*r.Expect.ResetSeconds * float64(time.Second)))
		want = &at
	}
	if r.Expect.RolloutEpoch != 0 {
		at := time.Unix(r.Expect.RolloutEpoch, 0)
		want = &at
	}
	if want == nil {
		require.Nil(t, got.ResetAt, got.Rule)
		return
	}
	require.NotNil(t, got.ResetAt, got.Rule)
	tolerance := time.Second
	if got.ResetPrecision != quota.Exact {
		tolerance = time.Minute
	}
	require.WithinDuration(t, *want, *got.ResetAt, tolerance)
}

func TestEveryRecordedRunIsReadAndClassifiedRight(t *testing.T) {
	t.Parallel()
	rows := agentRuns(t)
	require.LessOrEqual(t, len(judged)*20, len(rows), "more than 5 % of the rows are judged wrong")
	known := adapters()
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.name()] = true
		if judged[r.name()] != "" {
			continue
		}
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			require.Contains(t, known, r.Provider)
			r.require(t, known[r.Provider])
		})
	}
	for name := range judged {
		require.True(t, seen[name], "%s is no row any more", name)
	}
}

func TestCopyOfRecordedRunsIsCurrent(t *testing.T) {
	t.Parallel()
	shared, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "agent-runs.jsonl"))
	if os.IsNotExist(err) {
		return // the shared folder is not part of the repository
	}
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join("testdata", "agent-runs.jsonl"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(shared, own), "copy ../shared/data/agent-runs.jsonl again")
}
