package gitrepo

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseRemovesExactlyItsOwn(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	_, other := b.start(attempt("n2", 1))
	outside := realTemp(t)
	writeFile(t, outside, "precious", "x")
	require.NoError(t, os.Symlink(outside, filepath.Join(w.Path(), "way-out")))
	closed := filepath.Join(w.Path(), "closed")
	writeFile(t, closed, "x", "x")
	require.NoError(t, os.Chmod(closed, 0))
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
	require.NoDirExists(t, w.Path())
	require.NoDirExists(t, w.AdminDir())
	require.NoDirExists(t, filepath.Dir(w.Path()))
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{}), "releasing again is no error")
	require.NoError(t, b.store.Close())
	left, err := os.ReadDir(b.store.path(trashDir))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, b.store.Leftovers())
	require.FileExists(t, filepath.Join(outside, "precious"))
	require.NoError(t, other.AssertInPlace(b.base))
	require.Len(t, registered(t, b.mirror), 1)
	_, err = b.mirror.OpenWorktree(t.Context(), attempt("n1", 1))
	require.ErrorIs(t, err, ErrNoWorktree)
}

func TestWhatCannotBeDeletedIsListed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	busy := filepath.Join(w.Path(), "busy")
	require.NoError(t, os.Mkdir(busy, 0o755))
	require.NoError(t, syscall.Mount("none", busy, "tmpfs", 0, ""))
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
	require.NoDirExists(t, w.Path(), "the path is free all the same")
	require.NoError(t, b.store.Close())
	left := b.store.Leftovers()
	require.Len(t, left, 1)
	require.NoError(t, syscall.Unmount(filepath.Join(left[0], "t", "busy"), 0))
	garbage, err := b.store.Garbage(t.Context(), func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, GarbageTrash, garbage[len(garbage)-1].Class)
	require.Equal(t, left[0], garbage[len(garbage)-1].Path)
	// The next process goes on with it.
	again := newStore(t, func(s *Settings) { s.StateDir = b.store.settings.StateDir })
	require.NoError(t, again.Close())
	require.NoDirExists(t, left[0])
}

func TestRecycledTreeIsAsFresh(t *testing.T) {
	t.Parallel()
	b := openRunOn(t, newHub(t), false, Options{Keep: []string{"build", "cache/deep"}}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	p := w.Path()
	writeFile(t, p, "src/a.txt", "landed\n")
	require.NoError(t, os.Remove(filepath.Join(p, "src/b.txt")))
	res := b.land(a, fence, w)
	writeFile(t, p, "src/c.txt", "dirty\n")
	writeFile(t, p, "untracked/x.txt", "x")
	writeFile(t, p, "x.log", "ignored")
	writeFile(t, p, "build/cache.bin", "kept")
	writeFile(t, p, "cache/deep/y", "kept")
	writeFile(t, p, "node_modules/x/y", "not kept")
	require.NoError(t, os.Chmod(filepath.Join(p, "README.md"), 0o755))
	require.NoError(t, os.RemoveAll(filepath.Join(p, "docs")))
	require.NoError(t, os.Symlink("/", filepath.Join(p, "docs")))
	plainGit(t, p, "checkout", "-q", "-B", "own")
	require.NoError(t, os.Remove(filepath.Join(p, ".git")))
	plainGit(t, p, "init", "-q")
	inode := func(path string) uint64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	same := inode(filepath.Join(p, "bin/run.sh"))
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{Reusable: true}))
	require.NoDirExists(t, p)
	require.Empty(t, registered(t, b.mirror), "a parked tree is not registered")

	_, next := b.start(attempt("n2", 1))
	require.Equal(t, same, inode(filepath.Join(next.Path(), "bin/run.sh")), "recycled")
	require.NoError(t, next.AssertInPlace(res.Commit))
	require.Equal(t, "kept", readFile(t, next.Path(), "build/cache.bin"))
	require.Equal(t, "kept", readFile(t, next.Path(), "cache/deep/y"))
	require.NoError(t, os.RemoveAll(filepath.Join(next.Path(), "build")))
	require.NoError(t, os.RemoveAll(filepath.Join(next.Path(), "cache")))
	require.Empty(t, plainGit(t, next.Path(), "status", "--porcelain", "--ignored"))
	require.Equal(t, "landed\n", readFile(t, next.Path(), "src/a.txt"))
	work, err := next.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.True(t, work.Empty())
}

func TestParkedTreesAreBoundedAndBrokenOnesThrownAway(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	var trees []*Worktree
	for i := range b.mirror.idleLimit() + 2 {
		_, w := b.start(attempt("n"+string(rune('a'+i)), 1))
		trees = append(trees, w)
	}
	for _, w := range trees {
		require.NoError(t, w.Release(t.Context(), ReleaseOptions{Reusable: true}))
	}
	idle, err := filepath.Glob(filepath.Join(b.mirror.idleDir(), "*"))
	require.NoError(t, err)
	require.Len(t, idle, b.mirror.idleLimit())
	for i, dir := range idle {
		if i%2 == 0 {
			require.NoError(t, os.Remove(filepath.Join(dir, "index")))
		} else {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "index"), []byte("garbage"), 0o600))
		}
	}
	_, w := b.start(attempt("fresh", 1))
	require.NoError(t, w.AssertInPlace(b.base))
	require.Empty(t, plainGit(t, w.Path(), "status", "--porcelain", "--ignored"))
}

func TestVerificationsChangesAreDiscarded(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	_, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	b.landEdit("n2", "src/b.txt", "meanwhile\n")
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	commit, err := w.Commit(t.Context(), CommitRequest{Attempt: a, Work: work, When: testTime})
	require.NoError(t, err)
	truth := b.truth()
	merged, err := b.mirror.Merge(t.Context(), MergeRequest{Truth: truth, Base: w.Base(), Commit: commit})
	require.NoError(t, err)
	require.False(t, merged.Skipped)
	require.NoError(t, w.CheckoutTree(t.Context(), merged.Tree, truth))
	require.NoError(t, w.AssertInPlace(truth))
	require.Equal(t, "work\n", readFile(t, w.Path(), "src/a.txt"))
	require.Equal(t, "meanwhile\n", readFile(t, w.Path(), "src/b.txt"))
	require.Equal(t, "M  src/a.txt", plainGit(t, w.Path(), "status", "--porcelain"), "index and HEAD are set for the commands that verify")
	writeFile(t, w.Path(), "src/a.txt", "formatted by the check\n")
	writeFile(t, w.Path(), "report.xml", "x")
	writeFile(t, w.Path(), "build/out", "an ignored cache stays")
	require.NoError(t, w.DiscardChanges(t.Context(), merged.Tree))
	require.Equal(t, "work\n", readFile(t, w.Path(), "src/a.txt"))
	require.NoFileExists(t, filepath.Join(w.Path(), "report.xml"))
	require.FileExists(t, filepath.Join(w.Path(), "build/out"))
}
