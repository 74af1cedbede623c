package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// event is the part of a line of the stream that is read here.
type event struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   usage           `json:"usage"`
	} `json:"message"`
	ParentTool   string                `json:"parent_tool_use_id"`
	IsAPIError   bool                  `json:"is_api_error_message"`
	RetryDelayMS float64               `json:"retry_delay_ms"`
	IsError      bool                  `json:"is_error"`
	StopReason   string                `json:"stop_reason"`
	ErrorStatus  float64               `json:"error_status"`
	Error        string                `json:"error"`
	Errors       []string              `json:"errors"`
	Result       string                `json:"result"`
	Usage        *usage                `json:"usage"`
	TotalUSD     *float64              `json:"total_cost_usd"`
	Since        map[string]modelUsage `json:"model_usage_since_last_result"`
	RateLimit    struct {
		Windows map[string]window `json:"unifiedWindows"`
	} `json:"rate_limit_info"`
}

// window is a quota window of a subscription.
type window struct {
	Used     *float64 `json:"utilization"` // 1 is all of it
	ResetsAt int64    `json:"resetsAt"`    // seconds since 1970
}

type usage struct {
	Input      float64 `json:"input_tokens"`
	CacheWrite float64 `json:"cache_creation_input_tokens"`
	CacheRead  float64 `json:"cache_read_input_tokens"`
	Output     float64 `json:"output_tokens"`
}

func (u usage) input() int64 { return provider.Tokens(u.Input + u.CacheWrite + u.CacheRead) }

type modelUsage struct {
	USD float64 `json:"costUSD"`
}

// synthetic is the model of messages that the program wrote itself.
const synthetic = "<synthetic>"

type reader struct {
	provider.Follow
	usage   contract.Usage
	totals  contract.Usage
	message string // id of the last message of the model
	spent   int64  // tokens of the steps so far
	windows []contract.Window
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	var e event
	if ok, verdict := r.Event(stream, line, truncated, &e); !ok {
		return verdict
	}
	if e.SessionID != "" && e.ParentTool == "" {
		r.ID = e.SessionID
	}
	switch {
	case e.Type == "result":
		r.Words.Event(line)
		if e.IsError {
			r.Lose(line)
		}
		r.result(&e)
		return process.Finished
	case e.Type == "rate_limit_event":
		r.Words.Event(line)
		for name, w := range e.RateLimit.Windows { // kept in order of the names
			if w.Used == nil {
				continue
			}
			if fact, ok := provider.Window(name, *w.Used, w.ResetsAt); ok {
				r.windows = provider.KeepWindow(r.windows, fact)
			}
		}
	case e.Type == "system" && e.Subtype == "api_retry":
		r.Words.Event(line)
		r.Tell(fmt.Sprintf("it waits %.0f s after status %.0f (%s)", e.RetryDelayMS/1000, e.ErrorStatus, e.Error))
		if e.RetryDelayMS >= float64(provider.LongWait.Milliseconds()) {
			return process.Stop
		}
	case e.Type == "assistant" && (e.IsAPIError || e.Message.Model == synthetic):
		r.Words.Event(line)
		r.Tell(textOf(e.Message.Content))
	case e.Type == "assistant":
		r.Words.Progress()
		return r.step(&e)
	case e.Type == "system" || e.Type == "user":
		r.Words.Neutral()
	}
	return process.Continue
}

// step counts a message of the model: a message comes in several events, one for
// each part of it.
func (r *reader) step(e *event) process.Verdict {
	if text := textOf(e.Message.Content); text != "" && e.ParentTool == "" {
		r.Final = text
	}
	if e.Message.ID == r.message && r.message != "" {
		return process.Continue
	}
	r.message = e.Message.ID
	r.spent += e.Message.Usage.input() + provider.Tokens(e.Message.Usage.Output)
	if r.Req.Tokens > 0 && r.spent > int64(r.Req.Tokens) {
		return r.Wrong(provider.TooManyTokens(r.Req.Tokens))
	}
	return r.Step()
}

// result reads the final event. Tokens are of this launch; the total cost is of
// the session, so the cost per model since the last result is preferred.
func (r *reader) result(e *event) {
	r.Done = !e.IsError && e.Subtype == "success"
	switch {
	case e.Subtype == "error_max_turns":
		r.Wrong(provider.TooManySteps(provider.Steps(r.Req.Pool)))
	case e.StopReason == "refusal":
		r.Wrong(&provider.Fault{Text: "the model refused: " + e.Result, Cause: contract.CauseWork})
	}
	switch {
	case e.IsError:
		r.Tell(strings.Join(e.Errors, "; "))
		r.Tell(e.Result)
	case e.Result != "":
		r.Final = e.Result
	}
	if e.Usage == nil {
		return
	}
	r.usage = contract.Usage{InputTokens: e.Usage.input(), OutputTokens: provider.Tokens(e.Usage.Output), Known: true}
	if e.TotalUSD != nil {
		r.totals = contract.Usage{USDMicros: provider.Micros(*e.TotalUSD), Known: true}
		r.usage.USDMicros = provider.Since(r.Req, r.totals).USDMicros
	}
	if e.Since != nil {
		var usd float64
		for _, m := range e.Since {
			usd += m.USD
		}
		r.usage.USDMicros = provider.Micros(usd)
	}
}

// textOf joins the texts of a message.
func textOf(content json.RawMessage) string {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Report is what the output told.
func (r *reader) Report() provider.Report {
	report := r.Follow.Report(r.usage, r.totals)
	report.Windows = r.windows
	return report
}
