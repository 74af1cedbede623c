package provider

import (
	"bytes"

	"mendflow/internal/contract"
	"mendflow/internal/process"
)

// Follow is what readers of event streams have in common; an adapter's reader
// embeds it.
type Follow struct {
	Req   Request
	About About
	Words Words
	// LostSession are texts by which the program says that it does not have the session to resume.
	LostSession []string
	// ID is the program's session, Final its last message.
	ID, Final string
	// Told is what the program said last about an error.
	Told string
	// Done says that the turn ended well; Lost that a text of LostSession came.
	Done, Lost bool
	// Fault is the first thing that was found wrong.
	Fault *Fault
	steps int
}

// Event decodes a line of stdout that is an event. Any other line is taken care
// of here, with its verdict.
func (f *Follow) Event(stream process.Stream, line []byte, truncated bool, into any) (bool, process.Verdict) {
	switch {
	case stream == process.Stderr:
		f.Words.Stderr(line)
		f.Lose(line)
		return false, f.asked(line)
	case truncated:
		f.Words.Progress() // only messages and what tools printed are that long
		return false, process.Continue
	case Decode(line, into):
		return true, process.Continue
	}
	f.Words.Stdout(line)
	return false, f.asked(line)
}

func (f *Follow) asked(line []byte) process.Verdict {
	if fault := Asks(line); fault != nil {
		return f.Wrong(fault)
	}
	return process.Continue
}

// Lose looks for the texts of LostSession.
func (f *Follow) Lose(line []byte) {
	for _, text := range f.LostSession {
		f.Lost = f.Lost || bytes.Contains(line, []byte(text))
	}
}

// Tell notes what the program says about an error; an empty text changes nothing.
func (f *Follow) Tell(text string) {
	if text != "" {
		f.Told = text
	}
}

// Wrong records a fault and ends the launch.
func (f *Follow) Wrong(fault *Fault) process.Verdict {
	if f.Fault == nil {
		f.Fault = fault
	}
	return process.Stop
}

// Step counts a step of the model; the launch ends when there are too many.
func (f *Follow) Step() process.Verdict {
	if f.steps++; f.steps > Steps(f.Req.Pool) {
		return f.Wrong(TooManySteps(Steps(f.Req.Pool)))
	}
	return process.Continue
}

// Session is the program's session as far as it is known.
func (f *Follow) Session() string { return f.ID }

// Report makes the report of what was followed.
func (f *Follow) Report(used, totals contract.Usage) Report {
	if !used.Known {
		used = Uncertain(f.Req.Pool)
	}
	return Report{
		Usage: used, Totals: totals, Session: f.ID, Lost: f.Lost && f.Req.Session != "",
		Final: f.Final, Done: f.Done && f.Fault == nil, Fault: f.Fault, Told: f.Told, Odd: f.Words.Odd(f.About), Said: f.Words.Said(),
	}
}
