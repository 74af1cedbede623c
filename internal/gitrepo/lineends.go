package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// lineEndLimit is the size up to which a changed file is compared with its base for line ends.
const lineEndLimit = 4 << 20

// lfsPointer starts the text that stands for a file of git-lfs.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// normalise looks at changed text files whose line ends a tool rewrote. Outside the scope a file that
// differs in nothing else is no edit. Where there is an edit and the base has one kind of line end,
// the committed file keeps that kind, so that the diff shows the edit and merges.
func (c *collector) normalise(ctx context.Context) error {
	candidate := func(ch Change) bool {
		return ch.Kind == Modified && !ch.Binary && ch.oldMode != modeLink && ch.Size <= lineEndLimit
	}
	var blobs []string
	for _, ch := range c.work.Changes {
		if candidate(ch) {
			blobs = append(blobs, ch.oldBlob)
		}
	}
	bases, err := c.w.mirror.readBlobs(ctx, blobs)
	if err != nil {
		return err
	}
	kept := c.work.Changes[:0]
	for _, ch := range c.work.Changes {
		if candidate(ch) {
			keep, err := c.normaliseOne(&ch, bases[ch.oldBlob])
			if err != nil {
				return err
			}
			if !keep {
				c.work.EOLOnly = append(c.work.EOLOnly, ch.Path)
				continue
			}
		}
		kept = append(kept, ch)
	}
	c.work.Changes = slices.Clip(kept)
	return nil
}

func (c *collector) normaliseOne(ch *Change, base []byte) (keep bool, err error) {
	now, err := readHead(c.root, ch.Path, lineEndLimit+1)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", ch.Path, err)
	}
	if bytes.Equal(now, base) {
		if ch.oldMode != ch.newMode {
			ch.Kind = ModeOnly
		}
		return true, nil
	}
	wanted := lineEnd(base)
	if wanted == "" || wanted == lineEnd(now) || bytes.HasPrefix(base, []byte(lfsPointer)) || bytes.IndexByte(now, 0) >= 0 {
		return true, nil
	}
	text := bytes.ReplaceAll(now, []byte("\r\n"), []byte("\n"))
	if bytes.Equal(text, bytes.ReplaceAll(base, []byte("\r\n"), []byte("\n"))) {
		return c.scope.Has != nil && c.scope.has(ch.Path), nil
	}
	if wanted == "\r\n" {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	ch.blob, err = writeObject(c.w.mirror.dir, c.w.mirror.format, "blob", text)
	return true, err
}

// lineEnd is the one kind of line end that a text has, empty when it has none or both.
func lineEnd(text []byte) string {
	crlf := bytes.Count(text, []byte("\r\n"))
	lf := bytes.Count(text, []byte("\n"))
	switch {
	case lf == 0:
		return ""
	case crlf == 0:
		return "\n"
	case crlf == lf:
		return "\r\n"
	}
	return ""
}

// readBlobs reads objects of the mirror in one process.
func (m *Mirror) readBlobs(ctx context.Context, oids []string) (map[string][]byte, error) {
	blobs := make(map[string][]byte, len(oids))
	if len(oids) == 0 {
		return blobs, nil
	}
	oids = slices.Compact(slices.Sorted(slices.Values(oids)))
	res, err := m.run(ctx, command{args: []string{"cat-file", "--batch"}, stdin: strings.NewReader(strings.Join(oids, "\n") + "\n")})
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	if err := parseBatch(res.stdout, blobs); err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	return blobs, nil
}

// parseBatch reads the output of cat-file --batch: "<oid> <type> <size>\n<content>\n" per object.
func parseBatch(out []byte, into map[string][]byte) error {
	for len(out) > 0 {
		header, rest, ok := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(header))
		if !ok || len(fields) != 3 {
			return fmt.Errorf("unexpected answer %q", header)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size < 0 || size >= len(rest) {
			return fmt.Errorf("unexpected answer %q", header)
		}
		into[fields[0]] = rest[:size]
		out = rest[size+1:]
	}
	return nil
}
