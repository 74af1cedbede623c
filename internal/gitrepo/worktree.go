package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Worktree is a checkout that hangs off a mirror. One goroutine at a time uses it.
type Worktree struct {
	mirror *Mirror
	slot   slot
	rec    record
}

// WorktreeOptions say how a fresh tree is made.
type WorktreeOptions struct {
	// Sparse are gitignore-style patterns of what to check out; used when Options.Sparse is on.
	Sparse []string
}

// Path is the folder of the tree. A kept tree keeps the path of its first attempt.
func (w *Worktree) Path() string { return w.rec.Tree }

// Base is the commit that the tree was made from.
func (w *Worktree) Base() string { return w.rec.Base }

// AdminDir is the folder of the tree's metadata in the mirror, which a sandbox keeps read-only.
func (w *Worktree) AdminDir() string { return w.rec.Admin }

// AddWorktree returns the attempt's tree, checked out at base. It is idempotent: a finished tree is
// returned as it is, on the base that it was made from (Worktree.Base); whatever else stands at the path or in the mirror's metadata is healed for
// exactly this path. A parked tree is recycled where there is one.
func (m *Mirror) AddWorktree(ctx context.Context, a Attempt, base string, opts WorktreeOptions) (*Worktree, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	w, err := m.add(ctx, a.slot(), base, opts)
	if err != nil {
		return nil, fmt.Errorf("add worktree of %s: %w", a, err)
	}
	return w, nil
}

// ThrowawayWorktree returns a tree of the run under a name of its own, for the gate and the baseline.
func (m *Mirror) ThrowawayWorktree(ctx context.Context, run, name, commit string) (*Worktree, error) {
	if err := errors.Join(checkName("run", run), checkName("worktree", name)); err != nil {
		return nil, err
	}
	w, err := m.add(ctx, slot{run: run, throwaway: name}, commit, WorktreeOptions{})
	if err != nil {
		return nil, fmt.Errorf("add worktree %s of %s: %w", name, run, err)
	}
	return w, nil
}

// ReleaseThrowaway gives up a tree that a killed process left under the name; none is fine.
func (m *Mirror) ReleaseThrowaway(ctx context.Context, run, name string) error {
	if err := errors.Join(checkName("run", run), checkName("worktree", name)); err != nil {
		return err
	}
	w, err := m.open(slot{run: run, throwaway: name})
	if errors.Is(err, ErrNoWorktree) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release worktree %s of %s: %w", name, run, err)
	}
	return w.Release(ctx, ReleaseOptions{})
}

// OpenWorktree returns the tree that an attempt already has, ErrNoWorktree when there is none.
func (m *Mirror) OpenWorktree(_ context.Context, a Attempt) (*Worktree, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	w, err := m.open(a.slot())
	if err == nil && !w.intact() {
		err = ErrNoWorktree
	}
	if err != nil {
		return nil, fmt.Errorf("open worktree of %s: %w", a, err)
	}
	return w, nil
}

func (m *Mirror) open(k slot) (*Worktree, error) {
	rec, ok, err := readRecord(m.store.recordPath(k))
	if err != nil {
		return nil, err
	}
	if !ok || rec.Mirror != m.dir {
		return nil, ErrNoWorktree
	}
	return &Worktree{mirror: m, slot: k, rec: rec}, nil
}

// intact says that tree and metadata are both there and that the making of the tree was finished.
func (w *Worktree) intact() bool {
	return w.rec.Ready && isDir(w.rec.Tree) && isDir(w.rec.Admin)
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func (m *Mirror) add(ctx context.Context, k slot, base string, opts WorktreeOptions) (*Worktree, error) {
	if !isOID(base) {
		return nil, fmt.Errorf("base %q: %w", base, ErrBaseUnknown)
	}
	unlock, err := m.store.slotLock(k).lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	w, err := m.open(k)
	switch {
	case err == nil && w.intact():
		return w, nil
	case err != nil && !errors.Is(err, ErrNoWorktree):
		return nil, err
	}
	if err := errors.Join(m.noteRun(k.run), m.ensure(ctx, base, TruthRef(k.run))); err != nil {
		return nil, err
	}
	w = &Worktree{mirror: m, slot: k, rec: m.newRecord(k, base, opts)}
	if err := w.clearPlace(ctx); err != nil {
		return nil, err
	}
	if err := writeRecord(m.store.recordPath(k), w.rec); err != nil {
		return nil, err
	}
	if err := w.build(ctx); err != nil {
		return nil, err
	}
	w.rec.Ready = true
	if err := writeRecord(m.store.recordPath(k), w.rec); err != nil {
		return nil, err
	}
	m.store.hook(PointWorktreeAdded)
	return w, nil
}

func (m *Mirror) newRecord(k slot, base string, opts WorktreeOptions) record {
	rec := record{
		Mirror: m.dir, Admin: filepath.Join(m.dir, "worktrees", adminID(k)), Tree: m.store.treePath(k),
		Run: k.run, Node: k.node, Number: k.number, Name: k.throwaway, Base: base, Owner: m.store.owner,
	}
	if m.options.Sparse {
		rec.Sparse = opts.Sparse
	}
	return rec
}

// clearPlace puts aside what is in the way at exactly this tree's path and in its metadata: an
// unfinished tree of ours, a left-over folder, a registration without a tree.
func (w *Worktree) clearPlace(ctx context.Context) error {
	m := w.mirror
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.dropAdmin(); err != nil {
		return err
	}
	rec, known, err := readRecord(m.store.recordPath(w.slot))
	if err != nil {
		return err
	}
	if _, err := os.Lstat(w.rec.Tree); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if known && !rec.Ready {
		return m.store.discard(w.rec.Tree)
	}
	if os.Remove(w.rec.Tree) == nil { // an empty folder or a link
		return nil
	}
	// Nobody knows what this is or who writes to it: kept aside, listed by gc, never deleted here.
	aside, err := m.store.quarantine(w.rec.Tree)
	if err == nil {
		m.store.settings.Log.Warn("put an unknown folder aside", "path", w.rec.Tree, "quarantine", aside)
	}
	return err
}

// build makes the tree, by recycling a parked one or afresh.
func (w *Worktree) build(ctx context.Context) error {
	m := w.mirror
	if err := os.MkdirAll(filepath.Dir(w.rec.Tree), 0o700); err != nil {
		return err
	}
	recycled, err := w.recycle(ctx)
	if err != nil {
		return err
	}
	if !recycled {
		if err := os.Mkdir(w.rec.Tree, 0o700); err != nil {
			return err
		}
		unlock, err := m.state.meta.lock(ctx)
		if err != nil {
			return err
		}
		err = w.writeAdmin()
		unlock()
		if err != nil {
			return err
		}
		if err := w.readTree(ctx, w.rec.Base); err != nil {
			return err
		}
	}
	if err := w.publishIndex(); err != nil {
		return err
	}
	return w.link()
}

// command is a git command on this tree, with every place explicit.
func (w *Worktree) command(args ...string) command {
	c := command{
		args: args, dir: w.rec.Tree, gitDir: w.rec.Admin, workTree: w.rec.Tree, index: w.index(), options: w.mirror.options,
		// The commondir file in the metadata could be made to name another repository.
		env: []string{"GIT_COMMON_DIR=" + w.mirror.dir},
	}
	if len(w.rec.Sparse) > 0 {
		c.config = append(c.config, "core.sparseCheckout=true", "core.sparseCheckoutCone=false")
	}
	if w.mirror.options.LFS {
		c.config = append(c.config, "remote.origin.url="+w.mirror.hub.remote()) // where git-lfs downloads from
	}
	return c
}

func (w *Worktree) run(ctx context.Context, c command) (result, error) {
	for try := 1; ; try++ {
		res, err := w.mirror.store.git.run(ctx, c)
		if err == nil || !errors.Is(err, ErrLocked) || try == refTries {
			return res, err
		}
		if c.stdin != nil {
			return res, err
		}
		_, reapErr := w.mirror.store.reap(w.rec.Admin, c.index+".lock")
		if err := errors.Join(reapErr, pause(ctx, lockWait)); err != nil {
			return res, err
		}
	}
}

// readTree makes tree and index equal to a commit or tree: only files that differ are written.
func (w *Worktree) readTree(ctx context.Context, treeish string) error {
	_, err := w.run(ctx, w.command("read-tree", "--reset", "-u", "--no-recurse-submodules", treeish))
	if err != nil {
		return fmt.Errorf("check out %s: %w", treeish, err)
	}
	return nil
}

// Head is the commit that the tree's HEAD names, as the worker left it.
func (w *Worktree) Head() (string, error) {
	text, err := os.ReadFile(filepath.Join(w.rec.Admin, "HEAD"))
	if err != nil {
		return "", fmt.Errorf("read HEAD: %w", errors.Join(ErrOutOfPlace, err))
	}
	value := strings.TrimSpace(string(text))
	if name, ok := strings.CutPrefix(value, "ref: "); ok {
		if value, err = readRef(w.mirror.dir, name); err != nil {
			return "", fmt.Errorf("read HEAD: %w", err)
		}
		if value == "" {
			return "", fmt.Errorf("read HEAD: %s has no commit: %w", name, ErrOutOfPlace)
		}
	}
	if !isOID(value) {
		return "", fmt.Errorf("read HEAD: not a commit: %w", ErrOutOfPlace)
	}
	return value, nil
}

// AssertInPlace checks that the tree is the one of our record: its folder is there, its .git file
// names our metadata, the metadata names the folder, and HEAD is at want (any commit when empty).
// It is called before and after each check, so that a check never runs in another repository.
func (w *Worktree) AssertInPlace(want string) error {
	if !isDir(w.rec.Tree) {
		return fmt.Errorf("look at %s: it is gone: %w", w.rec.Tree, ErrOutOfPlace)
	}
	dotGit := filepath.Join(w.rec.Tree, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return fmt.Errorf("look at %s: .git is not our file: %w", w.rec.Tree, ErrOutOfPlace)
	}
	text, err := os.ReadFile(dotGit)
	if err != nil || string(text) != w.dotGit() {
		return fmt.Errorf("look at %s: .git names another repository: %w", w.rec.Tree, ErrOutOfPlace)
	}
	back, err := os.ReadFile(filepath.Join(w.rec.Admin, "gitdir"))
	if err != nil || !bytes.Equal(bytes.TrimSpace(back), []byte(dotGit)) {
		return fmt.Errorf("look at %s: the mirror does not know it: %w", w.rec.Tree, ErrOutOfPlace)
	}
	head, err := w.Head()
	if err != nil {
		return err
	}
	if want != "" && head != want {
		return fmt.Errorf("look at %s: HEAD is %s, not %s: %w", w.rec.Tree, head, want, ErrOutOfPlace)
	}
	return nil
}
