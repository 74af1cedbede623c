package opencode

import (
	"bytes"
	"strconv"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// event is the part of a line of the stream that is read here.
type event struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Error     struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
	Part struct {
		Text   string  `json:"text"`
		Reason string  `json:"reason"`
		Cost   float64 `json:"cost"`
		Tokens struct {
			Input     float64 `json:"input"`
			Output    float64 `json:"output"`
			Reasoning float64 `json:"reasoning"`
			Cache     struct {
				Read  float64 `json:"read"`
				Write float64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
}

// retries marks the line of the program's log that is all it says of a failed
// request before it waits and tries again.
var retries = []byte(`message="stream error"`)

// maxCut is how many steps in a row may end for no reason: the program starts
// another one each time, for ever.
const maxCut = 3

type reader struct {
	provider.Follow
	usage contract.Usage
	cut   int
	fresh bool // the next text begins a message
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	if stream == process.Stderr && bytes.Contains(line, retries) {
		r.retry(line)
		return process.Stop
	}
	var e event
	if ok, verdict := r.Event(stream, line, truncated, &e); !ok {
		return verdict
	}
	if e.SessionID != "" {
		r.ID = e.SessionID
	}
	switch e.Type {
	case "step_start":
		r.Words.Neutral()
		r.Done, r.fresh = false, true
		return r.Step()
	case "text":
		r.Words.Progress()
		if r.fresh {
			r.Final, r.fresh = "", false
		}
		r.Final += e.Part.Text
	case "tool_use":
		r.Words.Progress()
	case "step_finish":
		return r.finish(&e, line)
	case "error":
		r.Words.Event(line)
		r.Tell(e.Error.Name)
		r.Tell(e.Error.Data.Message)
		r.Done = false
	}
	return process.Continue
}

// retry takes what a line of the log says, and not the ids and times around it,
// among which anything may stand.
func (r *reader) retry(line []byte) {
	said := field(line, "error.error=")
	if said == "" {
		said = string(line)
	}
	r.Words.Stderr([]byte(said))
	r.Tell(said)
	if r.ID == "" { // no event names it before the first answer
		r.ID = field(line, "session.id=")
	}
}

// field reads the value of a name in a line of the log (logfmt).
func field(line []byte, name string) string {
	_, rest, _ := bytes.Cut(line, []byte(" "+name))
	if quoted, err := strconv.QuotedPrefix(string(rest)); err == nil {
		value, err := strconv.Unquote(quoted)
		if err == nil {
			return value
		}
	}
	value, _, _ := bytes.Cut(rest, []byte(" "))
	return string(value)
}

// finish adds up a step.
func (r *reader) finish(e *event, line []byte) process.Verdict {
	t := e.Part.Tokens
	r.usage.Known = true
	r.usage.InputTokens += provider.Tokens(t.Input + t.Cache.Read + t.Cache.Write)
	r.usage.OutputTokens += provider.Tokens(t.Output + t.Reasoning)
	r.usage.USDMicros += provider.Micros(e.Part.Cost)
	switch e.Part.Reason {
	case "stop":
		r.Words.Event(line)
		r.Done, r.cut = true, 0
	case "tool-calls":
		r.Words.Progress()
		r.cut = 0
	case "length":
		r.Words.Event(line)
		r.Wrong(&provider.Fault{
			Text:  "the model's answer was cut at its length limit: raise the pool's `output_tokens`, or give the node a smaller task",
			Cause: contract.CauseWork,
		})
	default:
		r.Words.Event(line)
		if r.cut++; r.cut >= maxCut {
			return r.Wrong(&provider.Fault{Text: "the model's answer broke off, again and again", Cause: contract.CauseProvider})
		}
	}
	if most := r.Req.Tokens; most > 0 && r.usage.InputTokens+r.usage.OutputTokens > int64(most) && !r.Done {
		return r.Wrong(provider.TooManyTokens(most))
	}
	return process.Continue
}

// Report is what the output told.
func (r *reader) Report() provider.Report { return r.Follow.Report(r.usage, contract.Usage{}) }
