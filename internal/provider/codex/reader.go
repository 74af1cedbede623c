package codex

import (
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// event is the part of a line of the stream that is read here.
type event struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Item     struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage *usage `json:"usage"`
}

// usage counts cached input among the input and reasoning among the output.
type usage struct {
	Input  float64 `json:"input_tokens"`
	Output float64 `json:"output_tokens"`
}

func (u usage) counted() contract.Usage {
	return contract.Usage{InputTokens: provider.Tokens(u.Input), OutputTokens: provider.Tokens(u.Output), Known: true}
}

// Texts of the program.
const (
	reconnecting = "Reconnecting..."
	noNetwork    = "waiting for network"
)

// maxNoNetwork is how many tries without a network are seen to the end of: the
// program itself never gives up.
const maxNoNetwork = 3

type reader struct {
	provider.Follow
	home      string
	before    rollouts
	totals    contract.Usage
	noNetwork int
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	var e event
	if ok, verdict := r.Event(stream, line, truncated, &e); !ok {
		return verdict
	}
	switch e.Type {
	case "thread.started":
		r.ID = e.ThreadID
		r.Words.Neutral()
	case "turn.started", "item.started", "item.updated":
		r.Words.Neutral()
	case "item.completed":
		return r.item(&e)
	case "error":
		r.Words.Event(line)
		r.Tell(e.Message)
		return r.reconnects(e.Message)
	case "turn.failed":
		r.Words.Event(line)
		r.Tell(e.Error.Message)
		r.Done = false
		return process.Finished
	case "turn.completed":
		r.Words.Event(line)
		r.Done = true
		if e.Usage != nil {
			r.totals = e.Usage.counted()
		}
		return process.Finished
	}
	return process.Continue
}

// reconnects ends a launch that waits for the end of a limit, which the program
// does in silence and as long as the server says, or for a network.
func (r *reader) reconnects(message string) process.Verdict {
	switch {
	case !strings.HasPrefix(message, reconnecting):
	case strings.Contains(message, noNetwork):
		if r.noNetwork++; r.noNetwork >= maxNoNetwork {
			return process.Stop
		}
	case strings.Contains(message, "429") || strings.Contains(message, "rate limit"):
		return process.Stop
	}
	return process.Continue
}

// item counts what the model did.
func (r *reader) item(e *event) process.Verdict {
	switch e.Item.Type {
	case "error": // a warning
		r.Words.Neutral()
		return process.Continue
	case "agent_message":
		r.Final = e.Item.Text
	}
	r.Words.Progress()
	return r.Step()
}

// Report adds to the output what the rollout files tell.
func (r *reader) Report() provider.Report {
	told := r.rollouts()
	for _, line := range told.lines {
		r.Words.Event(line)
	}
	r.Done = r.Done || told.completed
	if !r.totals.Known {
		r.totals = told.total
	}
	req := r.Req
	if r.before.total.Known { // newer than what an earlier launch reported, which may have been killed
		req.Before = r.before.total
	}
	report := r.Follow.Report(provider.Since(req, r.totals), r.totals)
	report.Windows = told.windows
	return report
}
