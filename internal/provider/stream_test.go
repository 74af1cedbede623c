package provider_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/quota"
)

// read feeds lines of stdout to a reader until it stops the program.
func read(reader provider.Reader, lines ...string) process.Verdict {
	last := process.Continue
	for _, line := range lines {
		if last = reader.Line(process.Stdout, []byte(line), false); last == process.Stop {
			break
		}
	}
	return last
}

func reading(name string, options ...string) provider.Reader {
	pool := contract.Pool{ID: "p", Options: map[string]string{}}
	for i := 0; i < len(options); i += 2 {
		pool.Options[options[i]] = options[i+1]
	}
	return adapters()[name].Read(provider.Request{Pool: pool, Home: "/nowhere"})
}

func TestEndlessSessionsAreEnded(t *testing.T) {
	t.Parallel()
	step := map[string]func(i int) string{
		"claude": func(i int) string {
			return fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","content":[]},"session_id":"s"}`, i)
		},
		"codex":    func(int) string { return `{"type":"item.completed","item":{"type":"command_execution"}}` },
		"opencode": func(int) string { return `{"type":"step_start","sessionID":"s","part":{}}` },
		"gemini":   func(int) string { return `{"type":"tool_use","tool_name":"x"}` },
		"qwen":     func(int) string { return `{"type":"assistant","message":{"content":[]}}` },
	}
	for name := range adapters() {
		reader := reading(name, "steps", "3")
		for i := range 3 {
			require.Equal(t, process.Continue, read(reader, step[name](i)), name)
		}
		require.Equal(t, process.Stop, read(reader, step[name](3)), name)
		require.Contains(t, reader.Report().Fault.Text, "more than 3 model steps")
		require.Equal(t, contract.CauseWork, reader.Report().Fault.Cause)
	}
}

func TestPartsOfOneClaudeMessageAreOneStep(t *testing.T) {
	t.Parallel()
	reader := reading("claude", "steps", "1")
	part := `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a"}]},"session_id":"s"}`
	require.Equal(t, process.Continue, read(reader, part, part, part))
}

func TestTruncatedStreamsOfOpencodeAreNoLoop(t *testing.T) {
	t.Parallel()
	reader := reading("opencode")
	cut := `{"type":"step_finish","sessionID":"s","part":{"reason":"unknown"}}`
	require.Equal(t, process.Continue, read(reader, cut, cut))
	require.Equal(t, process.Stop, read(reader, cut))
	require.Equal(t, contract.CauseProvider, reader.Report().Fault.Cause)
}

func TestAnnouncedSleepsEndTheLaunch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stream process.Stream
		line   string
		want   process.Verdict
	}{
		{"claude", process.Stdout, `{"type":"system","subtype":"api_retry","retry_delay_ms":7795020,"error_status":429}`, process.Stop},
		{"claude", process.Stdout, `{"type":"system","subtype":"api_retry","retry_delay_ms":900,"error_status":529}`, process.Continue},
		{"codex", process.Stdout, `{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}`, process.Stop},
		{"codex", process.Stdout, `{"type":"error","message":"Reconnecting... 1/5 (stream closed before response.completed)"}`, process.Continue},
		{"opencode", process.Stderr, `timestamp=x level=ERROR message="stream error" error.error="AI_APICallError: Rate limit reached"`, process.Stop},
		{"opencode", process.Stderr, `timestamp=x level=WARN message="something else"`, process.Continue},
		{"gemini", process.Stderr, `Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 17h23m3s.. Retrying after 64702058ms...`, process.Stop},
		{"gemini", process.Stderr, `Attempt 1 failed: x. Retrying after 1198.5ms...`, process.Continue},
		{"qwen", process.Stderr, `Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit reached]`, process.Stop},
		{"qwen", process.Stderr, `Retrying in 3s (attempt 1/10): [API Error: 503]`, process.Continue},
	} {
		require.Equal(t, c.want, reading(c.name).Line(c.stream, []byte(c.line), false), c.line)
	}
}

func TestProgramThatNeverGivesUpWithoutANetworkIsEnded(t *testing.T) {
	t.Parallel()
	reader := reading("codex")
	line := `{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}`
	require.Equal(t, process.Continue, read(reader, line, line))
	require.Equal(t, process.Stop, read(reader, line))
	v := reader.Report().Verdict(adapters()["codex"].About(), quota.Launch{})
	require.Equal(t, quota.Error, v.Outcome)
}

func TestOtherProgramsAreToldByTheFormOfTheirOutput(t *testing.T) {
	t.Parallel()
	for name, adapter := range adapters() {
		reader := reading(name)
		read(reader, "Welcome!", `{"hello":"world"}`)
		require.Contains(t, reader.Report().Odd, "tested with "+name+" "+adapter.About().Tested)
		require.False(t, reader.Report().Done)
	}
}

// A limit that was survived is none: the model worked on afterwards.
func TestSurvivedErrorsAreForgotten(t *testing.T) {
	t.Parallel()
	work := map[string]string{
		"claude": `{"type":"assistant","message":{"id":"m","content":[]}}`, "codex": `{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`,
		"gemini": `{"type":"message","role":"assistant","content":"x"}`, "qwen": `{"type":"assistant","message":{"content":[]}}`,
	}
	hiccup := map[string]struct {
		stream process.Stream
		line   string
	}{
		"claude": {process.Stdout, `{"type":"system","subtype":"api_retry","retry_delay_ms":900,"error_status":429,"error":"rate_limit"}`},
		"codex":  {process.Stdout, `{"type":"error","message":"Reconnecting... 1/5 (stream closed before response.completed)"}`},
		"gemini": {process.Stderr, `Attempt 1 failed with status 429. Retrying with backoff... Resource has been exhausted`},
		"qwen":   {process.Stderr, `Retrying in 2s (attempt 1/10): [API Error: 429 Rate limit reached]`},
	}
	for name, h := range hiccup {
		reader := reading(name)
		reader.Line(h.stream, []byte(h.line), false)
		read(reader, work[name])
		v := reader.Report().Verdict(adapters()[name].About(), quota.Launch{})
		require.Equal(t, quota.Timeout, v.Outcome, "%s was killed in silence, long after: %s", name, v.Rule)
	}
}

func TestGeminiTellsTimesOnStderrOnly(t *testing.T) {
	t.Parallel()
	byName := map[string]agentRun{}
	for _, r := range agentRuns(t) {
		byName[r.name()] = r
	}
	checked := 0
	for name, events := range byName {
		stderr, ok := byName[name+".stderr"]
		if !ok || len(events.Raw) == 0 || judged[stderr.name()] != "" {
			continue
		}
		both := stderr
		both.Raw = events.Raw // the same run, both streams
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both.require(t, adapters()[both.Provider])
		})
		checked++
	}
	require.Greater(t, checked, 10)
}

func TestUsageOfAResumedSessionIsOfThisLaunchAlone(t *testing.T) {
	t.Parallel()
	before := contract.Usage{InputTokens: 1000, OutputTokens: 100, USDMicros: 2_000_000, Known: true}
	for _, c := range []struct {
		name   string
		line   string
		before contract.Usage
		want   contract.Usage
	}{
		{"qwen", `{"type":"result","subtype":"success","usage":{"input_tokens":1500,"output_tokens":130}}`, before, contract.Usage{InputTokens: 500, OutputTokens: 30, Known: true}},
		{"qwen", `{"type":"result","subtype":"success","usage":{"input_tokens":1500,"output_tokens":130}}`, contract.Usage{}, contract.Usage{}},
		{"codex", `{"type":"turn.completed","usage":{"input_tokens":1500,"output_tokens":130}}`, before, contract.Usage{InputTokens: 500, OutputTokens: 30, Known: true}},
		{"claude", `{"type":"result","subtype":"success","usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":4},"total_cost_usd":2.5}`,
			before, contract.Usage{InputTokens: 6, OutputTokens: 4, USDMicros: 500_000, Known: true}},
		{"claude", `{"type":"result","subtype":"success","usage":{"input_tokens":1},"total_cost_usd":2.5,"model_usage_since_last_result":{"a":{"costUSD":0.25},"b":{"costUSD":0.5}}}`,
			before, contract.Usage{InputTokens: 1, USDMicros: 750_000, Known: true}},
		{"gemini", `{"type":"result","status":"success","stats":{"input_tokens":7,"output_tokens":8}}`, before, contract.Usage{InputTokens: 7, OutputTokens: 8, Known: true}},
		{"opencode", `{"type":"step_finish","part":{"reason":"stop","cost":0.001,"tokens":{"input":1,"output":2,"reasoning":4,"cache":{"read":8,"write":16}}}}`,
			before, contract.Usage{InputTokens: 25, OutputTokens: 6, USDMicros: 1000, Known: true}},
	} {
		reader := adapters()[c.name].Read(provider.Request{Session: "s", Before: c.before, Home: "/nowhere"})
		read(reader, c.line)
		report := reader.Report()
		require.Equal(t, c.want, report.Usage, c.name)
		require.True(t, report.Done, c.name)
	}
}

func TestUntoldUsageIsUncertainUnlessThePoolIsFree(t *testing.T) {
	t.Parallel()
	for name, adapter := range adapters() {
		require.False(t, adapter.Read(provider.Request{}).Report().Usage.Known, name)
		free := provider.Request{Pool: contract.Pool{Cost: &contract.Cost{}}}
		require.True(t, adapter.Read(free).Report().Usage.Known, name)
	}
}

func TestResultIsFoundInALastMessage(t *testing.T) {
	t.Parallel()
	const result = `{"items":[{"finding":"F","status":"resolved"}]}`
	for name, message := range map[string]string{
		"fenced":        "Done.\n```json\n" + result + "\n```\nBye.",
		"tildes":        "~~~\n" + result + "\n~~~",
		"last of two":   "```\n{\"items\":[]}\n```\nno:\n```json\n" + result + "\n```",
		"other block":   "```json\n" + result + "\n```\n```go\nfunc main() {}\n```",
		"longer fence":  "````json\n" + result + "\n````",
		"bare":          "  " + result + "\n",
		"cut":           "```json\n" + result,
		"indented":      "- so:\n  ```json\n  " + result + "\n  ```",
		"windows lines": "```json\r\n" + result + "\r\n```\r\n",
	} {
		block, ok := provider.ResultBlock(message)
		require.True(t, ok, name)
		require.JSONEq(t, result, string(block), name)
	}
	for _, message := range []string{"", "done", "```json\n{}\n```", "```json\n{\"items\":\n```", `["items"]`, `{"item":[]}`} {
		_, ok := provider.ResultBlock(message)
		require.False(t, ok, message)
	}
}

func FuzzStreamsAreReadWithoutHarm(f *testing.F) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range adapters() {
			if !yield(name) {
				return
			}
		}
	})
	for i := range names {
		f.Add(uint8(i), uint64(i), `{"type":"result","is_error":true,"usage":{"input_tokens":-1e400}}`+"\n"+`{"type":"assistant","message":{"id":1,"content":"x"}}`)
		f.Add(uint8(i), uint64(i), "Retrying after 99999999999999999999ms\n{\"type\":\"system\",\"subtype\":\"retry\",\"data\":{\"delayMs\":\"x\"}}\n\x00{")
		f.Add(uint8(i), uint64(i), `{"type":"thread.started","thread_id":"../../etc/*"}`+"\n"+`{"type":"step_finish","part":{"reason":"stop","tokens":{"input":1e308,"output":1e308}}}`)
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64, text string) {
		name := names[int(which)%len(names)]
		random := rand.New(rand.NewPCG(seed, 0))
		reader := reading(name)
		for line := range strings.Lines(text) {
			stream := process.Stdout
			if random.IntN(4) == 0 {
				stream = process.Stderr
			}
			reader.Line(stream, []byte(strings.TrimSuffix(line, "\n")), random.IntN(16) == 0)
		}
		report := reader.Report()
		for _, n := range []int64{report.Usage.InputTokens, report.Usage.OutputTokens, report.Usage.USDMicros, report.Totals.InputTokens} {
			require.GreaterOrEqual(t, n, int64(0))
		}
		require.False(t, report.Done && report.Fault != nil)
		one := 1
		report.Verdict(adapters()[name].About(), quota.Launch{ExitCode: &one})
		provider.ResultBlock(text)
	})
}
