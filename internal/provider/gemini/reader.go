package gemini

import (
	"regexp"
	"strconv"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// event is the part of a line of the stream that is read here.
type event struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	Delta     bool   `json:"delta"`
	Status    string `json:"status"`
	Message   string `json:"message"`
	Error     struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Input  float64 `json:"input_tokens"`
		Output float64 `json:"output_tokens"`
	} `json:"stats"`
}

// retrying is how stderr announces a sleep.
var retrying = regexp.MustCompile(`Retrying after ([0-9]{1,15})(?:\.[0-9]+)?ms`)

// turnLimit is the error of a session that took too many turns.
const turnLimit = "FatalTurnLimitedError"

type reader struct {
	provider.Follow
	usage contract.Usage
	fresh bool // the next text begins a message
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	var e event
	if ok, verdict := r.Event(stream, line, truncated, &e); !ok {
		if stream == process.Stderr && sleeps(line) {
			return process.Stop
		}
		return verdict
	}
	switch e.Type {
	case "init":
		r.ID = e.SessionID
		r.Words.Neutral()
	case "message":
		r.message(&e)
	case "tool_use":
		r.worked()
		return r.Step()
	case "tool_result":
		r.Words.Neutral()
	case "error":
		r.Words.Event(line)
		r.Tell(e.Message)
	case "result":
		r.Words.Event(line)
		r.result(&e)
		return process.Finished
	}
	return process.Continue
}

// sleeps reports whether a line announces a long sleep.
func sleeps(line []byte) bool {
	m := retrying.FindSubmatch(line)
	if m == nil {
		return false
	}
	ms, err := strconv.ParseInt(string(m[1]), 10, 64)
	return err == nil && ms >= provider.LongWait.Milliseconds()
}

// worked notes progress: what stderr said before was survived.
func (r *reader) worked() {
	r.Words.Progress()
	r.Words.Forgive()
	r.fresh = true
}

func (r *reader) message(e *event) {
	if e.Role != "assistant" {
		r.Words.Neutral()
		return
	}
	if r.fresh || !e.Delta {
		r.Final = ""
	}
	r.worked()
	r.fresh = false
	r.Final += e.Content
}

func (r *reader) result(e *event) {
	r.Done = e.Status == "success"
	r.Tell(e.Error.Message)
	if e.Error.Type == turnLimit {
		r.Wrong(provider.TooManySteps(provider.Steps(r.Req.Pool)))
	}
	if e.Stats != nil {
		r.usage = contract.Usage{InputTokens: provider.Tokens(e.Stats.Input), OutputTokens: provider.Tokens(e.Stats.Output), Known: true}
	}
}

// Report is what the output told; stderr says more about limits than events do.
func (r *reader) Report() provider.Report {
	report := r.Follow.Report(r.usage, contract.Usage{})
	report.Said = append(append(r.Words.Errors(), r.Words.Events()...), r.Words.Plain()...)
	return report
}
