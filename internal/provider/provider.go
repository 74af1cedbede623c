// Package provider is what Mendflow knows about the programs that do the work:
// how each is launched, how its output is read, how it is stopped. One adapter
// per program lives in a folder of its own; workercmd wires them.
//
// An adapter classifies nothing (internal/quota does), never sleeps and never
// retries: retries are durable and belong to the workflow.
package provider

import (
	"errors"
	"fmt"
	"slices"

	"mendflow/internal/contract"
)

// ErrUnknown says that no adapter is registered for a provider.
var ErrUnknown = errors.New("unknown provider")

// Request is one launch of a worker.
type Request struct {
	Pool       contract.Pool
	Node       string
	Prompt     string // text of the prompt
	PromptFile string // the same text as a file
	ResultFile string // where the worker delivers its result
	Worktree   string
	Session    string // session to resume; empty: a new one
	Tokens     int    // cap to hand over; 0: none
}

// Launch is a program to start. Exactly one of Argv and Shell is set.
type Launch struct {
	Argv     []string
	Shell    string
	Stdin    []byte   // then closed; nil: nothing to read
	Env      []string // NAME=value, added to the attempt's environment
	Writable []string // further folders the sandbox allows
	// Interrupt says that the program wants INT, not TERM, as the first stop signal.
	Interrupt bool
}

// Report is what an adapter read from the output of a launch that ended.
type Report struct {
	Usage   contract.Usage
	Session string
	// Final is the program's last message, where results of agents without a result file are looked for.
	Final string
}

// Reader follows the output of one launch line by line.
type Reader interface {
	// Line takes a line of stdout or stderr; truncated ones lack their end.
	Line(stderr bool, line []byte, truncated bool)
	// Report is asked once, after the program ended.
	Report() Report
}

// Provider is one adapter.
type Provider interface {
	// Build makes the launch; the error is one line that says what to change.
	Build(Request) (Launch, error)
	// Read starts reading a launch's output.
	Read(Request) Reader
	// Agent reports whether the program is an agent, which must deliver a result
	// (a plain command may just exit 0).
	Agent() bool
}

// Registry maps provider names to adapters. The zero value knows none.
type Registry struct {
	adapters map[contract.Provider]Provider
}

// Register adds an adapter under a name; the last one wins.
func (r *Registry) Register(name contract.Provider, adapter Provider) {
	if r.adapters == nil {
		r.adapters = make(map[contract.Provider]Provider)
	}
	r.adapters[name] = adapter
}

// Lookup returns the adapter, or ErrUnknown with the names that are there.
func (r *Registry) Lookup(name contract.Provider) (Provider, error) {
	if adapter, ok := r.adapters[name]; ok {
		return adapter, nil
	}
	return nil, fmt.Errorf("find provider %q: %w; this worker has %v", name, ErrUnknown, r.Names())
}

// Names lists the registered providers in order.
func (r *Registry) Names() []contract.Provider {
	names := make([]contract.Provider, 0, len(r.adapters))
	for name := range r.adapters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
