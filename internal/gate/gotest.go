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

// maxTestOutput bounds what is kept of the output of a test, and of a package,
// until it is known what becomes of it.
const maxTestOutput = 512 << 10

// testReader turns the event stream of `go test -json` into the text that `go test`
// prints without it, package by package, and collects the ids of what failed. It is
// an io.Writer for the whole output: lines that are no events pass through.
type testReader struct {
	lines    lineSplitter
	out      io.Writer
	err      error // of out; the first one
	verbose  bool  // the argv says -v: nothing is left out
	tests    held  // by package and test
	packages held
	builds   map[string]*strings.Builder
	failed   map[string]bool // packages with a failed test
	failures Failures
	root     string
	dir      string
}

func newTestReader(out io.Writer, verbose bool, root, dir string) *testReader {
	r := &testReader{out: out, verbose: verbose, root: root, dir: dir, builds: map[string]*strings.Builder{}, failed: map[string]bool{}}
	r.lines.line = r.line
	return r
}

// held keeps the ends of several texts until they are taken.
type held struct {
	keys  []string // in the order in which they began
	texts map[string]*bytes.Buffer
}

func (h *held) add(key string, text []byte) {
	if h.texts == nil {
		h.texts = map[string]*bytes.Buffer{}
	}
	buf := h.texts[key]
	if buf == nil {
		buf = &bytes.Buffer{}
		h.texts[key] = buf
		h.keys = append(h.keys, key)
	}
	buf.Write(text)
	if extra := buf.Len() - maxTestOutput; extra > 0 {
		buf.Next(extra)
	}
}

// take removes a text and returns it; nil when there is none.
func (h *held) take(key string) []byte {
	buf := h.texts[key]
	if buf == nil {
		return nil
	}
	delete(h.texts, key)
	h.keys = slices.DeleteFunc(h.keys, func(k string) bool { return k == key })
	return buf.Bytes()
}

func testKey(e testEvent) string { return e.Package + "\x00" + e.Test }

// Write reads a part of the stream; it returns the error of the underlying writer.
func (r *testReader) Write(p []byte) (int, error) {
	r.lines.Write(p)
	return len(p), r.err
}

// finish prints what unfinished tests and packages had said and returns the ids.
func (r *testReader) finish() (Failures, error) {
	r.lines.flush()
	for _, key := range slices.Clone(r.tests.keys) {
		pkg, _, _ := strings.Cut(key, "\x00")
		r.packages.add(pkg, r.tests.take(key))
	}
	for _, key := range slices.Clone(r.packages.keys) {
		r.print(r.packages.take(key))
	}
	return r.failures.settle(), r.err
}

func (r *testReader) print(p []byte) {
	if r.err == nil && len(p) > 0 {
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
		r.end(e, r.verbose)
	case "fail":
		r.end(e, true)
		r.fail(e)
	}
}

func (r *testReader) output(e testEvent) {
	if strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ") {
		r.failures.Blind = append(r.failures.Blind, e.Package)
	}
	switch {
	case e.Test == "" && (r.verbose || e.Output != "PASS\n"):
		r.packages.add(e.Package, []byte(e.Output))
	case e.Test != "" && (r.verbose || !chatter(e.Output)):
		r.tests.add(testKey(e), []byte(e.Output))
	}
}

// end is the end of a test, whose output then belongs to its package if it is
// shown, or of a package, which is then printed.
func (r *testReader) end(e testEvent, show bool) {
	if e.Test == "" {
		r.print(r.packages.take(e.Package))
		return
	}
	if text := r.tests.take(testKey(e)); show && text != nil {
		r.packages.add(e.Package, text)
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

func (r *testReader) fail(e testEvent) {
	switch {
	case e.Test != "":
		r.failures.IDs = append(r.failures.IDs, e.Package+": "+e.Test)
		r.failed[e.Package] = true
	case e.FailedBuild != "":
		r.failures.IDs = append(r.failures.IDs, e.Package+": build failed")
		r.failures.Blind = append(r.failures.Blind, e.Package)
	case !r.failed[e.Package]:
		r.failures.IDs = append(r.failures.IDs, e.Package+": failed")
		r.failures.Blind = append(r.failures.Blind, e.Package)
	}
}
