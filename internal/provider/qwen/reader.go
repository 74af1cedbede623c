package qwen

import (
	"encoding/json"
	"regexp"
	"strconv"
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
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	ParentTool string `json:"parent_tool_use_id"`
	Data       struct {
		DelayMS float64 `json:"delayMs"`
	} `json:"data"`
	IsError bool   `json:"is_error"`
	Result  string `json:"result"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage *struct {
		Input  float64 `json:"input_tokens"`
		Output float64 `json:"output_tokens"`
	} `json:"usage"`
}

// retrying is how stderr announces a sleep, with its cause.
var retrying = regexp.MustCompile(`Retrying in ([0-9]{1,9})s \(attempt`)

// tooManyTurns is how stderr tells of the cap on turns; there is no event then.
const tooManyTurns = "max session turns"

type reader struct {
	provider.Follow
	totals contract.Usage
	waits  int
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	var e event
	if ok, verdict := r.Event(stream, line, truncated, &e); !ok {
		if stream == process.Stderr {
			return max(verdict, r.stderr(line))
		}
		return verdict
	}
	if e.SessionID != "" {
		r.ID = e.SessionID
	}
	switch {
	case e.Type == "result":
		r.Words.Event(line)
		r.result(&e)
		return process.Finished
	case e.Type == "system" && e.Subtype == "retry":
		r.Words.Event(line)
		return r.retry(e.Data.DelayMS)
	case e.Type == "assistant":
		r.Words.Progress()
		r.Words.Forgive()
		if text := textOf(e.Message.Content); text != "" && e.ParentTool == "" {
			r.Final = text
		}
		return r.Step()
	case e.Type == "system" || e.Type == "user" || e.Type == "stream_event":
		r.Words.Neutral()
	}
	return process.Continue
}

func (r *reader) stderr(line []byte) process.Verdict {
	if strings.Contains(strings.ToLower(string(line)), tooManyTurns) {
		return r.Wrong(provider.TooManySteps(provider.Steps(r.Req.Pool)))
	}
	m := retrying.FindSubmatch(line)
	if m == nil {
		return process.Continue
	}
	r.Tell(string(line))
	if seconds, err := strconv.Atoi(string(m[1])); err == nil && float64(seconds) >= provider.LongWait.Seconds() {
		return process.Stop
	}
	return process.Continue
}

// retry waits for the line of stderr that says why; a second long wait without
// one is enough.
func (r *reader) retry(delayMS float64) process.Verdict {
	if delayMS < float64(provider.LongWait.Milliseconds()) {
		return process.Continue
	}
	if r.waits++; r.waits > 1 {
		return process.Stop
	}
	return process.Continue
}

// result reads the final event, whose usage is of the whole session.
func (r *reader) result(e *event) {
	r.Done = !e.IsError && e.Subtype == "success"
	r.Tell(e.Error.Message)
	if e.Result != "" && !e.IsError {
		r.Final = e.Result
	}
	if e.Usage != nil {
		r.totals = contract.Usage{InputTokens: provider.Tokens(e.Usage.Input), OutputTokens: provider.Tokens(e.Usage.Output), Known: true}
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
	return r.Follow.Report(provider.Since(r.Req, r.totals), r.totals)
}
