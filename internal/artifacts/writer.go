package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"gocloud.dev/blob"

	"mendflow/internal/redact"
)

// Writer writes one artifact as a stream, masked. The artifact exists once
// [Writer.Finish] has succeeded, and not before.
type Writer struct {
	key    string
	blob   *blob.Writer
	cancel context.CancelFunc
	masked io.WriteCloser // in front of the counting

	sum  hash.Hash
	size int64
	tail tail
	err  error
	done bool
	ref  Ref
}

// Writer returns a writer for key that masks with secrets; nil masks nothing.
// The caller ends it with Finish, Close or Abort. When ctx ends before that,
// nothing is kept.
func (s *Store) Writer(ctx context.Context, key string, secrets *redact.Masker) (*Writer, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	// The type is given, since a writer that has to guess it keeps the first bytes.
	b, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		cancel()
		return nil, failure("write", key, err)
	}
	if secrets == nil {
		secrets = redact.Off()
	}
	w := &Writer{key: key, blob: b, cancel: cancel, sum: sha256.New()}
	w.masked = secrets.Writer(counter{w})
	return w, nil
}

// Write takes the next part of the content. After an error the artifact is lost.
func (w *Writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, failure("write", w.key, io.ErrClosedPipe)
	}
	n, err := w.masked.Write(p)
	return n, w.keep(err)
}

// keep remembers the first error, translated.
func (w *Writer) keep(err error) error {
	if err != nil && w.err == nil {
		w.err = failure("write", w.key, err)
	}
	return w.err
}

// counter sees what is stored.
type counter struct{ *Writer }

func (c counter) Write(p []byte) (int, error) {
	n, err := c.blob.Write(p)
	c.sum.Write(p[:n])
	c.size += int64(n)
	c.tail.add(p[:n])
	return n, err
}

// Finish makes the artifact visible and returns its reference. Calling it again
// returns the same.
func (w *Writer) Finish() (Ref, error) {
	if w.done {
		return w.ref, w.err
	}
	defer w.cancel()
	w.done = true
	if w.keep(w.masked.Close()) != nil {
		w.cancel() // before closing, so that the incomplete content is dropped
		_ = w.blob.Close()
		return Ref{}, w.err
	}
	if w.keep(w.blob.Close()) != nil {
		return Ref{}, w.err
	}
	w.ref = Ref{URI: w.key, SHA256: hex.EncodeToString(w.sum.Sum(nil)), Bytes: w.size, Tail: w.tail.String()}
	return w.ref, nil
}

// Close is Finish for callers that have no use for the reference.
func (w *Writer) Close() error {
	_, err := w.Finish()
	return err
}

// Abort drops the content. After Finish it does nothing.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.err = failure("write", w.key, errAborted)
	w.cancel()
	_ = w.blob.Close()
}

var errAborted = errors.New("aborted")
