package gate

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"mendflow/internal/contract"
)

// withJSON returns the argv to start for a command, with -json added where it is
// a plain `go test`, and whether the output is then an event stream.
func withJSON(c contract.GateCommand) (argv []string, events bool) {
	words := program(c.Command)
	if len(words) < 2 || path.Base(words[0]) != "go" || words[1] != "test" {
		return c.Command.Argv, false
	}
	for _, w := range words[2:] {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if w == "-args" || w == "--args" {
			break // what follows belongs to the test binary
		}
		if strings.HasPrefix(w, "-") && slices.Contains([]string{"json", "c", "exec", "o", "n"}, name) {
			return c.Command.Argv, false
		}
	}
	at := len(c.Command.Argv) - len(words) + 2
	return slices.Insert(slices.Clone(c.Command.Argv), at, "-json"), true
}

// testEvent is one line of `go test -json` (go doc test2json; build events since Go 1.24).
type testEvent struct {
	Action      string
	ImportPath  string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// maxTestOutput bounds what is kept of one test's output until it is known whether it fails.
const maxTestOutput = 256 << 10

// testReader turns the event stream of `go test -json` into the text that `go test`
// prints without it, and collects the ids of what failed. It is an io.Writer for
// the whole output: lines that are no events pass through.
type testReader struct {
	lines    lineSplitter
	out      io.Writer
	err      error // of out; the first one
	verbose  bool  // the argv says -v: nothing is left out
	pending  map[[2]string]*bytes.Buffer
	order    [][2]string // of pending, for unfinished tests
	builds   map[string]*strings.Builder
	failed   map[string]bool // packages with a failed test
	failures Failures
	root     string
	dir      string
}

func newTestReader(out io.Writer, verbose bool, root, dir string) *testReader {
	r := &testReader{
		out: out, verbose: verbose, root: root, dir: dir,
		pending: map[[2]string]*bytes.Buffer{}, builds: map[string]*strings.Builder{}, failed: map[string]bool{},
	}
	r.lines.line = r.line
	return r
}

// Write reads a part of the stream; it returns the error of the underlying writer.
func (r *testReader) Write(p []byte) (int, error) {
	r.lines.Write(p)
	return len(p), r.err
}

// finish prints what unfinished tests had said and returns the ids.
func (r *testReader) finish() (Failures, error) {
	r.lines.flush()
	for _, key := range r.order {
		if buf := r.pending[key]; buf != nil {
			r.print(buf.Bytes())
		}
	}
	return r.failures.settle(), r.err
}

func (r *testReader) print(p []byte) {
	if r.err == nil {
		_, r.err = r.out.Write(p)
	}
}

func (r *testReader) line(line []byte) {
	var e testEvent
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
		r.print(line)
		return
	}
	switch e.Action {
	case "build-output":
		r.print([]byte(e.Output))
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
	case "build-fail":
		if b := r.builds[e.ImportPath]; b != nil {
			f := Findings(b.String(), r.root, r.dir)
			r.failures.IDs = append(r.failures.IDs, f.IDs...)
			r.failures.Blind = append(r.failures.Blind, f.Blind...)
		}
	case "output":
		r.output(e)
	case "pass", "skip":
		r.forget(e, r.verbose)
	case "fail":
		r.fail(e)
	}
}

func (r *testReader) output(e testEvent) {
	if strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ") {
		r.failures.Blind = append(r.failures.Blind, e.Package)
	}
	if e.Test == "" {
		if r.verbose || e.Output != "PASS\n" {
			r.print([]byte(e.Output))
		}
		return
	}
	if !r.verbose && chatter(e.Output) {
		return
	}
	key := [2]string{e.Package, e.Test}
	buf := r.pending[key]
	if buf == nil {
		buf = &bytes.Buffer{}
		r.pending[key] = buf
		r.order = append(r.order, key)
	}
	buf.WriteString(e.Output)
	if extra := buf.Len() - maxTestOutput; extra > 0 {
		buf.Next(extra)
	}
}

// chatter matches the lines that only -v prints.
func chatter(line string) bool {
	for _, prefix := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func (r *testReader) forget(e testEvent, show bool) {
	key := [2]string{e.Package, e.Test}
	if buf := r.pending[key]; buf != nil {
		if show {
			r.print(buf.Bytes())
		}
		delete(r.pending, key)
		r.order = slices.DeleteFunc(r.order, func(k [2]string) bool { return k == key })
	}
}

func (r *testReader) fail(e testEvent) {
	r.forget(e, true)
	if e.Test != "" {
		r.failures.IDs = append(r.failures.IDs, e.Package+": "+e.Test)
		r.failed[e.Package] = true
		return
	}
	if e.FailedBuild != "" {
		r.failures.IDs = append(r.failures.IDs, e.Package+": build failed")
		r.failures.Blind = append(r.failures.Blind, e.Package)
		return
	}
	if !r.failed[e.Package] {
		r.failures.IDs = append(r.failures.IDs, e.Package+": failed")
		r.failures.Blind = append(r.failures.Blind, e.Package)
	}
}
