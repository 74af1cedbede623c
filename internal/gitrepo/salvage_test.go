package gitrepo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// snapshotOf lists a tree on disk with content and time stamps.
func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(p)
		files[p] = info.ModTime().String() + string(text)
		return nil
	}))
	return files
}

func TestSalvageKeepsEveryEditAndLeavesTheTreeAsItIs(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 3)
		_, w := b.start(a)
		p := w.Path()
		writeFile(t, p, "src/b.txt", "own commit\n")
		plainGit(t, p, "commit", "-q", "-am", "own")
		own := plainGit(t, p, "rev-parse", "HEAD")
		writeFile(t, p, "src/a.txt", "edited\r\n")
		writeFile(t, p, "anywhere/new.txt", "untracked\n")
		writeFile(t, p, "scratch.tmp", "scratch\n")
		writeFile(t, p, "src/hidden.txt", "ignored, inside\n")
		writeFile(t, p, "src/trace.log", "ignored, inside\n")
		writeFile(t, p, "hidden-outside.txt", "ignored, outside\n")
		writeFile(t, p, "build/x", "ignored, outside\n")
		require.NoError(t, os.Remove(filepath.Join(p, "docs/list.md")))
		plainGit(t, p, "init", "-q", "nested")
		writeFile(t, p, "nested/work.txt", "in a nested repository\n")
		before, index := snapshotOf(t, p), readFile(t, w.AdminDir(), "index")
		scope := Scope{Has: inSrc, Ignored: inSrc}
		s, err := w.Salvage(t.Context(), scope, testTime)
		require.NoError(t, err)
		require.Equal(t, Salvage{Ref: "refs/mendflow/salvage/run-1/n1/3", Commit: s.Commit}, s)
		require.Equal(t, before, snapshotOf(t, p))
		require.Equal(t, index, readFile(t, w.AdminDir(), "index"))
		again, err := w.Salvage(t.Context(), scope, testTime)
		require.NoError(t, err)
		require.Equal(t, s, again)
		require.NotContains(t, plainGit(t, b.repo, "for-each-ref"), "salvage")
		refs, err := b.mirror.PushSalvage(t.Context(), testRun)
		require.NoError(t, err)
		require.Equal(t, []string{s.Ref}, refs)
		refs, err = b.mirror.PushSalvage(t.Context(), testRun)
		require.NoError(t, err)
		require.Equal(t, []string{s.Ref}, refs)
		require.Equal(t, b.base+" "+own, plainGit(t, b.repo, "log", "-1", "--format=%P", s.Ref))
		b.expectTree(s.Ref, map[string]string{
			"src/a.txt": "edited\r\n", "src/b.txt": "own commit\n", "anywhere/new.txt": "untracked\n", "scratch.tmp": "scratch\n",
			"src/hidden.txt": "ignored, inside\n", "src/trace.log": "ignored, inside\n", "docs/list.md": "",
			"nested/work.txt": "in a nested repository\n",
		})
	})
}

func TestNothingToSalvageMakesNoRef(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	s, err := w.Salvage(t.Context(), Scope{}, testTime)
	require.NoError(t, err)
	require.Zero(t, s)
	refs, err := b.mirror.PushSalvage(t.Context(), testRun)
	require.NoError(t, err)
	require.Empty(t, refs)
}

func TestContinuedTreeMovesToTheNewNumber(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a1, a3 := attempt("n1", 1), attempt("n1", 3)
		f1, w1 := b.start(a1)
		writeFile(t, w1.Path(), "src/a.txt", "half done\n")
		facts, err := w1.Facts(t.Context())
		require.NoError(t, err)
		old := b.landRequest(a1, f1, w1)
		b.landEdit("n2", "src/b.txt", "meanwhile\n")
		w3, _, err := b.mirror.Continue(t.Context(), a1, a3)
		require.NoError(t, err)
		require.Equal(t, w1.Path(), w3.Path())
		require.Equal(t, b.base, w3.Base())
		require.Contains(t, readFile(t, w3.AdminDir(), "locked"), "run-1/n1/a3 ")
		mismatch, err := w3.MatchFacts(t.Context(), facts)
		require.NoError(t, err)
		require.Empty(t, mismatch)
		again, _, err := b.mirror.Continue(t.Context(), a1, a3)
		require.NoError(t, err)
		require.Equal(t, w3.rec, again.rec)
		f3, err := b.mirror.SetFence(t.Context(), a3)
		require.NoError(t, err)
		_, err = b.mirror.OpenWorktree(t.Context(), a1)
		require.ErrorIs(t, err, ErrNoWorktree)
		require.NoError(t, w1.Release(t.Context(), ReleaseOptions{}), "the old attempt's release does not take it away")
		require.NoError(t, w3.AssertInPlace(b.base))
		old.ExpectTruth = b.truth()
		res, err := b.mirror.Land(t.Context(), old)
		require.NoError(t, err)
		require.Equal(t, Fenced, res.Status)
		writeFile(t, w3.Path(), "src/a.txt", "done\n")
		res = b.land(a3, f3, w3)
		require.Equal(t, Landed, res.Status)
		b.expectTree(res.Commit, map[string]string{"src/a.txt": "done\n", "src/b.txt": "meanwhile\n"})
		_, _, err = b.mirror.Continue(t.Context(), attempt("n1", 9), attempt("n1", 10))
		require.ErrorIs(t, err, ErrNoWorktree)
		_, _, err = b.mirror.Continue(t.Context(), a3, attempt("n2", 4))
		require.ErrorIs(t, err, ErrInvalidName)
	})
}

func TestFactsTellEveryChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *Worktree)
		want   string
	}{
		"same content":  {func(w *Worktree) { writeFile(t, w.Path(), "src/a.txt", "edited\n") }, ""},
		"same size":     {func(w *Worktree) { writeFile(t, w.Path(), "src/a.txt", "EDITED\n") }, "status"},
		"untracked":     {func(w *Worktree) { writeFile(t, w.Path(), "new.txt", "n\n") }, "status"},
		"deleted":       {func(w *Worktree) { require.NoError(t, os.Remove(filepath.Join(w.Path(), "src/b.txt"))) }, "status"},
		"mode":          {func(w *Worktree) { require.NoError(t, os.Chmod(filepath.Join(w.Path(), "src/b.txt"), 0o755)) }, "status"},
		"ignored":       {func(w *Worktree) { writeFile(t, w.Path(), "x.log", "n\n") }, ""},
		"another head":  {func(w *Worktree) { plainGit(t, w.Path(), "commit", "-q", "-am", "x") }, "head"},
		"gone":          {func(w *Worktree) { require.NoError(t, os.RemoveAll(w.Path())) }, "tree"},
		"staged only":   {func(w *Worktree) { plainGit(t, w.Path(), "add", "-A") }, ""},
		"touched again": {func(w *Worktree) { _ = os.Chtimes(filepath.Join(w.Path(), "src/b.txt"), time.Now(), time.Unix(1, 0)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openRun(t, false, nil)
			_, w := b.start(attempt("n1", 1))
			writeFile(t, w.Path(), "src/a.txt", "edited\n")
			facts, err := w.Facts(t.Context())
			require.NoError(t, err)
			c.change(w)
			got, err := w.MatchFacts(t.Context(), facts)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestHostThatIsNotAloneSalvagesIntoTheHubAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, func(s *Settings) { s.ShareSalvage = true })
		_, w := b.start(attempt("n1", 1))
		writeFile(t, w.Path(), "src/a.txt", "half done\n")
		s, err := w.Salvage(t.Context(), Scope{Has: inSrc}, testTime)
		require.NoError(t, err)
		require.Equal(t, s.Commit, plainGit(t, b.repo, "rev-parse", s.Ref))
		writeFile(t, w.Path(), "src/a.txt", "more is done\n")
		again, err := w.Salvage(t.Context(), Scope{Has: inSrc}, testTime)
		require.NoError(t, err)
		require.NotEqual(t, s.Commit, again.Commit)
		require.Equal(t, again.Commit, plainGit(t, b.repo, "rev-parse", s.Ref), "the later one replaces it there too")
		refs, err := b.mirror.HubSalvage(t.Context(), testRun)
		require.NoError(t, err)
		require.Equal(t, []string{s.Ref}, refs)
	})
}
