package gitrepo

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everythingElse reads all files below a repository, but our refs and objects.
func everythingElse(t *testing.T, repo string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(repo, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(repo, p)
		switch {
		case rel == ".git/objects", rel == ".git/refs/mendflow", rel == ".git/refs/heads/mendflow",
			rel == ".git/logs/refs/heads/mendflow": // written by the receiving side of a push
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		files[rel] = info.ModTime().String() + info.Mode().String() + string(text)
		return err
	})
	require.NoError(t, err)
	return files
}

func TestHubKeepsEveryByteButRefsAndObjects(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	writeFile(t, repo, "src/a.txt", "uncommitted\n")
	writeFile(t, repo, "untracked.txt", "untracked\n")
	plainGit(t, repo, "add", "src/a.txt")
	writeFile(t, repo, "src/a.txt", "uncommitted after staging\n")
	plainGit(t, repo, "checkout", "-q", "-b", "users-branch")
	before := everythingElse(t, repo)
	b := openRunOn(t, repo, false, Options{}, nil)
	fingerprint, err := b.store.HubFingerprint(t.Context(), b.mirror.Hub())
	require.NoError(t, err)
	for _, n := range []string{"n1", "n2"} {
		a := attempt(n, 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/"+n+".txt", "work\n")
		_, err := w.Salvage(t.Context(), Scope{}, testTime)
		require.NoError(t, err)
		require.Equal(t, Landed, b.land(a, fence, w).Status)
		require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
	}
	_, err = b.mirror.PushSalvage(t.Context(), testRun)
	require.NoError(t, err)
	require.NoError(t, b.mirror.Probe(t.Context()))
	_, err = b.mirror.Snapshot(t.Context(), testTime)
	require.NoError(t, err)
	_, err = b.store.HubFingerprint(t.Context(), b.mirror.Hub())
	require.NoError(t, err)
	require.NoError(t, b.mirror.DropRun(t.Context(), "another", true, true))
	require.Equal(t, before, everythingElse(t, repo))
	again, err := b.store.HubFingerprint(t.Context(), b.mirror.Hub())
	require.NoError(t, err)
	require.Empty(t, fingerprint.Differs(again))
}

func TestFingerprintNamesWhatChanged(t *testing.T) {
	t.Parallel()
	for part, change := range map[string]func(repo string){
		"head":   func(repo string) { plainGit(t, repo, "symbolic-ref", "HEAD", "refs/heads/elsewhere") },
		"refs":   func(repo string) { plainGit(t, repo, "tag", "x") },
		"index":  func(repo string) { plainGit(t, repo, "rm", "-q", "--cached", "untracked-but-added.txt") },
		"status": func(repo string) { writeFile(t, repo, "src/a.txt", "dirtier\n") },
		"config": func(repo string) { plainGit(t, repo, "config", "x.y", "z") },
		"hooks":  func(repo string) { writeFile(t, repo, ".git/hooks/pre-commit", "x") },
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			repo := newHub(t)
			s := newStore(t, nil)
			plainGit(t, repo, "branch", "elsewhere")
			writeFile(t, repo, "src/a.txt", "dirty \n")
			writeFile(t, repo, "untracked-but-added.txt", "x")
			plainGit(t, repo, "add", "untracked-but-added.txt")
			hub, err := ResolveHub(t.Context(), repo)
			require.NoError(t, err)
			before, err := s.HubFingerprint(t.Context(), hub)
			require.NoError(t, err)
			change(repo)
			after, err := s.HubFingerprint(t.Context(), hub)
			require.NoError(t, err)
			require.Contains(t, strings.Join(before.Differs(after), " "), part)
		})
	}
}
