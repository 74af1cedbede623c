package codex

import (
	"bytes"
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

// lostSessions are what the program says of a session that it does not have.
var lostSessions = [][]byte{[]byte("no rollout found for thread id"), []byte("thread/resume failed")}

// maxNoNetwork is how many tries without a network are seen to the end of: the
// program itself never gives up.
const maxNoNetwork = 3

type reader struct {
	req       provider.Request
	about     provider.About
	home      string
	before    rollouts
	words     provider.Words
	session   string
	final     string
	totals    contract.Usage
	done      bool
	lost      bool
	fault     *provider.Fault
	steps     int
	noNetwork int
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	if stream == process.Stderr {
		for _, text := range lostSessions {
			r.lost = r.lost || bytes.Contains(line, text)
		}
		r.words.Stderr(line)
		return r.asked(line)
	}
	if truncated {
		r.words.Progress() // only the output of a command is that long
		return process.Continue
	}
	var e event
	if !provider.Decode(line, &e) {
		r.words.Stdout(line)
		return r.asked(line)
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
	switch e.Type {
	case "thread.started":
		r.session = e.ThreadID
		r.words.Neutral()
	case "turn.started", "item.started", "item.updated":
		r.words.Neutral()
	case "item.completed":
		return r.item(e)
	case "error":
		r.words.Event(line)
		return r.reconnects(e.Message)
	case "turn.failed":
		r.words.Event(line)
		r.done = false
		return process.Finished
	case "turn.completed":
		r.words.Event(line)
		r.done = true
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
		r.words.Neutral()
		return process.Continue
	case "agent_message":
		r.final = e.Item.Text
	}
	r.words.Progress()
	if r.steps++; r.steps > provider.Steps(r.req.Pool) {
		r.fault = provider.TooManySteps(provider.Steps(r.req.Pool))
		return process.Stop
	}
	return process.Continue
}

// Session is the thread of the conversation.
func (r *reader) Session() string { return r.session }

// Report adds to the output what the rollout files tell.
func (r *reader) Report() provider.Report {
	told := r.rollouts()
	for _, line := range told.lines {
		r.words.Event(line)
	}
	if told.completed {
		r.done = true
	}
	if !r.totals.Known {
		r.totals = told.total
	}
	req := r.req
	if r.before.total.Known { // newer than what an earlier launch reported, which may have been killed
		req.Before = r.before.total
	}
	return provider.Report{
		Usage: provider.Since(req, r.totals), Totals: r.totals, Session: r.session, Lost: r.lost && r.req.Session != "",
		Final: r.final, Done: r.done, Fault: r.fault, Odd: r.words.Odd(r.about), Said: r.words.Said(),
	}
}
