package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"mendflow/internal/plan"
)

// Bounds of what the model is shown at once.
const (
	maxShown   = 200 << 10 // bytes of one file
	maxFiles   = 2000      // names
	maxMatches = 200       // lines
)

// tree is the worktree. All access goes through an os.Root, so that no path and
// no link leads outside; nothing is written through a link, to git's own files,
// or outside the node's scope.
type tree struct {
	root  *os.Root
	scope *plan.Scope
}

func openTree(folder string, scope *plan.Scope) (*tree, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open worktree: %w", err)
	}
	return &tree{root: root, scope: scope}, nil
}

func (t *tree) close() { _ = t.root.Close() }

// inside checks a path of the model's.
func inside(name string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if name == "" || clean == "." || !fs.ValidPath(clean) || strings.ContainsAny(clean, "\\\x00") {
		return "", fmt.Errorf("path %q is not a path inside the worktree", name)
	}
	for part := range strings.SplitSeq(clean, "/") {
		if strings.EqualFold(part, ".git") {
			return "", fmt.Errorf("path %q belongs to git", name)
		}
	}
	return clean, nil
}

// writable checks a path that is to be written.
func (t *tree) writable(name string) (string, error) {
	clean, err := inside(name)
	if err != nil {
		return "", err
	}
	if !t.scope.Exclusive() && !t.scope.Match(clean) {
		return "", fmt.Errorf("path %q is outside of what the task may change", name)
	}
	for at := clean; at != "."; at = path.Dir(at) {
		info, err := t.root.Lstat(at)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("path %q leads through the link %s", name, at)
		}
	}
	return clean, nil
}

func (t *tree) content(name string) ([]byte, error) {
	clean, err := inside(name)
	if err != nil {
		return nil, err
	}
	info, err := t.root.Stat(clean)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", clean, cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is not a file", clean)
	}
	data, err := t.root.ReadFile(clean)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", clean, cause(err))
	}
	return data, nil
}

// cause is an error without the paths of this host.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// read returns a file from a line on, as far as is shown at once.
func (t *tree) read(name string, from int) (string, error) {
	data, err := t.content(name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("read %s: it is not a text file", name)
	}
	for line := 1; line < from; line++ {
		_, rest, more := bytes.Cut(data, []byte("\n"))
		if !more {
			return "", fmt.Errorf("read %s: it has no line %d", name, from)
		}
		data = rest
	}
	if len(data) <= maxShown {
		return string(data), nil
	}
	cut := bytes.LastIndexByte(data[:maxShown], '\n') + 1
	if cut == 0 {
		cut = maxShown
	}
	next := max(from, 1) + bytes.Count(data[:cut], []byte("\n"))
	return string(data[:cut]) + fmt.Sprintf("\n[cut; go on with from=%d]", next), nil
}

func (t *tree) write(name, content string) error {
	clean, err := t.writable(name)
	if err != nil {
		return err
	}
	if err := t.root.MkdirAll(path.Dir(clean), 0o777); err != nil {
		return fmt.Errorf("write %s: %w", clean, cause(err))
	}
	if err := t.root.WriteFile(clean, []byte(content), 0o666); err != nil {
		return fmt.Errorf("write %s: %w", clean, cause(err))
	}
	return nil
}

func (t *tree) replace(name, old, with string) error {
	data, err := t.content(name)
	if err != nil {
		return err
	}
	changed, err := replaced(string(data), name, old, with)
	if err != nil {
		return err
	}
	return t.write(name, changed)
}

func replaced(content, name, old, with string) (string, error) {
	switch n := strings.Count(content, old); {
	case old == "":
		return "", fmt.Errorf("replace in %s: the old text is empty", name)
	case n == 0:
		return "", fmt.Errorf("replace in %s: the old text is not there", name)
	case n > 1:
		return "", fmt.Errorf("replace in %s: the old text is there %d times: give more of what is around it", name, n)
	}
	return strings.Replace(content, old, with, 1), nil
}

func (t *tree) remove(name string) error {
	clean, err := t.writable(name)
	if err != nil {
		return err
	}
	info, err := t.root.Lstat(clean)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("delete %s: it is not a file", clean)
	}
	if err == nil {
		err = t.root.Remove(clean)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", clean, cause(err))
	}
	return nil
}

// walk calls yield with every file that a glob matches, in order.
func (t *tree) walk(glob string, yield func(name string) bool) error {
	if glob != "" && !doublestar.ValidatePattern(glob) {
		return fmt.Errorf("glob %q is not valid", glob)
	}
	stop := errors.New("enough")
	err := fs.WalkDir(t.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not shown
		case strings.EqualFold(d.Name(), ".git") && d.IsDir():
			return fs.SkipDir
		case strings.EqualFold(d.Name(), ".git") || !d.Type().IsRegular():
			return nil
		}
		if glob == "" || doublestar.MatchUnvalidated(glob, name) {
			if !yield(name) {
				return stop
			}
		}
		return nil
	})
	if errors.Is(err, stop) {
		return nil
	}
	return err
}

func (t *tree) list(glob string) (string, error) {
	var names []string
	err := t.walk(glob, func(name string) bool {
		names = append(names, name)
		return len(names) <= maxFiles
	})
	if err != nil {
		return "", err
	}
	if len(names) > maxFiles {
		names[maxFiles] = "[there are more: use a narrower glob]"
	}
	return strings.Join(names, "\n"), nil
}

func (t *tree) search(pattern, glob string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", fmt.Errorf("read pattern: %w", err)
	}
	var found []string
	err = t.walk(glob, func(name string) bool {
		data, err := t.content(name)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return true
		}
		number := 0
		for line := range bytes.Lines(data) {
			number++
			if re.Match(bytes.TrimRight(line, "\r\n")) && len(found) <= maxMatches {
				found = append(found, fmt.Sprintf("%s:%d: %s", name, number, clipped(strings.TrimSpace(string(line)))))
			}
		}
		return len(found) <= maxMatches
	})
	if err != nil {
		return "", err
	}
	if len(found) > maxMatches {
		found[maxMatches] = "[there are more: use a narrower pattern or glob]"
	}
	return strings.Join(found, "\n"), nil
}

func clipped(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
