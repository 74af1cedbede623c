// Package openai is the provider for any endpoint that speaks OpenAI's chat
// completions: the vendor's own, a gateway, a model on this machine. There is no
// program to install: Mendflow's worker binary, executed again, is the program
// (see [RunIfAsked]), so that watchdogs, sandbox, masking and log hold for it as
// for all others.
//
//   - openai.go, reader.go: the adapter.
//   - protocol.go: what goes in on stdin and comes out as JSON lines on stdout.
//   - program.go, chat.go: the program and its requests, by the official client.
//   - loop.go, single.go: a short loop with tools, or one answer by JSON schema
//     with a ladder down to plain JSON.
//   - tree.go: reading and writing inside the worktree, every path checked.
//
// It runs no commands: the node's verification is run by Mendflow anyway. It has
// no sessions: a continued attempt is told what its tree holds.
package openai

import (
	"encoding/json"
	"fmt"
	"os"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// Provider is the adapter. The zero value executes the running binary.
type Provider struct {
	// Executable is the binary that calls RunIfAsked; empty: the running one.
	Executable string
}

var _ provider.Provider = Provider{}

// Names and values of options of this adapter alone.
const (
	optionMode = "mode"

	modeTools  = "tools"
	modeSingle = "single"
)

// About describes the program.
func (Provider) About() provider.About {
	return provider.About{
		Agent: true, Speaks: "openai",
		Keys: []string{"OPENAI_API_KEY"},
		Options: []provider.Option{
			provider.StepsOption(), provider.BaseURLOption(), provider.KeyOption(),
			{Name: optionMode, Help: "tools: read and write by tool calls; single: one answer", Check: provider.OneOf(modeTools, modeSingle)},
		},
	}
}

// Build makes the launch.
func (p Provider) Build(req provider.Request) (provider.Launch, error) {
	if req.Pool.Model == "" {
		return provider.Launch{}, fmt.Errorf("build launch: pool %s has no model: add `model:` to it", req.Pool.ID)
	}
	exe := p.Executable
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return provider.Launch{}, fmt.Errorf("find own program: %w", err)
		}
	}
	mode := req.Pool.Options[optionMode]
	if mode == "" {
		mode = modeTools
	}
	data, err := json.Marshal(job{
		Prompt: req.Prompt, Model: req.Pool.Model, BaseURL: req.Pool.Options[provider.OptionBaseURL], Key: p.About().Key(req.Pool),
		Mode: mode, Steps: provider.Steps(req.Pool), ContextTokens: req.Pool.ContextTokens, OutputTokens: req.Pool.OutputTokens,
		Worktree: req.Worktree, Write: req.Write, Read: req.Read,
	})
	if err != nil {
		return provider.Launch{}, fmt.Errorf("write job: %w", err)
	}
	return provider.Launch{Argv: []string{exe, programArgument}, Stdin: data}, nil
}

// Read starts reading a launch's output.
func (p Provider) Read(req provider.Request) provider.Reader {
	return &reader{Follow: provider.Follow{Req: req, About: p.About()}}
}

type reader struct {
	provider.Follow
	usage contract.Usage
	http  []provider.Statement
}

// Line reads one line of output.
func (r *reader) Line(stream process.Stream, line []byte, truncated bool) process.Verdict {
	var l outLine
	if ok, verdict := r.Event(stream, line, truncated, &l); !ok {
		return verdict
	}
	switch l.Type {
	case lineStart, lineTool:
		r.Words.Progress()
	case lineStep:
		return r.step(&l)
	case lineResponse:
		r.Words.Neutral()
		status := l.Status
		statement := provider.Statement{Channel: quotaHTTP, Text: []byte(l.Body), Headers: l.Headers}
		if status != 0 {
			statement.Status = &status
		}
		r.http = append(r.http, statement)
		r.Tell(refusal(status, l.Body))
	case lineFault:
		r.Words.Neutral()
		return r.Wrong(&provider.Fault{Text: l.Message, Cause: contract.CauseWork})
	case lineResult:
		r.Words.Event(line)
		r.Done, r.Final = true, l.Message
		return process.Finished
	}
	return process.Continue
}

func (r *reader) step(l *outLine) process.Verdict {
	r.Words.Progress()
	if l.Usage != nil {
		r.usage.Known = true
		r.usage.InputTokens += max(0, l.Usage.Input)
		r.usage.OutputTokens += max(0, l.Usage.Output)
	}
	if most := r.Req.Tokens; most > 0 && r.usage.InputTokens+r.usage.OutputTokens > int64(most) {
		return r.Wrong(provider.TooManyTokens(most))
	}
	return r.Step()
}

// Report is what the output told; a refused request says most.
func (r *reader) Report() provider.Report {
	report := r.Follow.Report(r.usage, contract.Usage{})
	report.Said = append(r.http, report.Said...)
	return report
}

// refusal is what a response says in words.
func refusal(status int, body string) string {
	var b struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(body), &b) == nil && b.Error.Message != "" {
		body = b.Error.Message
	}
	if status == 0 {
		return body
	}
	return fmt.Sprintf("status %d: %s", status, body)
}
