package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withSubmodule is a hub with the seed repository as its submodule "libs/the lib".
func withSubmodule(t *testing.T) (repo, lib string) {
	t.Helper()
	repo, lib = newHub(t), newHub(t)
	plainGit(t, repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "file://"+lib, "libs/the lib")
	plainGit(t, repo, "commit", "-q", "-m", "submodule")
	return repo, lib
}

func TestSubmodulesComeFromTheHubsOwnStore(t *testing.T) {
	t.Parallel()
	repo, lib := withSubmodule(t)
	require.NoError(t, os.Rename(lib, lib+"-away")) // nothing is downloaded
	b := openRunOn(t, repo, false, Options{}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	missing, err := w.InitSubmodules(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, seedFiles["src/a.txt"], readFile(t, w.Path(), "libs/the lib/src/a.txt"))
	before := b.store.Commands()
	_, err = w.InitSubmodules(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, b.store.Commands()-before, int64(4), "not cloned again")
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.Equal(t, map[string]ChangeKind{"src/a.txt": Modified}, kindsOf(work))
	require.Empty(t, work.Gitlinks)
	writeFile(t, w.Path(), "libs/the lib/src/a.txt", "edited inside the submodule\n")
	work, err = w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.Equal(t, []string{"libs/the lib"}, work.Gitlinks)
	res := b.land(a, fence, w)
	require.Equal(t, "submodule "+plainGit(t, lib+"-away", "rev-parse", "HEAD"), b.tree(res.Commit)["libs/the lib"])
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{Reusable: true}))
	_, next := b.start(attempt("n2", 1))
	entries, err := os.ReadDir(filepath.Join(next.Path(), "libs/the lib"))
	require.NoError(t, err)
	require.Empty(t, entries, "a recycled tree does not carry a submodule that a worker was in")
}

func TestSubmodulesOfAHubByURLAreCloned(t *testing.T) {
	t.Parallel()
	repo, lib := withSubmodule(t)
	b := openRunOn(t, repo, true, Options{}, nil)
	_, w := b.start(attempt("n1", 1))
	missing, err := w.InitSubmodules(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, seedFiles["src/a.txt"], readFile(t, w.Path(), "libs/the lib/src/a.txt"))
	require.NoError(t, os.RemoveAll(lib))
	_, w = b.start(attempt("n2", 1))
	missing, err = w.InitSubmodules(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"libs/the lib"}, missing)
	require.DirExists(t, filepath.Join(w.Path(), "libs/the lib"))
}

func TestSubmoduleURLsAreNeverCommands(t *testing.T) {
	t.Parallel()
	program, mark := trap(t)
	for _, url := range []string{"ext::" + program, "-u" + program, "--upload-pack=" + program} {
		repo := newHub(t)
		head := plainGit(t, repo, "rev-parse", "HEAD")
		plainGit(t, repo, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
		plainGit(t, repo, "config", "-f", ".gitmodules", "submodule.../../x.path", "sub")
		plainGit(t, repo, "config", "-f", ".gitmodules", "submodule.../../x.url", url)
		plainGit(t, repo, "add", ".gitmodules")
		plainGit(t, repo, "commit", "-q", "-m", "x")
		b := openRunOn(t, repo, false, Options{}, nil)
		_, w := b.start(attempt("n1", 1))
		missing, err := w.InitSubmodules(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"sub"}, missing)
	}
	require.NoFileExists(t, mark)
}

func TestRelativeSubmoduleURLs(t *testing.T) {
	t.Parallel()
	for hub, want := range map[string]string{
		"https://example.com/org/repo.git": "https://example.com/org/lib.git", "git@example.com:org/repo.git": "git@example.com:org/lib.git",
	} {
		w := &Worktree{mirror: &Mirror{hub: Hub{URL: hub}}}
		require.Equal(t, want, w.submoduleURL("../lib.git"))
		require.Equal(t, "https://elsewhere/x", w.submoduleURL("https://elsewhere/x"))
	}
	w := &Worktree{mirror: &Mirror{hub: Hub{Canonical: "/srv/repo", GitDir: "/srv/repo/.git"}}}
	require.Equal(t, "/srv/lib", w.submoduleURL("../lib"))
}
