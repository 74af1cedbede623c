// Package command adapts any program: the pool's command line, with
// placeholders, run in the worktree. What it says about limits is read from its
// last stderr lines by internal/quota.
package command

import (
	"fmt"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
)

// Provider is the adapter. The zero value is ready for use.
type Provider struct{}

var _ provider.Provider = Provider{}

// Build replaces the placeholders per argument: {prompt} {result} {worktree}
// {node} {model}. In a shell line they become quoted words, so that no text of
// a plan is ever read as shell.
func (Provider) Build(req provider.Request) (provider.Launch, error) {
	command := req.Pool.Command
	if command == nil {
		return provider.Launch{}, fmt.Errorf("build launch: pool %s has no command: add `command:` to it", req.Pool.ID)
	}
	values := []string{
		"{prompt}", req.PromptFile,
		"{result}", req.ResultFile,
		"{worktree}", req.Worktree,
		"{node}", req.Node,
		"{model}", req.Pool.Model,
	}
	if command.Shell != "" {
		return provider.Launch{Shell: strings.NewReplacer(quoted(values)...).Replace(command.Shell)}, nil
	}
	replace := strings.NewReplacer(values...)
	argv := make([]string, len(command.Argv))
	for i, word := range command.Argv {
		argv[i] = replace.Replace(word)
	}
	return provider.Launch{Argv: argv}, nil
}

// quoted wraps every value (not its placeholder) in single quotes.
func quoted(pairs []string) []string {
	out := make([]string, len(pairs))
	for i, s := range pairs {
		if i%2 == 1 {
			s = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
		out[i] = s
	}
	return out
}

// Read ignores the output: a plain command reports nothing there.
func (Provider) Read(req provider.Request) provider.Reader { return reader{req.Pool} }

// OptionSpeaks names the provider whose limit texts the command prints.
const OptionSpeaks = "speaks"

// About describes any program.
func (Provider) About() provider.About {
	return provider.About{Options: []provider.Option{{
		Name: OptionSpeaks, Help: "whose limit texts its last stderr lines are",
	}}}
}

type reader struct{ pool contract.Pool }

func (reader) Line(process.Stream, []byte, bool) process.Verdict { return process.Continue }

func (reader) Session() string { return "" }

// Report tells that the command cost nothing we could know of.
func (r reader) Report() provider.Report { return provider.Report{Usage: provider.Uncertain(r.pool)} }
