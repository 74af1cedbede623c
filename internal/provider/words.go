package provider

import (
	"bytes"
	"fmt"
	"time"

	"mendflow/internal/quota"
)

// LongWait is the shortest internal sleep that ends a launch when the program
// announces it: our own waits survive restarts and hold no place.
const LongWait = 30 * time.Second

// keptBytes bounds what is kept of each kind of words; the last ones count.
const keptBytes = 128 << 10

// Words collects what a program said about errors and limits. The zero value is
// ready for use.
type Words struct {
	events, stderr, stdout kept
	seen                   int  // lines of any kind
	known                  int  // events that an adapter understood
	worked                 bool // progress was the last event
}

// Event keeps a line of JSON that tells of an error, a limit, a retry or the end.
func (w *Words) Event(line []byte) {
	w.seen++
	w.known++
	w.worked = false
	w.events.add(line)
}

// Progress notes that the model worked on, so that what was said before was
// survived.
func (w *Words) Progress() {
	w.seen++
	w.known++
	if !w.worked {
		w.worked = true
		w.events.add([]byte(`{"type":"assistant"}`))
	}
}

// Neutral notes an event that says nothing about errors.
func (w *Words) Neutral() {
	w.seen++
	w.known++
}

// Stderr keeps a line of stderr.
func (w *Words) Stderr(line []byte) { w.stderr.add(line) }

// Forgive forgets what stderr said, since the program went on.
func (w *Words) Forgive() { w.stderr = kept{} }

// Stdout keeps a line of stdout that is no event.
func (w *Words) Stdout(line []byte) {
	if len(bytes.TrimSpace(line)) > 0 {
		w.seen++
		w.stdout.add(line)
	}
}

// Events is what the event stream said.
func (w *Words) Events() []Statement { return w.events.statement(quota.StreamJSON) }

// Errors is what stderr said.
func (w *Words) Errors() []Statement { return w.stderr.statement(quota.Stderr) }

// Plain is what stdout said besides events.
func (w *Words) Plain() []Statement { return w.stdout.statement(quota.Stdout) }

// Said is everything: events first, then stderr, then the rest of stdout.
func (w *Words) Said() []Statement {
	return append(append(w.Events(), w.Errors()...), w.Plain()...)
}

// Odd says that nothing of the output was understood; empty otherwise.
func (w *Words) Odd(about About) string {
	if w.seen == 0 || w.known > 0 {
		return ""
	}
	return fmt.Sprintf("its output has a form that is not known (tested with %s %s)", about.Program, about.Tested)
}

// kept holds the last lines of a stream.
type kept struct {
	lines [][]byte
	size  int
}

func (k *kept) add(line []byte) {
	k.lines = append(k.lines, bytes.Clone(line))
	k.size += len(line) + 1
	for k.size > keptBytes && len(k.lines) > 1 {
		k.size -= len(k.lines[0]) + 1
		k.lines = k.lines[1:]
	}
}

func (k *kept) statement(channel quota.Channel) []Statement {
	if len(k.lines) == 0 {
		return nil
	}
	return []Statement{{Channel: channel, Text: bytes.Join(k.lines, []byte("\n"))}}
}
