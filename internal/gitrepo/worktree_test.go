package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// registered reads git's own list of the mirror's worktrees: path to attributes.
func registered(t *testing.T, m *Mirror) map[string][]string {
	t.Helper()
	list := map[string][]string{}
	for _, block := range strings.Split(plainGit(t, m.dir, "worktree", "list", "--porcelain"), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		path := strings.TrimPrefix(lines[0], "worktree ")
		if path != m.dir {
			list[path] = lines[1:]
		}
	}
	return list
}

func TestWorktreeIsWhatGitWouldHaveMade(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	real := filepath.Join(realTemp(t), "real")
	plainGit(t, b.mirror.dir, "worktree", "add", "-q", "--detach", "--lock", "--reason", "x", real, b.base)
	list := registered(t, b.mirror)
	require.Len(t, list, 2)
	require.Equal(t, list[real][:2], list[w.Path()][:2], "head and detached")
	require.Contains(t, list[w.Path()][2], "locked mendflow run-1/n1/a1 ")
	for _, dir := range []string{real, w.Path()} {
		require.Empty(t, plainGit(t, dir, "status", "--porcelain", "--ignored"))
		require.Equal(t, dir, plainGit(t, dir, "rev-parse", "--show-toplevel"))
		require.Equal(t, plainGit(t, real, "ls-files", "-s"), plainGit(t, dir, "ls-files", "-s"))
		plainGit(t, dir, "fsck", "--no-dangling")
		plainGit(t, dir, "log", "-1")
	}
	require.Equal(t, b.store.path("worktrees", testRun, "n1", "a1"), w.Path())
	require.NoError(t, w.AssertInPlace(b.base))
	for _, part := range []string{"host=host-1 ", "boot=" + bootID(), fmt.Sprintf("pid=%d ", os.Getpid())} {
		require.Contains(t, readFile(t, w.AdminDir(), "locked"), part)
	}
	plainGit(t, b.mirror.dir, "worktree", "prune", "--expire=now")
	require.NoError(t, w.AssertInPlace(b.base), "a prune by somebody else does not take it")
}

func TestAddingAWorktreeAgainKeepsIt(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	_, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	before := b.store.Commands()
	again, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{})
	require.NoError(t, err)
	require.Equal(t, w.Path(), again.Path())
	require.Equal(t, before, b.store.Commands())
	require.Equal(t, "work\n", readFile(t, again.Path(), "src/a.txt"))
	opened, err := b.mirror.OpenWorktree(t.Context(), a)
	require.NoError(t, err)
	require.Equal(t, w.rec, opened.rec)
	_, err = b.mirror.OpenWorktree(t.Context(), attempt("n1", 2))
	require.ErrorIs(t, err, ErrNoWorktree)
}

func TestOddStatesAtTheWorktreesPathAreHealed(t *testing.T) {
	t.Parallel()
	a := attempt("n1", 1)
	path := func(b *bench) string { return b.store.treePath(a.slot()) }
	for name, odd := range map[string]func(t *testing.T, b *bench){
		"registered and missing": func(t *testing.T, b *bench) {
			_, w := b.start(a)
			require.NoError(t, os.RemoveAll(w.Path()))
		},
		"registered, missing, without a record": func(t *testing.T, b *bench) {
			_, w := b.start(a)
			require.NoError(t, os.RemoveAll(w.Path()))
			require.NoError(t, os.Remove(b.store.recordPath(a.slot())))
		},
		"a tree without its metadata": func(t *testing.T, b *bench) {
			_, w := b.start(a)
			require.NoError(t, os.RemoveAll(w.AdminDir()))
		},
		"an empty folder": func(t *testing.T, b *bench) { require.NoError(t, os.MkdirAll(path(b), 0o755)) },
		"an unknown folder": func(t *testing.T, b *bench) {
			writeFile(t, path(b), "precious.txt", "x")
		},
		"an unfinished checkout": func(t *testing.T, b *bench) {
			_, w := b.start(a)
			w.rec.Ready = false
			require.NoError(t, writeRecord(b.store.recordPath(a.slot()), w.rec))
			require.NoError(t, os.RemoveAll(filepath.Join(w.Path(), "src")))
			writeFile(t, w.AdminDir(), "mendflow-index.lock", "")
		},
		"registered by git at that path": func(t *testing.T, b *bench) {
			plainGit(t, b.mirror.dir, "worktree", "add", "-q", "--detach", path(b), b.base)
		},
		"a broken metadata folder": func(t *testing.T, b *bench) {
			writeFile(t, filepath.Join(b.mirror.dir, "worktrees", adminID(a.slot())), "HEAD", "garbage")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openRun(t, false, nil)
			_, other := b.start(attempt("n2", 1))
			writeFile(t, other.Path(), "src/a.txt", "other work\n")
			odd(t, b)
			_, w := b.start(a)
			require.NoError(t, w.AssertInPlace(b.base))
			require.Empty(t, plainGit(t, w.Path(), "status", "--porcelain"))
			require.Contains(t, registered(t, b.mirror), w.Path())
			require.NoError(t, other.AssertInPlace(b.base), "only this path was touched")
			require.Equal(t, "other work\n", readFile(t, other.Path(), "src/a.txt"))
			if name == "an unknown folder" {
				kept, err := filepath.Glob(b.store.path(quarantineDir, "*", "t", "precious.txt"))
				require.NoError(t, err)
				require.Len(t, kept, 1, "never deleted")
			}
		})
	}
}

func TestWorktreeLockedBySomebodyElseIsNotTaken(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	_, w := b.start(a)
	require.NoError(t, os.RemoveAll(w.Path()))
	for _, reason := range []string{"on a USB stick", "mendflow run-1/n1/a1 " + owner{Host: "host-2", Boot: "b", PID: 1}.String()} {
		writeFile(t, w.AdminDir(), "locked", reason+"\n")
		_, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{})
		require.ErrorIs(t, err, ErrLocked)
		require.DirExists(t, w.AdminDir())
	}
}

func TestPlaceIsAssertedAgainstEveryWayOut(t *testing.T) {
	t.Parallel()
	elsewhere := newHub(t)
	for name, out := range map[string]func(t *testing.T, w *Worktree){
		"tree gone":     func(t *testing.T, w *Worktree) { require.NoError(t, os.RemoveAll(w.Path())) },
		".git gone":     func(t *testing.T, w *Worktree) { require.NoError(t, os.Remove(filepath.Join(w.Path(), ".git"))) },
		".git replaced": func(t *testing.T, w *Worktree) { writeFile(t, w.Path(), ".git", "gitdir: "+elsewhere+"/.git\n") },
		".git a folder": func(t *testing.T, w *Worktree) {
			require.NoError(t, os.Remove(filepath.Join(w.Path(), ".git")))
			plainGit(t, w.Path(), "init", "-q")
		},
		"tree a link": func(t *testing.T, w *Worktree) {
			require.NoError(t, os.RemoveAll(w.Path()))
			require.NoError(t, os.Symlink(elsewhere, w.Path()))
		},
		"unregistered": func(t *testing.T, w *Worktree) { require.NoError(t, os.RemoveAll(w.AdminDir())) },
		"HEAD moved": func(t *testing.T, w *Worktree) {
			plainGit(t, w.Path(), "commit", "-q", "--allow-empty", "-m", "own")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openRun(t, false, nil)
			_, w := b.start(attempt("n1", 1))
			require.NoError(t, w.AssertInPlace(b.base))
			out(t, w)
			require.ErrorIs(t, w.AssertInPlace(b.base), ErrOutOfPlace)
		})
	}
}

func TestManyAttemptsOnOneMirrorNeverFail(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	rounds, parallel := 2, 32
	if n, err := strconv.Atoi(os.Getenv("MENDFLOW_SOAK_ROUNDS")); err == nil {
		rounds = n
	}
	for round := range rounds {
		var wg sync.WaitGroup
		errs := make([]error, parallel)
		for i := range parallel {
			wg.Go(func() { errs[i] = b.wholeNode(attempt(fmt.Sprintf("r%d-n%d", round, i), 1), i%2 == 0) })
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	require.Equal(t, fmt.Sprint(rounds*parallel), plainGit(t, b.repo, "rev-list", "--count", b.base+".."+b.truth()))
	require.Empty(t, registered(t, b.mirror))
}

// wholeNode is one node from its fence to its release.
func (b *bench) wholeNode(a Attempt, reusable bool) error {
	ctx := b.t.Context()
	fence, err := b.mirror.SetFence(ctx, a)
	if err != nil {
		return err
	}
	truth, err := b.mirror.Truth(ctx, a.Run)
	if err != nil {
		return err
	}
	w, err := b.mirror.AddWorktree(ctx, a, truth, WorktreeOptions{})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Path(), "src", a.Node+".txt"), []byte(a.Node+"\n"), 0o644); err != nil {
		return err
	}
	res, err := b.tryLand(a, fence, w)
	if err != nil {
		return err
	}
	if res.Status != Landed {
		return fmt.Errorf("%s: %s", a, res.Status)
	}
	return w.Release(ctx, ReleaseOptions{Reusable: reusable})
}

func TestTheSameWorktreeAddedTwiceAtOnceIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			w, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{})
			if err == nil {
				err = w.AssertInPlace(b.base)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Len(t, registered(t, b.mirror), 1)
}

func TestSparseWorktreeHoldsItsPatternsOnly(t *testing.T) {
	t.Parallel()
	b := openRunOn(t, newHub(t), false, Options{Sparse: true}, nil)
	a := attempt("n1", 1)
	fence, err := b.mirror.SetFence(t.Context(), a)
	require.NoError(t, err)
	w, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{Sparse: []string{"/src/"}})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(w.Path(), "src/a.txt"))
	require.NoFileExists(t, filepath.Join(w.Path(), "README.md"))
	writeFile(t, w.Path(), "src/a.txt", "sparse\n")
	writeFile(t, w.Path(), "docs/new.md", "outside the patterns\n")
	res := b.land(a, fence, w)
	b.expectTree(res.Commit, map[string]string{"src/a.txt": "sparse\n", "docs/new.md": "outside the patterns\n"})
}

func TestInvalidNamesNeverBecomeRefsOrPaths(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	for _, name := range []string{"", ".", "..", "a/b", "../x", "a..b", ".a", "a.", "x.lock", "a b", "a\n", "ü", strings.Repeat("a", 101), "a~1", "@{u}"} {
		a := attempt("n", 1)
		a.Node = name
		_, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{})
		require.ErrorIs(t, err, ErrInvalidName, name)
		_, err = b.mirror.SetFence(t.Context(), a)
		require.ErrorIs(t, err, ErrInvalidName, name)
		_, err = b.mirror.OpenTruth(t.Context(), name, b.base)
		require.ErrorIs(t, err, ErrInvalidName, name)
		_, err = b.mirror.ThrowawayWorktree(t.Context(), testRun, name, b.base)
		require.ErrorIs(t, err, ErrInvalidName, name)
	}
}

func TestNamesThatDifferInCaseOrJoinAlikeDoNotCollide(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range []slot{{run: "r", node: "a", number: 1}, {run: "R", node: "a", number: 1}, {run: "r", node: "A", number: 1},
		{run: "r", node: "a-1", number: 1}, {run: "r-a", node: "1", number: 1}, {run: "r", throwaway: "a"}, {run: "r", node: "a", number: 11}} {
		id := adminID(k)
		require.Equal(t, strings.ToLower(id), id)
		require.False(t, seen[id], id)
		seen[id] = true
	}
}

func TestThrowawayWorktreeIsApartFromAttempts(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	w, err := b.mirror.ThrowawayWorktree(t.Context(), testRun, "gate", b.base)
	require.NoError(t, err)
	require.NoError(t, w.AssertInPlace(b.base))
	_, n := b.start(attempt("gate", 1))
	require.NotEqual(t, w.Path(), n.Path())
	writeFile(t, w.Path(), "junk.txt", "x")
	s, err := w.Salvage(t.Context(), Scope{}, testTime)
	require.NoError(t, err)
	require.Zero(t, s, "nobody works in it")
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
	require.NoDirExists(t, w.Path())
	require.NoError(t, n.AssertInPlace(b.base))
}
