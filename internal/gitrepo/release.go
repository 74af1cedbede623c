package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ReleaseOptions say what happens to a tree that is no longer needed.
type ReleaseOptions struct {
	// Reusable: the processes of the tree are proven gone, so that it may be recycled.
	Reusable bool
	// Alive: something that nothing could end may still write to the tree. It is put aside for good.
	Alive bool
}

// Release gives the tree up: it is renamed away first, so that its path is free at once, then parked
// for recycling or deleted in the background (Store.Leftovers lists what could not be). Salvage
// comes before it. Releasing what is gone already is not an error.
func (w *Worktree) Release(ctx context.Context, opts ReleaseOptions) error {
	m := w.mirror
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
	}
	defer unlock()
	if now, ok, err := readRecord(m.store.recordPath(w.slot)); err != nil || !ok || now.Tree != w.rec.Tree {
		return err // it was released, or continued by another attempt
	}
	parked := false
	if opts.Alive {
		aside, err := m.store.quarantine(w.rec.Tree)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
		}
		m.store.settings.Log.Warn("put a tree aside that is still written to", slog.String("path", w.rec.Tree), slog.String("quarantine", aside))
	}
	if opts.Reusable && !opts.Alive && w.rec.Ready {
		if parked, err = w.park(); err != nil {
			return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
		}
	}
	if !parked {
		if err := m.store.discard(w.rec.Tree); err != nil {
			return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
		}
		m.store.hook(PointReleasing)
		if err := w.dropAdmin(); err != nil {
			return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
		}
	}
	if err := os.Remove(m.store.recordPath(w.slot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release worktree %s: %w", w.rec.Tree, err)
	}
	m.store.dropEmptyParents(w.rec.Tree)
	m.store.dropEmptyParents(m.store.recordPath(w.slot))
	return nil
}

// ReleaseAttempt releases whatever an attempt still has on this host, also what a killed release left
// half done; nothing is not an error. Salvage comes before it.
func (m *Mirror) ReleaseAttempt(ctx context.Context, a Attempt, opts ReleaseOptions) error {
	if err := a.check(); err != nil {
		return err
	}
	w, err := m.open(a.slot())
	if errors.Is(err, ErrNoWorktree) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release worktree of %s: %w", a, err)
	}
	return w.Release(ctx, opts)
}

// dropEmptyParents removes the folders of a run and node that its last tree left empty.
func (s *Store) dropEmptyParents(path string) {
	for dir := filepath.Dir(path); within(s.settings.StateDir, dir) && strings.Count(strings.TrimPrefix(dir, s.settings.StateDir), "/") > 1; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// discard renames a folder into the trash and deletes it in the background.
func (s *Store) discard(path string) error {
	aside, err := os.MkdirTemp(s.path(trashDir), "tree-")
	if err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(aside, "t")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, os.Remove(aside))
	}
	s.deleteLater(aside)
	return nil
}

// sweepTrash goes on with what an ended process had begun to delete.
func (s *Store) sweepTrash() {
	old, _ := filepath.Glob(s.path(trashDir, "tree-*")) // the pattern is sound
	for _, aside := range old {
		s.deleteLater(aside)
	}
}

func (s *Store) deleteLater(aside string) {
	s.background.Go(func() {
		if err := removeTree(aside); err != nil {
			s.settings.Log.Warn("could not delete a released tree", slog.String("path", aside), slog.Any("error", err))
			s.leftMu.Lock()
			s.leftovers = append(s.leftovers, aside)
			s.leftMu.Unlock()
		}
	})
}

// removeTree deletes a folder, links as links, and opens folders that were closed to us. It returns
// an error when anything is left.
func removeTree(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // the second try tells whether it helped
		}
		return nil
	})
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// quarantine puts a folder aside for good and returns where.
func (s *Store) quarantine(path string) (string, error) {
	if err := os.MkdirAll(s.path(quarantineDir), 0o700); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(s.settings.StateDir, path)
	if err != nil {
		return "", err
	}
	aside, err := os.MkdirTemp(s.path(quarantineDir), strings.ReplaceAll(rel, string(filepath.Separator), "+")+"-")
	if err != nil {
		return "", err
	}
	return aside, os.Rename(path, filepath.Join(aside, "t"))
}

// idleLimit bounds the parked trees of one mirror: as many as can be checked out at once, twice.
func (m *Mirror) idleLimit() int { return 2 * int(m.store.git.width) }

func (m *Mirror) idleDir() string {
	return m.store.path(idleDir, strings.TrimSuffix(filepath.Base(m.dir), ".git"))
}

// park moves the tree with its metadata to the mirror's idle folder. Callers hold the mirror's lock.
func (w *Worktree) park() (bool, error) {
	m := w.mirror
	if len(w.rec.Sparse) > 0 || !w.intact() {
		return false, nil
	}
	if err := os.MkdirAll(m.idleDir(), 0o700); err != nil {
		return false, err
	}
	idle, err := os.ReadDir(m.idleDir())
	if err != nil || len(idle) >= m.idleLimit() {
		return false, err
	}
	aside, err := os.MkdirTemp(m.idleDir(), "i-")
	if err != nil {
		return false, err
	}
	// The index last: a parked tree without one is not complete and is thrown away.
	if err := os.Rename(w.rec.Tree, filepath.Join(aside, "t")); err != nil {
		return false, err
	}
	m.store.hook(PointReleasing)
	if err := os.Rename(w.index(), filepath.Join(aside, "index")); err != nil {
		return false, err
	}
	return true, w.dropAdmin()
}

// recycle takes a parked tree over: moved here, checked out by force (only what differs is written),
// cleaned of everything but the keep folders. Where anything goes wrong the parked tree is thrown
// away and a fresh one is made.
func (w *Worktree) recycle(ctx context.Context) (bool, error) {
	m := w.mirror
	if len(w.rec.Sparse) > 0 {
		return false, nil
	}
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return false, err
	}
	taken, err := w.takeParked()
	unlock()
	if err != nil || !taken {
		return false, err
	}
	err = w.readTree(ctx, w.rec.Base)
	if err == nil {
		err = w.clean(ctx, true)
	}
	if err == nil {
		err = w.emptyGitlinks(ctx)
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, err
	}
	m.store.settings.Log.Warn("could not recycle a tree", slog.String("path", w.rec.Tree), slog.Any("error", err))
	if unlock, err = m.state.meta.lock(ctx); err != nil {
		return false, err
	}
	defer unlock()
	return false, errors.Join(m.store.discard(w.rec.Tree), w.dropAdmin())
}

func (w *Worktree) takeParked() (bool, error) {
	m := w.mirror
	idle, err := os.ReadDir(m.idleDir())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range idle {
		aside := filepath.Join(m.idleDir(), e.Name())
		tree, index := filepath.Join(aside, "t"), filepath.Join(aside, "index")
		if _, err := os.Stat(index); err != nil || !isDir(tree) {
			if err := m.store.discard(aside); err != nil {
				return false, err
			}
			continue
		}
		if err := os.Rename(tree, w.rec.Tree); err != nil {
			return false, err
		}
		if err := w.writeAdmin(); err != nil {
			return false, err
		}
		if err := os.Rename(index, w.index()); err != nil {
			return false, err
		}
		return true, os.RemoveAll(aside)
	}
	return false, nil
}

// gitlinkMode is the mode of a gitlink as it stands in an index.
var gitlinkMode = []byte{0, 0, 0xe0, 0}

// emptyGitlinks removes what is in the folders of submodules: git clean does not look into them. An
// index without the bytes of their mode has none, which saves the process that lists them.
func (w *Worktree) emptyGitlinks(ctx context.Context) error {
	index, err := os.ReadFile(w.index())
	if err != nil || !bytes.Contains(index, gitlinkMode) {
		return err
	}
	res, err := w.run(ctx, w.command("ls-files", "--stage", "-z"))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(w.rec.Tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, record := range splitNUL(res.stdout) {
		head, path, _ := strings.Cut(record, "\t")
		if !strings.HasPrefix(head, modeGitlink) {
			continue
		}
		if err := errors.Join(root.RemoveAll(path), root.MkdirAll(path, 0o777)); err != nil {
			return err
		}
	}
	return nil
}

// clean removes what is not tracked; ignored files too when all is set, but never the keep folders.
func (w *Worktree) clean(ctx context.Context, all bool) error {
	args := []string{"clean", "-ffdq"}
	if all {
		args = append(args, "-x")
	}
	for _, keep := range slices.Concat(w.mirror.options.Keep, w.rec.Links) {
		args = append(args, "-e", "/"+strings.Trim(filepath.ToSlash(keep), "/"))
	}
	if _, err := w.run(ctx, w.command(args...)); err != nil {
		return fmt.Errorf("clean %s: %w", w.rec.Tree, err)
	}
	return nil
}
