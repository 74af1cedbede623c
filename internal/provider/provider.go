// Package provider is what Mendflow knows about the programs that do the work:
// how each is launched, how its output is read, how it is stopped. One adapter
// per program lives in a folder of its own; workercmd wires them. A new program
// is one new folder and one line of wiring.
//
//   - provider.go: the interface between adapters and the activity that launches.
//   - about.go, check.go: what an adapter says of its program, and how that is
//     compared with a pools file and with this machine.
//   - follow.go, words.go, event.go, question.go: what readers of event streams share.
//   - verdict.go: how a report is put to the classifier.
//   - prompt.go, block.go: what a worker is told, and a result in its last message.
//
// An adapter classifies nothing (internal/quota does), never sleeps and never
// retries: retries are durable and belong to the workflow. Retries and waits
// inside a program are turned off, bounded, or ended as soon as they are
// announced.
package provider

import (
	"errors"
	"fmt"
	"slices"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/quota"
)

// ErrUnknown says that no adapter is registered for a provider.
var ErrUnknown = errors.New("unknown provider")

// Request is one launch of a worker.
type Request struct {
	Pool       contract.Pool
	Node       string
	Prompt     string // text of the prompt
	PromptFile string // the same text as a file
	ResultFile string // where the worker delivers its result; its folder is writable
	Worktree   string
	Home       string   // the private home of workers on this host
	Folder     string   // for files of this launch; programs may read it
	Confined   bool     // the host's sandbox holds the program
	Session    string   // session to resume; empty: a new one
	Tokens     int      // cap of the attempt; 0: none
	Write      []string // globs of what the node may change; empty: everything
	Read       []string // paths and globs of what it is about
	// Before is what the session had used when its last launch ended, as its
	// report told in Totals. Known is false when nobody knows.
	Before contract.Usage
}

// Launch is a program to start. Exactly one of Argv and Shell is set.
type Launch struct {
	Argv     []string
	Shell    string
	Stdin    []byte   // then closed; nil: nothing to read
	Env      []string // NAME=value, replacing what the attempt's environment has under that name
	Folders  []string // made before the start
	Files    []File   // written before the start
	Writable []string // further folders the sandbox allows
	// OwnSandbox says that the program brings a sandbox that cannot run in ours.
	OwnSandbox bool
	// Interrupt says that the program wants INT, not TERM, as the first stop signal.
	Interrupt bool
}

// File is a file that a launch needs, readable by this user only.
type File struct {
	Path string
	Data []byte
}

// Statement is something that the program or its provider said, for the classifier.
type Statement struct {
	Channel quota.Channel
	Text    []byte
	Status  *int                // of one HTTP response; nil for other channels and when none came
	Headers map[string][]string // of one HTTP response
}

// Fault is something that the adapter itself found wrong with a launch.
type Fault struct {
	Text  string // one line, with the remedy
	Cause contract.Cause
	// OverAllowance says that the launch was ended at our own cap on tokens.
	OverAllowance bool
}

// Report is what an adapter read from the output of a launch that ended.
type Report struct {
	// Usage is of this launch alone; Known is false when the program did not tell.
	Usage contract.Usage
	// Totals is what the whole session used, where the program counts so.
	Totals  contract.Usage
	Session string
	// Lost says that the program does not know the session to resume.
	Lost bool
	// Final is the program's last message, where results of agents without a result file are looked for.
	Final string
	// Done says that the final event came and the turn ended well.
	Done bool
	// Fault, when it is set, is why the launch ended.
	Fault *Fault
	// Told is what the program said last about an error, in its own words.
	Told string
	// Odd says what was unexpected in the output; empty: nothing. It explains an end that nothing else does.
	Odd string
	// Said is what was told about limits and errors, the most telling first.
	Said []Statement
	// Windows are what the program told about the account's quota windows, the last word for each.
	Windows []contract.Window
}

// Reader follows the output of one launch line by line.
type Reader interface {
	// Line takes a line; truncated ones lack their end. The slice is valid during
	// the call only. Finished says that the final event came; Stop ends the
	// program at once: it announced a long wait, or it will not end by itself.
	Line(stream process.Stream, line []byte, truncated bool) process.Verdict
	// Session is the program's session as far as it is known; empty: not yet.
	Session() string
	// Report is asked once, after the program ended.
	Report() Report
}

// Provider is one adapter.
type Provider interface {
	// About describes the program.
	About() About
	// Build makes the launch; the error is one line that says what to change.
	Build(Request) (Launch, error)
	// Read starts reading a launch's output, before it is started.
	Read(Request) Reader
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
