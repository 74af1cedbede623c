package claude

import (
	"bytes"
	"encoding/json"
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
	Result       string                `json:"result"`
	Usage        *usage                `json:"usage"`
	TotalUSD     *float64              `json:"total_cost_usd"`
	Since        map[string]modelUsage `json:"model_usage_since_last_result"`
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

// lostSession is what the program says of a session that it does not have.
const lostSession = "No conversation found with session ID"

// synthetic is the model of messages that the program wrote itself.
const synthetic = "<synthetic>"

type reader struct {
	req     provider.Request
	about   provider.About
	words   provider.Words
	session string
	final   string
	usage   contract.Usage
	totals  contract.Usage
	done    bool
	lost    bool
	fault   *provider.Fault
	message string // id of the last message of the model
	steps   int
	spent   int64 // tokens of the steps so far
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	if stream == process.Stderr {
		r.lost = r.lost || bytes.Contains(line, []byte(lostSession))
		r.words.Stderr(line)
		return r.asked(line)
	}
	if truncated {
		r.words.Progress() // only tool results and messages are that long
		return process.Continue
	}
	var e event
	if !provider.Decode(line, &e) {
		r.words.Stdout(line)
		return r.asked(line)
	}
	if e.SessionID != "" && e.ParentTool == "" {
		r.session = e.SessionID
	}
	return r.event(&e, line)
}

func (r *reader) asked(line []byte) process.Verdict {
	if f := provider.Asks(line); f != nil && r.fault == nil {
		r.fault = f
		return process.Stop
	}
	return process.Continue
}

func (r *reader) event(e *event, line []byte) process.Verdict {
	switch {
	case e.Type == "result":
		r.words.Event(line)
		r.lost = r.lost || e.IsError && bytes.Contains(line, []byte(lostSession))
		r.result(e)
		return process.Finished
	case e.Type == "rate_limit_event":
		r.words.Event(line)
	case e.Type == "system" && e.Subtype == "api_retry":
		r.words.Event(line)
		if e.RetryDelayMS >= float64(provider.LongWait.Milliseconds()) {
			return process.Stop
		}
	case e.Type == "assistant" && (e.IsAPIError || e.Message.Model == synthetic):
		r.words.Event(line)
	case e.Type == "assistant":
		r.words.Progress()
		return r.step(e)
	case e.Type == "system" || e.Type == "user":
		r.words.Neutral()
	}
	return process.Continue
}

// step counts a message of the model: a message comes in several events, one for
// each part of it.
func (r *reader) step(e *event) process.Verdict {
	if text := textOf(e.Message.Content); text != "" && e.ParentTool == "" {
		r.final = text
	}
	if e.Message.ID == r.message && r.message != "" {
		return process.Continue
	}
	r.message = e.Message.ID
	r.steps++
	r.spent += e.Message.Usage.input() + provider.Tokens(e.Message.Usage.Output)
	switch {
	case r.steps > provider.Steps(r.req.Pool):
		r.fault = provider.TooManySteps(provider.Steps(r.req.Pool))
	case r.req.Tokens > 0 && r.spent > int64(r.req.Tokens):
		r.fault = provider.TooManyTokens(r.req.Tokens)
	default:
		return process.Continue
	}
	return process.Stop
}

// result reads the final event. Tokens are of this launch; the total cost is of
// the session, so the cost per model since the last result is preferred.
func (r *reader) result(e *event) {
	r.done = !e.IsError && e.Subtype == "success"
	if e.Result != "" && !e.IsError {
		r.final = e.Result
	}
	if e.Usage == nil {
		return
	}
	r.usage = contract.Usage{InputTokens: e.Usage.input(), OutputTokens: provider.Tokens(e.Usage.Output), Known: true}
	if e.TotalUSD != nil {
		r.totals = contract.Usage{USDMicros: provider.Micros(*e.TotalUSD), Known: true}
		r.usage.USDMicros = provider.Since(r.req, r.totals).USDMicros
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

// Session is the session of the last event.
func (r *reader) Session() string { return r.session }

// Report is what the output told.
func (r *reader) Report() provider.Report {
	used := r.usage
	if !used.Known {
		used = provider.Uncertain(r.req.Pool)
	}
	return provider.Report{
		Usage: used, Totals: r.totals, Session: r.session, Lost: r.lost && r.req.Session != "",
		Final: r.final, Done: r.done, Fault: r.fault, Odd: r.words.Odd(r.about), Said: r.words.Said(),
	}
}
