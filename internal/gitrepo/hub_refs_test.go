package gitrepo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBranchIsLeftAloneWithTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, b *bench)
		note    string
		url     bool
	}{
		"a branch mendflow exists":        {func(t *testing.T, b *bench) { plainGit(t, b.repo, "branch", "mendflow") }, "a branch named mendflow exists", false},
		"a branch mendflow exists by url": {func(t *testing.T, b *bench) { plainGit(t, b.repo, "branch", "mendflow") }, "a branch named mendflow exists", true},
		"checked out": {func(t *testing.T, b *bench) { plainGit(t, b.repo, "checkout", "-q", "-b", "mendflow/"+testRun) },
			"it is checked out at ", false},
		"checked out in a worktree": {func(t *testing.T, b *bench) {
			plainGit(t, b.repo, "worktree", "add", "-q", "-b", "mendflow/"+testRun, filepath.Join(realTemp(t), "w"))
		}, "it is checked out at ", false},
		"checked out by url": {func(t *testing.T, b *bench) { plainGit(t, b.repo, "checkout", "-q", "-b", "mendflow/"+testRun) },
			"the hub refused it", true},
		"moved by somebody": {func(t *testing.T, b *bench) {
			plainGit(t, b.repo, "update-ref", BranchRef(testRun), plainGit(t, b.repo, "commit-tree", "-p", b.base, "-m", "x", b.base+"^{tree}"))
		}, "somebody moved it to ", false},
		"a branch below it": {func(t *testing.T, b *bench) { plainGit(t, b.repo, "branch", "mendflow/"+testRun+"/x") }, "the hub refused it", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openRun(t, c.url, nil)
			c.prepare(t, b)
			branches := plainGit(t, b.repo, "for-each-ref", "refs/heads")
			a := attempt("n1", 1)
			fence, w := b.start(a)
			writeFile(t, w.Path(), "src/a.txt", "x\n")
			res := b.land(a, fence, w)
			require.Equal(t, Landed, res.Status)
			require.Contains(t, res.BranchNote, c.note)
			require.Equal(t, res.Commit, b.truth())
			require.Equal(t, branches, plainGit(t, b.repo, "for-each-ref", "refs/heads"))
		})
	}
}

func TestStaleLocksOfOurRefsInTheHubAreReaped(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, func(s *Settings) { s.LockGrace = time.Hour })
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	req := b.landRequest(a, fence, w)
	lock := filepath.Join(b.repo, ".git", TruthRef(testRun)+".lock")
	writeFile(t, filepath.Dir(lock), filepath.Base(lock), "")
	_, err := b.mirror.Land(t.Context(), req)
	require.ErrorIs(t, err, ErrLocked, "a young lock may have an owner")
	require.FileExists(t, lock)
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(lock, old, old))
	users := filepath.Join(b.repo, ".git/refs/heads/main.lock")
	writeFile(t, filepath.Dir(users), "main.lock", "")
	require.NoError(t, os.Chtimes(users, old, old))
	res, err := b.mirror.Land(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, Landed, res.Status)
	require.NoFileExists(t, lock)
	require.FileExists(t, users, "not ours")
}

func TestLockWithALiveGitIsNotReaped(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, func(s *Settings) { s.LockGrace = time.Nanosecond })
	gitDir := filepath.Join(b.repo, ".git")
	lock := filepath.Join(gitDir, TruthRef(testRun)+".lock")
	writeFile(t, filepath.Dir(lock), filepath.Base(lock), "")
	stop := liveGit(t, b.store, gitDir)
	gone, err := b.store.reap(gitDir, lock)
	require.NoError(t, err)
	require.False(t, gone)
	stop()
	gone, err = b.store.reap(gitDir, lock)
	require.NoError(t, err)
	require.True(t, gone)
}
