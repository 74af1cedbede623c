package gitrepo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodeLandsAsOneCommitWithTrailers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "changed\n")
		writeFile(t, w.Path(), "src/new.txt", "new\n")
		res := b.land(a, fence, w)
		require.Equal(t, Landed, res.Status)
		require.Empty(t, res.BranchNote)
		require.Equal(t, res.Commit, b.truth())
		require.Equal(t, res.Commit, plainGit(t, b.repo, "rev-parse", "refs/heads/mendflow/"+testRun))
		b.expectTree(res.Commit, map[string]string{"src/a.txt": "changed\n", "src/new.txt": "new\n"})
		require.Equal(t, b.base, plainGit(t, b.repo, "rev-parse", res.Commit+"^"))
		require.Equal(t, "Repair n1\n\nMendflow-Run: run-1\nMendflow-Node: n1\nMendflow-Opening: 1\nMendflow-Attempt: 1\nMendflow-Findings: F-n1",
			plainGit(t, b.repo, "log", "-1", "--format=%B", res.Commit))
		require.Equal(t, "Mendflow <mendflow@localhost>", plainGit(t, b.repo, "log", "-1", "--format=%an <%ae>", res.Commit))
		plainGit(t, b.repo, "fsck", "--strict", "--no-dangling")
		require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
		require.NoDirExists(t, w.Path())
		state, err := b.mirror.State(t.Context(), testRun, b.base)
		require.NoError(t, err)
		require.False(t, state.BranchMoved())
		l, ok := state.Landed("n1", 1)
		require.True(t, ok)
		require.Equal(t, Landing{Commit: res.Commit, Parent: b.base, Tree: l.Tree, Node: "n1", Opening: 1, Attempt: 1, Findings: []string{"F-n1"}}, l)
		// The same state read from git alone, by another process.
		fresh := newMirror(t, newStore(t, nil), b.mirror.hub.remote(), Options{})
		again, err := fresh.State(t.Context(), testRun, b.base)
		require.NoError(t, err)
		require.Equal(t, state, again)
	})
}

func TestLaterLandingMergesOntoTheTruth(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a1, a2 := attempt("n1", 1), attempt("n2", 1)
		f1, w1 := b.start(a1)
		f2, w2 := b.start(a2)
		writeFile(t, w1.Path(), "src/a.txt", "one\n")
		writeFile(t, w2.Path(), "src/b.txt", "two\n")
		require.Equal(t, Landed, b.land(a1, f1, w1).Status)
		res := b.land(a2, f2, w2)
		require.Equal(t, Landed, res.Status)
		b.expectTree(res.Commit, map[string]string{"src/a.txt": "one\n", "src/b.txt": "two\n"})
		require.Equal(t, "2", plainGit(t, b.repo, "rev-list", "--count", b.base+".."+res.Commit))
	})
}
