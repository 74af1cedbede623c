package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSnapshotTakesUncommittedStateAndTouchesNothing(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	head := plainGit(t, repo, "rev-parse", "HEAD")
	m := newMirror(t, newStore(t, nil), repo, Options{})
	clean, err := m.Snapshot(t.Context(), testTime)
	require.NoError(t, err)
	require.Equal(t, Snapshot{Commit: head}, clean)

	writeFile(t, repo, "src/a.txt", "staged\n")
	plainGit(t, repo, "add", "src/a.txt")
	writeFile(t, repo, "src/b.txt", "not staged\n")
	writeFile(t, repo, "new ü.txt", "untracked\n")
	writeFile(t, repo, "added.txt", "added\n")
	plainGit(t, repo, "add", "added.txt")
	writeFile(t, repo, "x.log", "ignored\n")
	writeFile(t, repo, ".env.production", "SECRET=1\n")
	writeFile(t, repo, "deploy/id_rsa", "key\n")
	writeFile(t, repo, "certs/server.pem", "key\n")
	require.NoError(t, os.Remove(filepath.Join(repo, "docs/list.md")))
	plainGit(t, repo, "rm", "-q", "src/c.txt")
	before := everythingElse(t, repo)
	objects := plainGit(t, repo, "count-objects", "-v")
	s, err := m.Snapshot(t.Context(), testTime)
	require.NoError(t, err)
	require.Equal(t, before, everythingElse(t, repo))
	require.Equal(t, objects, plainGit(t, repo, "count-objects", "-v"))
	require.Equal(t, []string{"added.txt", "docs/list.md", "new ü.txt", "src/a.txt", "src/b.txt", "src/c.txt"}, s.Paths)
	require.Equal(t, []string{".env.production", "certs/server.pem", "deploy/id_rsa"}, s.Excluded)
	require.Equal(t, head, plainGit(t, m.Dir(), "rev-parse", s.Commit+"^"))
	// A run on it: OpenTruth brings the objects.
	b := &bench{t: t, repo: repo, store: m.store, mirror: m, base: s.Commit}
	_, err = m.OpenTruth(t.Context(), testRun, s.Commit)
	require.NoError(t, err)
	b.expectTree(s.Commit, map[string]string{"src/a.txt": "staged\n", "src/b.txt": "not staged\n", "new ü.txt": "untracked\n",
		"added.txt": "added\n", "docs/list.md": "", "src/c.txt": ""})
	b.landEdit("n1", "new ü.txt", "repaired\n")
	plainGit(t, repo, "fsck", "--strict", "--no-dangling")
}

func TestSnapshotWhoseTransferWasKilledIsSentAgain(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	m := newMirror(t, newStore(t, nil), repo, Options{})
	writeFile(t, repo, "src/a.txt", "not committed\n")
	s, err := m.Snapshot(t.Context(), testTime)
	require.NoError(t, err)
	// What a kill left: the commit came first, its trees did not come.
	commit := plainGit(t, m.Dir(), "cat-file", "commit", s.Commit)
	require.Equal(t, s.Commit, plainGitInput(t, repo, commit+"\n", "hash-object", "-t", "commit", "-w", "--stdin"))
	_, err = m.OpenTruth(t.Context(), testRun, s.Commit)
	require.NoError(t, err)
	plainGit(t, repo, "rev-list", "--objects", "--quiet", TruthRef(testRun))
}

func TestSnapshotInTheMiddleOfAMergeIsRefused(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	m := newMirror(t, newStore(t, nil), repo, Options{})
	blob := plainGit(t, repo, "rev-parse", "HEAD:src/a.txt")
	plainGitInput(t, repo, "100644 "+blob+" 1\tsrc/x\n100644 "+blob+" 2\tsrc/x\n", "update-index", "--index-info")
	_, err := m.Snapshot(t.Context(), testTime)
	require.ErrorIs(t, err, ErrUnmerged)
}

func TestTargetsThatExistOnlyUncommittedAreNamed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		writeFile(t, b.repo, "src/untracked.txt", "x")
		writeFile(t, b.repo, "fresh/dir/x.txt", "x")
		got, err := b.mirror.UncommittedTargets(t.Context(), b.base, []string{"src/untracked.txt", "src/a.txt", "src", "absent.txt", "fresh/dir", "../hub/src/a.txt", "dir with ü/f 1.md"})
		require.NoError(t, err)
		if url {
			require.Empty(t, got)
		} else {
			require.Equal(t, []string{"fresh/dir", "src/untracked.txt"}, got)
		}
	})
}

func TestFilesAndDiffsOfACommit(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	c := b.landEdit("n1", "src/a.txt", "changed\n")
	text, err := b.mirror.ReadFile(t.Context(), b.base, "dir with ü/f 1.md")
	require.NoError(t, err)
	require.Equal(t, "x\n", string(text))
	for _, name := range []string{"absent", "src", "-x", "../x", "src/*.txt", ":(glob)src/*.txt"} {
		_, err = b.mirror.ReadFile(t.Context(), b.base, name)
		require.Error(t, err, name)
	}
	_, err = b.mirror.ReadFile(t.Context(), "--help", "x")
	require.ErrorIs(t, err, ErrBaseUnknown)
	_, err = b.mirror.ReadFile(t.Context(), b.base, "absent")
	require.ErrorIs(t, err, os.ErrNotExist)
	files, err := b.mirror.ListFiles(t.Context(), b.base)
	require.NoError(t, err)
	require.Len(t, files, len(seedFiles))
	files, err = b.mirror.ListFiles(t.Context(), b.base, "bin", "README.md")
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "100755", files[1].Mode)
	require.EqualValues(t, len(seedFiles["bin/run.sh"]), files[1].Size)
	paths, err := b.mirror.ChangedPaths(t.Context(), b.base, c)
	require.NoError(t, err)
	require.Equal(t, []string{"src/a.txt"}, paths)
	diff, err := b.mirror.Diff(t.Context(), b.base, c)
	require.NoError(t, err)
	plainGitInput(t, b.repo, string(diff), "apply", "--check")
	diff, err = b.mirror.Diff(t.Context(), b.base, c, "docs")
	require.NoError(t, err)
	require.Empty(t, diff)
}
