package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Scope says which paths are a node's. The rules for globs live with the plan.
type Scope struct {
	// Has: the path is inside the node's write scope. Nil: every path is.
	Has func(path string) bool
	// Ignored: a file hidden by an ignore rule that is committed all the same when it looks like a
	// source file. Nil, and for a scope that owns everything: none is.
	Ignored func(path string) bool
	// Literal: the scope names this very path, so that it is committed whatever it looks like.
	Literal func(path string) bool
}

func (s Scope) has(path string) bool     { return s.Has == nil || s.Has(path) }
func (s Scope) ignored(path string) bool { return s.Ignored != nil && s.Ignored(path) }
func (s Scope) literal(path string) bool { return s.Literal != nil && s.Literal(path) }

// A ChangeKind says what happened to a path.
type ChangeKind string

const (
	Added    ChangeKind = "add"
	Modified ChangeKind = "modify"
	Deleted  ChangeKind = "delete"
	ModeOnly ChangeKind = "mode"    // only the executable bit
	Retyped  ChangeKind = "retype"  // file, link or gitlink became another of them
	Linked   ChangeKind = "symlink" // a new or changed symbolic link
)

// A Change is one path that differs from the base.
type Change struct {
	Path   string     `json:"path"` // slashes, relative to the root, bytes as git has them
	Kind   ChangeKind `json:"kind"`
	Size   int64      `json:"size"`             // bytes now; 0 for a deletion
	Binary bool       `json:"binary,omitempty"` // holds a NUL byte early, as git decides
	Forced bool       `json:"forced,omitempty"` // hidden by an ignore rule

	oldMode, newMode string
	oldBlob          string
	blob             string // set: this object is committed instead of the file's bytes
}

// Work is everything that a worker left in its tree, computed from git.
type Work struct {
	Base    string
	Head    string
	Commits []string // the worker's own commits, oldest first; their content is in Changes
	Changes []Change // what is committed, by path

	// Left out of the commit, each list by path.
	Scratch  []string // untracked logs, temporary and generated files outside the scope
	Nested   []string // nested repositories
	Gitlinks []string // submodules whose commit or content changed
	Hidden   []string // ignored files inside the scope that do not look like source
	EOLOnly  []string // files outside the scope whose line ends alone differ

	// Tampered: the mirror's configuration had been changed, and was put back before git read it.
	Tampered bool
}

// Empty says that there is nothing to commit.
func (w Work) Empty() bool { return len(w.Changes) == 0 }

// Paths lists what is committed.
func (w Work) Paths() []string {
	paths := make([]string, len(w.Changes))
	for i, c := range w.Changes {
		paths[i] = c.Path
	}
	return paths
}

// Normalised says that the commit differs from the files in the tree (line ends were put back), so
// that the tree has to be checked out before it is verified.
func (w Work) Normalised() bool {
	return slices.ContainsFunc(w.Changes, func(c Change) bool { return c.blob != "" })
}

// Leftovers are untracked paths that the commit does not hold and that would make a verification
// see more than what lands.
func (w Work) Leftovers() []string { return slices.Concat(w.Scratch, w.Nested) }

// Collect computes what the worker left: its own commits, its index, the files of the tree, tracked
// or not, and new source files inside the scope that an ignore rule hides. The tree is not changed.
func (w *Worktree) Collect(ctx context.Context, scope Scope) (Work, error) {
	work, err := w.collect(ctx, scope, false)
	if err != nil {
		return Work{}, fmt.Errorf("collect work of %s: %w", w.rec.Tree, err)
	}
	return work, nil
}

// collect is Collect; with asIs the bytes of the files are taken as they are, line ends included.
func (w *Worktree) collect(ctx context.Context, scope Scope, asIs bool) (Work, error) {
	if w.rec.Handed != nil {
		return w.rec.Handed.Work, nil
	}
	c, done, err := w.newCollector(scope, asIs)
	if err != nil {
		return Work{}, err
	}
	defer done()
	if err := w.collectOpen(ctx, c); err != nil {
		return Work{}, err
	}
	if err := c.addOwn(ctx); err != nil {
		return Work{}, err
	}
	c.addSubmodules()
	if !asIs {
		if err := c.normalise(ctx); err != nil {
			return Work{}, err
		}
	}
	slices.SortFunc(c.work.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	for _, list := range []*[]string{&c.work.Scratch, &c.work.Nested, &c.work.Gitlinks, &c.work.Hidden, &c.work.EOLOnly} {
		slices.Sort(*list)
	}
	return c.work, nil
}

// newCollector looks at what has to be sound before git reads the tree; done closes it.
func (w *Worktree) newCollector(scope Scope, asIs bool) (c *collector, done func(), err error) {
	if !isDir(w.rec.Tree) || !isDir(w.rec.Admin) {
		return nil, nil, ErrOutOfPlace
	}
	tampered, err := w.mirror.guardConfig()
	if err != nil {
		return nil, nil, err
	}
	head, err := w.soundHead()
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(w.rec.Tree)
	if errors.Is(err, fs.ErrPermission) {
		openUp(w.rec.Tree)
		root, err = os.OpenRoot(w.rec.Tree)
	}
	if err != nil {
		return nil, nil, err
	}
	return &collector{w: w, scope: scope, root: root, asIs: asIs, seen: map[string]bool{},
		work: Work{Base: w.rec.Base, Head: head, Tampered: tampered}}, func() { _ = root.Close() }, nil
}

// soundHead returns HEAD, and puts it back on the base when a worker made it unreadable.
func (w *Worktree) soundHead() (string, error) {
	head, err := w.Head()
	if err == nil {
		return head, nil
	}
	return w.rec.Base, w.setHead(w.rec.Base)
}

func (w *Worktree) setHead(commit string) error {
	if err := writeFileAtomic(filepath.Join(w.rec.Admin, "HEAD"), []byte(commit+"\n")); err != nil {
		return fmt.Errorf("set HEAD: %w", err)
	}
	return nil
}

const (
	modeNone    = "000000"
	modeLink    = "120000"
	modeGitlink = "160000"
)

type collector struct {
	w     *Worktree
	scope Scope
	root  *os.Root
	asIs  bool
	work  Work
	seen  map[string]bool
}

func (c *collector) add(e statusEntry) error {
	switch {
	case c.exempt(e.path):
		return nil
	case e.kind == '1':
		return c.addTracked(e)
	case e.kind == '?' && strings.HasSuffix(e.path, "/"):
		return c.addNested(strings.TrimSuffix(e.path, "/"))
	case e.kind == '?':
		return c.addUntracked(e.path)
	}
	return c.addIgnored(e.path)
}

// exempt are the linked and kept folders: never an edit.
func (c *collector) exempt(path string) bool {
	path = strings.TrimSuffix(path, "/")
	for _, name := range slices.Concat(c.w.rec.Links, c.w.mirror.options.Keep) {
		name = strings.Trim(filepath.ToSlash(name), "/")
		if path == name || strings.HasPrefix(path, name+"/") {
			return true
		}
	}
	return false
}

func (c *collector) addTracked(e statusEntry) error {
	if e.change == '.' {
		return nil
	}
	if e.oldMode == modeGitlink {
		c.work.Gitlinks = append(c.work.Gitlinks, e.path)
		return nil
	}
	ch := Change{Path: e.path, Kind: Modified, oldMode: e.oldMode, newMode: e.newMode, oldBlob: e.blob}
	info, err := c.root.Lstat(e.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return err
	case err != nil || info.IsDir() || !plainFile(info):
		ch.Kind, ch.newMode = Deleted, modeNone
	case (e.oldMode == modeLink) != (e.newMode == modeLink):
		ch.Kind = Retyped
	case e.newMode == modeLink:
		ch.Kind = Linked
	}
	return c.append(ch, info)
}

// plainFile: what git can hold. Devices, sockets and pipes are nothing to it.
func plainFile(info fs.FileInfo) bool {
	return info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0
}

func (c *collector) addUntracked(path string) error {
	if !c.scope.has(path) && scratch(path) {
		c.work.Scratch = append(c.work.Scratch, path)
		return nil
	}
	return c.appendNew(path, false)
}

func (c *collector) appendNew(path string, forced bool) error {
	info, err := c.root.Lstat(path)
	if err != nil || info.IsDir() || !plainFile(info) {
		return nil //nolint:nilerr // it went away, or git cannot hold it
	}
	ch := Change{Path: path, Kind: Added, oldMode: modeNone, Forced: forced}
	if info.Mode()&fs.ModeSymlink != 0 {
		ch.Kind = Linked
	}
	return c.append(ch, info)
}

// addIgnored looks at what an ignore rule hides: single files, or whole folders that git does not enter.
func (c *collector) addIgnored(path string) error {
	folder, isFolder := strings.CutSuffix(path, "/")
	if c.scope.Ignored == nil && c.scope.Literal == nil {
		return nil
	}
	if !isFolder {
		return c.considerIgnored(path)
	}
	return fs.WalkDir(c.root.FS(), folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() {
			return c.considerIgnored(p)
		}
		if _, err := c.root.Lstat(p + "/.git"); err == nil {
			return fs.SkipDir // a nested repository is never entered
		}
		if generatedFolder(d.Name()) || c.exempt(p) {
			return fs.SkipDir
		}
		return nil
	})
}

func (c *collector) considerIgnored(path string) error {
	switch {
	case c.scope.literal(path):
		return c.appendNew(path, true)
	case !c.scope.ignored(path):
		return nil
	case scratch(path) || !c.looksLikeSource(path):
		c.work.Hidden = append(c.work.Hidden, path)
		return nil
	}
	return c.appendNew(path, true)
}

// append completes a change with what the file says. Only regular files are opened, never through
// links that lead outside.
func (c *collector) append(ch Change, info fs.FileInfo) error {
	if c.seen[ch.Path] {
		return nil
	}
	c.seen[ch.Path] = true
	if ch.Kind != Deleted {
		ch.Size = info.Size()
		if info.Mode().IsRegular() {
			binary, err := c.binary(ch.Path)
			if err != nil {
				return err
			}
			ch.Binary = binary
		}
	}
	c.work.Changes = append(c.work.Changes, ch)
	return nil
}

// binaryWindow is how far git itself looks for a NUL byte.
const binaryWindow = 8000

func (c *collector) binary(path string) (bool, error) {
	head, err := readHead(c.root, path, binaryWindow)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return bytes.IndexByte(head, 0) >= 0, nil
}
