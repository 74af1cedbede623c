package gitrepo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// landEdit lands one file's content as a node and returns the landed commit.
func (b *bench) landEdit(node, file, text string) string {
	b.t.Helper()
	a := attempt(node, 1)
	fence, w := b.start(a)
	writeFile(b.t, w.Path(), file, text)
	res := b.land(a, fence, w)
	require.Equal(b.t, Landed, res.Status)
	require.NoError(b.t, w.Release(b.t.Context(), ReleaseOptions{Reusable: true}))
	return res.Commit
}

func TestRevertTakesCulpritAndDependantsBackAsOneCommit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		c1 := b.landEdit("n1", "src/a.txt", "one\n")
		b.landEdit("n2", "src/b.txt", "two\n")
		c3 := b.landEdit("n3", "src/a.txt", "one\nthree\n") // builds on n1
		truth := b.truth()
		req := RevertRequest{Run: testRun, Base: b.base, ExpectTruth: truth, Commits: []string{c1, c3}, Message: "Take n1 back", When: testTime}
		res, err := b.mirror.Revert(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, Landed, res.Status)
		b.expectTree(res.Commit, map[string]string{"src/b.txt": "two\n"})
		require.Equal(t, truth, plainGit(t, b.repo, "rev-parse", res.Commit+"^"))
		require.Equal(t, res.Commit, plainGit(t, b.repo, "rev-parse", BranchRef(testRun)))
		again, err := b.mirror.Revert(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, res, again, "idempotent")
		for _, m := range []*Mirror{b.mirror, newMirror(t, newStore(t, nil), b.mirror.hub.remote(), Options{})} {
			state, err := m.State(t.Context(), testRun, b.base)
			require.NoError(t, err)
			require.False(t, state.BranchMoved())
			_, ok := state.Landed("n1", 1)
			require.False(t, ok)
			_, ok = state.Landed("n3", 1)
			require.False(t, ok)
			_, ok = state.Landed("n2", 1)
			require.True(t, ok)
			require.Equal(t, res.Commit, state.Landings[0].RevertedBy)
		}
		// The culprit lands again, in its next opening.
		a := attempt("n1", 2)
		a.Opening = 2
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "better\n")
		require.Equal(t, Landed, b.land(a, fence, w).Status)
		b.expectTree(b.truth(), map[string]string{"src/a.txt": "better\n", "src/b.txt": "two\n"})
	})
}

func TestRevertThatConflictsChangesNothing(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	c1 := b.landEdit("n1", "src/a.txt", "one\n")
	b.landEdit("n2", "src/a.txt", "one and two\n")
	truth := b.truth()
	req := RevertRequest{Run: testRun, Base: b.base, ExpectTruth: truth, Commits: []string{c1}, When: testTime}
	res, err := b.mirror.Revert(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, RevertResult{Status: Conflicted, Truth: truth, Conflicts: []string{"src/a.txt"}, ConflictAt: c1}, res)
	require.Equal(t, truth, b.truth())
	req.ExpectTruth = b.base
	res, err = b.mirror.Revert(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, LostRace, res.Status)
	req.ExpectTruth, req.Commits = truth, []string{b.base}
	_, err = b.mirror.Revert(t.Context(), req)
	require.ErrorContains(t, err, "did not land in this run")
}

func TestPickPutsALandingAloneOntoAnotherCommit(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	b.landEdit("n1", "src/a.txt", "one\n")
	c2 := b.landEdit("n2", "src/b.txt", "two\n")
	c3 := b.landEdit("n3", "src/a.txt", "three\n")
	c4 := b.landEdit("n4", "src/c.txt", "four\n")
	res, err := b.mirror.Pick(t.Context(), b.base, []string{c2, c4}, testTime)
	require.NoError(t, err)
	require.Empty(t, res.Conflicts)
	mirror := *b
	mirror.repo = b.mirror.dir
	mirror.expectTree(res.Commit.OID, map[string]string{"src/b.txt": "two\n", "src/c.txt": "four\n"})
	w, err := b.mirror.ThrowawayWorktree(t.Context(), testRun, "suspect", res.Commit.OID)
	require.NoError(t, err)
	require.Equal(t, "four\n", readFile(t, w.Path(), "src/c.txt"))
	res, err = b.mirror.Pick(t.Context(), b.base, []string{c3}, testTime)
	require.NoError(t, err)
	require.Equal(t, PickResult{Conflicts: []string{"src/a.txt"}, ConflictAt: c3}, res)
}
