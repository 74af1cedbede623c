package gitrepo

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// handedOver is a tree in which a worker worked and a verification then ran:
// checked out on a moved truth, with files changed and added.
func handedOver(t *testing.T, b *bench, a Attempt) (w *Worktree, commit Commit, moved string) {
	t.Helper()
	_, w = b.start(a)
	other := attempt("other", 1)
	fence, tree := b.start(other)
	writeFile(t, tree.Path(), "docs/other.md", "of another node\n")
	moved = b.land(other, fence, tree).Commit

	writeFile(t, w.Path(), "src/a.txt", "work\n")
	writeFile(t, w.Path(), "src/new.txt", "work\n")
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	commit, err = w.Commit(t.Context(), CommitRequest{Attempt: a, Work: work, Message: "Repair", When: testTime})
	require.NoError(t, err)
	merged, err := b.mirror.Merge(t.Context(), MergeRequest{Truth: moved, Base: w.Base(), Commit: commit})
	require.NoError(t, err)
	require.NoError(t, w.HandOver(work, commit))
	require.NoError(t, w.CheckoutTree(t.Context(), merged.Tree, moved))
	writeFile(t, w.Path(), "src/a.txt", "changed by a test\n")
	writeFile(t, w.Path(), "coverage.out.txt", "made by a test\n")
	return w, commit, moved
}

// A process that died after the merge was checked out must find the worker's
// work again, and nothing else.
func TestWorkIsFoundAgainAfterItsTreeWasHandedOver(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	_, commit, _ := handedOver(t, b, a)

	w, err := b.mirror.OpenWorktree(t.Context(), a)
	require.NoError(t, err)
	require.True(t, w.HandedOver())
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.Equal(t, []string{"src/a.txt", "src/new.txt"}, work.Paths())
	again, err := w.Commit(t.Context(), CommitRequest{Attempt: a, Work: work, Message: "Repair", When: testTime})
	require.NoError(t, err)
	require.Equal(t, commit, again)
}

func TestSalvageOfAHandedOverTreeHoldsTheWork(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	w, _, _ := handedOver(t, b, a)
	kept, err := w.Salvage(t.Context(), Scope{}, testTime)
	require.NoError(t, err)
	require.Equal(t, "work", plainGit(t, b.mirror.dir, "show", kept.Commit+":src/a.txt"))
	require.Equal(t, "work", plainGit(t, b.mirror.dir, "show", kept.Commit+":src/new.txt"))
	require.Equal(t, "made by a test", plainGit(t, b.mirror.dir, "show", kept.Commit+":coverage.out.txt"), "rather too much than too little")
	require.Equal(t, b.base, plainGit(t, b.mirror.dir, "rev-parse", kept.Commit+"^"))
}

// What was salvaged before the tree was handed over is complete; a later look
// at the tree would hold less.
func TestAnEarlierSalvageIsNotReplacedByAHandedOverTree(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	_, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	writeFile(t, w.Path(), "run.tmp", "scratch\n")
	scope := Scope{Has: inSrc, Ignored: inSrc}
	work, err := w.Collect(t.Context(), scope)
	require.NoError(t, err)
	require.NotEmpty(t, work.Leftovers())
	commit, err := w.Commit(t.Context(), CommitRequest{Attempt: a, Work: work, Message: "Repair", When: testTime})
	require.NoError(t, err)
	first, err := w.Salvage(t.Context(), scope, testTime)
	require.NoError(t, err)
	require.NoError(t, w.HandOver(work, commit))
	require.NoError(t, w.RemoveLeftovers(work))

	w, err = b.mirror.OpenWorktree(t.Context(), a)
	require.NoError(t, err)
	second, err := w.Salvage(t.Context(), scope, testTime)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "scratch", plainGit(t, b.mirror.dir, "show", second.Commit+":run.tmp"))
}

// The next attempt goes on with the worker's files, not with a merge that a
// verification left its traces in.
func TestContinuingAHandedOverTreeBringsTheWorkBack(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	handedOver(t, b, a)
	w, _, err := b.mirror.Continue(t.Context(), a, attempt("n1", 2))
	require.NoError(t, err)
	require.False(t, w.HandedOver())
	require.Equal(t, "work\n", readFile(t, w.Path(), "src/a.txt"))
	require.NoFileExists(t, w.Path()+"/docs/other.md")
	require.NoFileExists(t, w.Path()+"/coverage.out.txt")
	require.NoError(t, w.AssertInPlace(b.base))
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.Equal(t, []string{"src/a.txt", "src/new.txt"}, work.Paths())
}

// A worker that replaced the .git file gets it back before anything is verified there.
func TestHandingOverRestoresTheGitFile(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	require.NoError(t, os.Remove(w.Path()+"/.git"))
	writeFile(t, w.Path(), ".git", "gitdir: /nowhere\n")
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.ErrorIs(t, w.AssertInPlace(""), ErrOutOfPlace)
	require.NoError(t, w.HandOver(work, Commit{}))
	require.NoError(t, w.AssertInPlace(""))
}
