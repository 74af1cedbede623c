package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mendflow/internal/redact"
)

// capture reads what a program prints. Both streams are read at once; what they
// have in common (the combined output, the line callback) is serialised.
type capture struct {
	spec *Spec

	mu        sync.Mutex
	output    *capped
	truncated int
	rawErr    error

	latest   atomic.Int64 // when the program last printed, in nanoseconds since began
	began    time.Time
	finished latch // OnLine said Finished
	stop     latch // OnLine said Stop

	streams []*streamReader
	readers sync.WaitGroup
	// feeder ends the writing of the input; nil without input.
	feeder func()
}

// latch is an event that happens once.
type latch struct {
	once sync.Once
	ch   chan struct{}
}

func newLatch() latch { return latch{ch: make(chan struct{})} }
func (l *latch) set() { l.once.Do(func() { close(l.ch) }) }

func newCapture(spec *Spec) *capture {
	return &capture{
		spec:     spec,
		output:   newCapped(spec.Output, orDefault(spec.TotalCap, DefaultTotalCap)),
		began:    time.Now(),
		finished: newLatch(),
		stop:     newLatch(),
	}
}

// open makes the pipe of a stream and starts to read it. The returned end is
// for the program; the caller closes it once the program has it.
func (c *capture) open(stream Stream) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe for %s: %w", stream, err)
	}
	s := &streamReader{capture: c, pipe: r, tail: tail{limit: TailBytes}}
	c.streams = append(c.streams, s)
	c.readers.Go(func() { s.read(stream) })
	return w, nil
}

// drain waits until what was printed has been read. When the program is gone,
// somebody else may still hold its output open; they are not waited for.
func (c *capture) drain() {
	for _, s := range c.streams {
		s.draining.Store(true)
		_ = s.pipe.SetReadDeadline(time.Now())
	}
	c.readers.Wait()
	c.output.close()
	if c.feeder != nil {
		c.feeder()
	}
}

// report fills in what the output says about the program.
func (c *capture) report(r *Result) {
	r.StdoutTail, r.StderrTail = c.streams[0].tail.String(), c.streams[1].tail.String()
	r.LastStderrLines = lastLines(r.StderrTail, TailLines)
	r.TruncatedLines, r.DroppedBytes = c.truncated, c.output.dropped
}

func (c *capture) err() error {
	if err := errors.Join(c.output.err, c.rawErr); err != nil {
		return &OutputError{Err: err}
	}
	return nil
}

func (c *capture) quietFor() time.Duration {
	return time.Since(c.began) - time.Duration(c.latest.Load())
}

func (c *capture) touch() { c.latest.Store(int64(time.Since(c.began))) }

func (c *capture) line(stream Stream, line []byte, cut int64, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut > 0 {
		c.truncated++
	}
	c.output.write(line)
	if cut > 0 {
		c.output.write(fmt.Appendf(nil, " [%d bytes cut]", cut))
	}
	if ended || cut > 0 {
		c.output.write([]byte{'\n'})
	}
	if c.spec.OnLine == nil {
		return
	}
	switch c.spec.OnLine(stream, line, cut > 0) {
	case Finished:
		c.finished.set()
	case Stop:
		c.stop.set()
	case Continue:
	}
}

// streamReader reads one stream.
type streamReader struct {
	capture  *capture
	pipe     *os.File
	draining atomic.Bool
	tail     tail
}

const (
	readSize = 64 << 10
	// drainQuiet is how long a pipe must be silent to count as drained, and
	// drainMax the most that is read from it then: the size of the largest pipe.
	drainQuiet = 100 * time.Millisecond
	drainMax   = 1 << 20
)

func (s *streamReader) read(stream Stream) {
	defer func() { _ = s.pipe.Close() }()
	if stream == Stdout && s.capture.spec.Stdout != nil {
		s.copy(s.raw)
		return
	}
	lines := &lineSplitter{
		limit: orDefault(s.capture.spec.LineCap, DefaultLineCap),
		emit: func(line []byte, cut int64, ended bool) {
			s.tail.add(line)
			if ended || cut > 0 {
				s.tail.add([]byte{'\n'})
			}
			s.capture.line(stream, line, cut, ended)
		},
	}
	secrets := s.capture.spec.Secrets
	if secrets == nil {
		secrets = knownSecrets()
	}
	masked := secrets.Writer(lines)
	s.copy(func(p []byte) { _, _ = masked.Write(p) }) // a lineSplitter does not fail
	_ = masked.Close()
	lines.close()
}

var knownSecrets = sync.OnceValue(func() *redact.Masker { return redact.NewMasker(nil) })

// raw passes data on unchanged; a destination that fails ends the program.
func (s *streamReader) raw(p []byte) {
	c := s.capture
	if c.rawErr != nil {
		return
	}
	if _, c.rawErr = c.spec.Stdout.Write(p); c.rawErr != nil {
		c.stop.set()
	}
}

func (s *streamReader) copy(take func([]byte)) {
	buf := make([]byte, readSize)
	drained := 0
	for {
		n, err := s.pipe.Read(buf)
		if n > 0 {
			s.capture.touch()
			take(buf[:n])
			s.capture.touch() // the time that we took is not the program's silence
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && drained == 0:
			drained = 1
		default: // end of file, silence while draining, or a broken pipe
			return
		}
		if !s.draining.Load() {
			continue
		}
		if drained += n; drained > drainMax {
			return
		}
		_ = s.pipe.SetReadDeadline(time.Now().Add(drainQuiet))
	}
}

// feed writes the input of the program and closes it.
func feed(w io.WriteCloser, input []byte) {
	_, _ = w.Write(input) // a program need not read its input
	_ = w.Close()
}
