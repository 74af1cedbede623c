package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"mendflow/internal/plan"
)

// RunIfAsked runs the program and exits when this process was started as it;
// otherwise it returns at once. Binaries that serve the provider call it first
// thing in main.
func RunIfAsked() {
	if len(os.Args) != 2 || os.Args[1] != programArgument {
		return
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "openai:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// maxJob bounds what is read from stdin.
const maxJob = 64 << 20

// errTold says that stdout tells already what went wrong.
var errTold = errors.New("the request failed")

// run carries out the job on in and tells about it on out.
func run(ctx context.Context, in io.Reader, out io.Writer, getenv func(string) string) error {
	var j job
	data, err := io.ReadAll(io.LimitReader(in, maxJob))
	if err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	files, err := openTree(j.Worktree, plan.CompileScope(j.Write, false))
	if err != nil {
		return err
	}
	defer files.close()
	t := &teller{out: out}
	s := &session{job: j, tell: t.line, files: files, client: newClient(j, getenv)}
	t.line(outLine{Type: lineStart, Name: j.Model, Message: j.Mode})
	message, err := s.work(ctx)
	if err != nil {
		return s.failed(err)
	}
	t.line(outLine{Type: lineResult, Message: message})
	return t.err
}

// teller writes lines; the first error is kept.
type teller struct {
	out io.Writer
	err error
}

func (t *teller) line(l outLine) {
	data, err := json.Marshal(l)
	if err == nil {
		_, err = t.out.Write(append(data, '\n'))
	}
	if t.err == nil {
		t.err = err
	}
}

// faultError is an end that another try of the same kind would not mend.
type faultError struct{ text string }

func (e *faultError) Error() string { return e.text }

// failed tells why the session has no result.
func (s *session) failed(err error) error {
	var refused *refusedError
	var fault *faultError
	switch {
	case errors.As(err, &refused):
		s.tell(outLine{Type: lineResponse, Status: refused.status, Headers: refused.headers, Body: refused.body})
		return errTold
	case errors.As(err, &fault):
		s.tell(outLine{Type: lineFault, Message: fault.text})
		return errTold
	}
	return err
}

// session is one life of the program.
type session struct {
	job    job
	tell   func(outLine)
	files  *tree
	client client
}

// work goes from the best way that the endpoint knows to the plainest.
func (s *session) work(ctx context.Context) (string, error) {
	if s.job.Mode == modeTools {
		message, err := s.loop(ctx)
		if !unsupported(err, toolWords) {
			return message, err
		}
	}
	return s.single(ctx)
}
