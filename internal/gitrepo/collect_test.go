package gitrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// kinds maps the committed paths to what happened to them.
func kindsOf(w Work) map[string]ChangeKind {
	m := map[string]ChangeKind{}
	for _, c := range w.Changes {
		m[c.Path] = c.Kind
	}
	return m
}

func inSrc(path string) bool { return strings.HasPrefix(path, "src/") }

// collected starts an attempt, lets the worker do something, and collects it.
func collected(t *testing.T, scope Scope, worker func(b *bench, w *Worktree)) (*bench, *Worktree, Work) {
	t.Helper()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	worker(b, w)
	work, err := w.Collect(t.Context(), scope)
	require.NoError(t, err)
	return b, w, work
}

// committed commits the work into the mirror and returns the tree as the hub's owner would see it.
func committed(t *testing.T, b *bench, w *Worktree, work Work) map[string]string {
	t.Helper()
	c, err := w.Commit(t.Context(), CommitRequest{Attempt: attempt("n1", 1), Work: work, Message: "x", When: testTime})
	require.NoError(t, err)
	mirror := *b
	mirror.repo = b.mirror.dir
	return mirror.tree(c.OID)
}

func TestEveryKindOfChangeIsCollected(t *testing.T) {
	t.Parallel()
	b, w, work := collected(t, Scope{}, func(b *bench, w *Worktree) {
		p := w.Path()
		writeFile(t, p, "src/a.txt", "changed\n")
		writeFile(t, p, "src/new.txt", "new\n")
		writeFile(t, p, "src/bin.dat", "a\x00b")
		require.NoError(t, os.Remove(filepath.Join(p, "src/b.txt")))
		require.NoError(t, os.Chmod(filepath.Join(p, "README.md"), 0o755))
		require.NoError(t, os.Symlink("a.txt", filepath.Join(p, "src/link")))
		require.NoError(t, os.Remove(filepath.Join(p, "src/c.txt")))
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(p, "src/c.txt")))
		require.NoError(t, os.Remove(filepath.Join(p, "docs/list.md")))
		require.NoError(t, unix.Mkfifo(filepath.Join(p, "docs/list.md"), 0o600))
		require.NoError(t, unix.Mkfifo(filepath.Join(p, "src/pipe"), 0o600))
		// A file becomes a folder, a folder a file.
		require.NoError(t, os.Remove(filepath.Join(p, "bin/run.sh")))
		writeFile(t, p, "bin/run.sh/inner", "x\n")
		require.NoError(t, os.RemoveAll(filepath.Join(p, "dir with ü")))
		writeFile(t, p, "dir with ü", "now a file\n")
	})
	require.Equal(t, map[string]ChangeKind{
		"src/a.txt": Modified, "src/new.txt": Added, "src/bin.dat": Added, "src/b.txt": Deleted, "README.md": ModeOnly, "src/link": Linked,
		"src/c.txt": Retyped, "docs/list.md": Deleted, "bin/run.sh": Deleted, "bin/run.sh/inner": Added,
		"dir with ü/f 1.md": Deleted, "dir with ü": Added,
	}, kindsOf(work))
	for _, c := range work.Changes {
		require.Equal(t, c.Path == "src/bin.dat", c.Binary, c.Path)
		if c.Path == "src/a.txt" {
			require.EqualValues(t, 8, c.Size)
		}
	}
	require.Equal(t, map[string]string{
		".gitignore": seedFiles[".gitignore"], "README.md": "+x " + seedFiles["README.md"], "src/a.txt": "changed\n", "src/new.txt": "new\n",
		"src/bin.dat": "a\x00b", "src/link": "-> a.txt", "src/c.txt": "-> /etc/passwd", "bin/run.sh/inner": "x\n", "dir with ü": "now a file\n",
	}, committed(t, b, w, work))
}

func TestNothingDoneIsEmpty(t *testing.T) {
	t.Parallel()
	_, w, work := collected(t, Scope{}, func(_ *bench, w *Worktree) {
		// Rewritten with the same content, and touched.
		writeFile(t, w.Path(), "src/a.txt", seedFiles["src/a.txt"])
	})
	require.True(t, work.Empty())
	_, err := w.Commit(t.Context(), CommitRequest{Attempt: attempt("n1", 1), Work: work, When: testTime})
	require.ErrorIs(t, err, ErrNothingToCommit)
}

func TestOddPathNamesLandAsTheyAre(t *testing.T) {
	t.Parallel()
	names := []string{"src/with space.txt", "src/\"quoted\".txt", "src/new\nline.txt", "src/nfc-\u00fc.txt", "src/nfd-u\u0308.txt", "-dash.txt",
		"--help", "src/tab\t.txt", "src/back\\slash", "src/glob*?[x].txt", ":(top)magic", "src/bad-\xff-utf8", "src/trailing ", "src/ä\"\n -x"}
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 1)
		fence, w := b.start(a)
		want := map[string]string{}
		for _, n := range names {
			writeFile(t, w.Path(), n, n)
			want[n] = n
		}
		res := b.land(a, fence, w)
		b.expectTree(res.Commit, want)
		for _, n := range names {
			text, err := b.mirror.ReadFile(t.Context(), res.Commit, n)
			require.NoError(t, err)
			require.Equal(t, n, string(text))
		}
		// And once more, as changes and deletions of tracked paths.
		a2 := attempt("n2", 1)
		fence, w = b.start(a2)
		for i, n := range names {
			if i%2 == 0 {
				require.NoError(t, os.Remove(filepath.Join(w.Path(), n)))
				want[n] = ""
			} else {
				writeFile(t, w.Path(), n, "again")
				want[n] = "again"
			}
		}
		res = b.land(a2, fence, w)
		b.expectTree(res.Commit, want)
	})
}

func TestWorkersOwnCommitsAndIndexAreCollected(t *testing.T) {
	t.Parallel()
	b, w, work := collected(t, Scope{}, func(_ *bench, w *Worktree) {
		p := w.Path()
		plainGit(t, p, "checkout", "-q", "-b", "mine")
		writeFile(t, p, "src/a.txt", "committed\n")
		writeFile(t, p, "forced.log", "committed although ignored\n")
		plainGit(t, p, "add", "-f", ".")
		plainGit(t, p, "commit", "-q", "-m", "first")
		plainGit(t, p, "checkout", "-q", "--detach")
		writeFile(t, p, "src/b.txt", "committed when detached\n")
		plainGit(t, p, "commit", "-q", "-am", "second")
		writeFile(t, p, "hidden-staged.txt", "staged although ignored\n")
		plainGit(t, p, "add", "-f", "hidden-staged.txt")
		writeFile(t, p, "src/c.txt", "in the tree only\n")
		plainGit(t, p, "update-index", "--assume-unchanged", "src/c.txt")
		writeFile(t, p, "README.md", "hidden from status\n")
		plainGit(t, p, "update-index", "--skip-worktree", "README.md")
	})
	require.Len(t, work.Commits, 2)
	require.Equal(t, map[string]ChangeKind{"src/a.txt": Modified, "src/b.txt": Modified, "src/c.txt": Modified, "README.md": Modified,
		"forced.log": Added, "hidden-staged.txt": Added}, kindsOf(work))
	got := committed(t, b, w, work)
	require.Equal(t, "committed\n", got["src/a.txt"])
	require.Equal(t, "hidden from status\n", got["README.md"])
	require.Equal(t, "staged although ignored\n", got["hidden-staged.txt"])
}

func TestBrokenIndexOrHeadOfTheWorkerDoesNotHideTheTree(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(w *Worktree){
		"index garbage": func(w *Worktree) { writeFile(t, w.AdminDir(), "index", "garbage") },
		"index gone":    func(w *Worktree) { require.NoError(t, os.Remove(w.workerIndex())) },
		"index locked":  func(w *Worktree) { writeFile(t, w.AdminDir(), "index.lock", "") },
		"head garbage":  func(w *Worktree) { writeFile(t, w.AdminDir(), "HEAD", "garbage") },
		"unborn branch": func(w *Worktree) { plainGit(t, w.Path(), "checkout", "-q", "--orphan", "fresh") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, work := collected(t, Scope{}, func(_ *bench, w *Worktree) {
				writeFile(t, w.Path(), "src/a.txt", "work\n")
				breakIt(w)
			})
			require.Equal(t, map[string]ChangeKind{"src/a.txt": Modified}, kindsOf(work))
		})
	}
}

func TestIgnoredSourceInsideTheScopeIsForced(t *testing.T) {
	t.Parallel()
	literal := "build/out/wanted.bin"
	scope := Scope{Has: inSrc, Ignored: func(p string) bool { return inSrc(p) || strings.HasPrefix(p, "build/out/") },
		Literal: func(p string) bool { return p == literal }}
	_, _, work := collected(t, scope, func(_ *bench, w *Worktree) {
		p := w.Path()
		writeFile(t, p, "src/hidden-source.txt", "source\n")
		writeFile(t, p, "src/trace.log", "a log\n")
		writeFile(t, p, "src/hidden-binary.txt", "a\x00b")
		writeFile(t, p, "src/node_modules/x/index.js", "generated\n")
		writeFile(t, p, "build/out/gen.txt", "source in an ignored folder\n")
		writeFile(t, p, literal, "a\x00b")
		writeFile(t, p, "build/other.txt", "outside the scope\n")
		writeFile(t, p, "hidden-elsewhere.txt", "outside the scope\n")
		plainGit(t, p, "init", "-q", "build/out/nested")
		writeFile(t, p, "build/out/nested/file.txt", "x\n")
	})
	require.Equal(t, map[string]ChangeKind{"src/hidden-source.txt": Added, "build/out/gen.txt": Added, literal: Added}, kindsOf(work))
	for _, c := range work.Changes {
		require.True(t, c.Forced)
	}
	require.Equal(t, []string{"src/hidden-binary.txt", "src/trace.log"}, work.Hidden)
}

func TestScopeThatOwnsEverythingForcesNoIgnoredFile(t *testing.T) {
	t.Parallel()
	_, _, work := collected(t, Scope{}, func(_ *bench, w *Worktree) {
		writeFile(t, w.Path(), "hidden-x.txt", "x\n")
		writeFile(t, w.Path(), "build/x.txt", "x\n")
	})
	require.True(t, work.Empty())
}

func TestScratchAndNestedRepositoriesDoNotLand(t *testing.T) {
	t.Parallel()
	scope := Scope{Has: inSrc}
	b, w, work := collected(t, scope, func(b *bench, w *Worktree) {
		p := w.Path()
		writeFile(t, p, "src/a.txt", "work\n")
		writeFile(t, p, "notes.tmp", "x")
		writeFile(t, p, "tmp/x.txt", "x")
		writeFile(t, p, ".env.local", "SECRET=1")
		writeFile(t, p, "other/real.txt", "an edit outside the scope\n")
		plainGit(t, p, "clone", "-q", b.repo, "copy-of-repo")
		plainGit(t, p, "init", "-q", "src/nested")
		plainGit(t, p, "-C", "src/nested", "commit", "-q", "--allow-empty", "-m", "x")
		writeFile(t, p, "src/nested/x.txt", "x\n")
	})
	require.Equal(t, map[string]ChangeKind{"src/a.txt": Modified, "other/real.txt": Added}, kindsOf(work))
	require.Equal(t, []string{".env.local", "notes.tmp", "tmp/x.txt"}, work.Scratch)
	require.Equal(t, []string{"copy-of-repo", "src/nested"}, work.Nested)
	require.NotContains(t, committed(t, b, w, work), "src/nested")
	require.NoError(t, w.RemoveLeftovers(work))
	require.NoDirExists(t, filepath.Join(w.Path(), "copy-of-repo"))
	require.NoFileExists(t, filepath.Join(w.Path(), "notes.tmp"))
	require.FileExists(t, filepath.Join(w.Path(), "other/real.txt"))
}

func TestLeftoversAreNotRemovedThroughLinks(t *testing.T) {
	t.Parallel()
	_, w, _ := collected(t, Scope{}, func(*bench, *Worktree) {})
	outside := realTemp(t)
	writeFile(t, outside, "precious", "x")
	require.NoError(t, os.Symlink(outside, filepath.Join(w.Path(), "way")))
	require.Error(t, w.RemoveLeftovers(Work{Scratch: []string{"way/precious"}}))
	require.Error(t, w.RemoveLeftovers(Work{Scratch: []string{"../../x"}}))
	require.FileExists(t, filepath.Join(outside, "precious"))
}

func TestLineEndsAreComparedNormalised(t *testing.T) {
	t.Parallel()
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	repo := newHub(t)
	writeFile(t, repo, "src/win.txt", crlf("w1\nw2\nw3\n"))
	writeFile(t, repo, "src/mixed.txt", "m1\r\nm2\n")
	plainGit(t, repo, "add", "-A")
	plainGit(t, repo, "commit", "-q", "-m", "windows file")
	b := openRunOn(t, repo, false, Options{}, nil)
	_, w := b.start(attempt("n1", 1))
	p := w.Path()
	writeFile(t, p, "README.md", crlf(seedFiles["README.md"]))                 // rewritten, outside
	writeFile(t, p, "src/a.txt", crlf(seedFiles["src/a.txt"])+"real edit\r\n") // rewritten and edited
	writeFile(t, p, "src/win.txt", "w1\nw2\nedited\n")                         // the other way round
	writeFile(t, p, "src/b.txt", crlf(seedFiles["src/b.txt"]))                 // rewritten inside the scope: the worker's to decide
	writeFile(t, p, "src/mixed.txt", "m1\r\nm2\nm3\n")
	work, err := w.Collect(t.Context(), Scope{Has: inSrc})
	require.NoError(t, err)
	require.Equal(t, []string{"README.md"}, work.EOLOnly)
	require.True(t, work.Normalised())
	got := committed(t, b, w, work)
	require.Equal(t, seedFiles["README.md"], got["README.md"])
	require.Equal(t, seedFiles["src/a.txt"]+"real edit\n", got["src/a.txt"])
	require.Equal(t, crlf("w1\nw2\nedited\n"), got["src/win.txt"])
	require.Equal(t, crlf(seedFiles["src/b.txt"]), got["src/b.txt"])
	require.Equal(t, "m1\r\nm2\nm3\n", got["src/mixed.txt"])
}

func TestTextAttributeOfTheRepositoryIsHonoured(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	writeFile(t, repo, ".gitattributes", "*.txt text eol=crlf\n")
	plainGit(t, repo, "add", "-A")
	plainGit(t, repo, "commit", "-q", "-m", "attributes")
	b := openRunOn(t, repo, false, Options{}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	require.Equal(t, "b1\r\nb2\r\nb3\r\n", readFile(t, w.Path(), "src/b.txt"))
	writeFile(t, w.Path(), "src/b.txt", "b1\r\nb2\r\nb3\r\nb4\r\n")
	res := b.land(a, fence, w)
	require.Equal(t, "b1\nb2\nb3\nb4\n", b.tree(res.Commit)["src/b.txt"])
}

func TestLFSPointersStayPointers(t *testing.T) {
	t.Parallel()
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 12345\n"
	repo := newHub(t)
	writeFile(t, repo, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	writeFile(t, repo, "big.bin", pointer)
	plainGit(t, repo, "add", "-A")
	plainGit(t, repo, "commit", "-q", "-m", "lfs")
	b := openRunOn(t, repo, false, Options{}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	require.Equal(t, pointer, readFile(t, w.Path(), "big.bin"))
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	writeFile(t, w.Path(), "second.bin", pointer)
	res := b.land(a, fence, w)
	require.Equal(t, pointer, b.tree(res.Commit)["big.bin"])
	require.Equal(t, pointer, b.tree(res.Commit)["second.bin"])
}

func TestLinkedFoldersAreNoEditAndAreRemovedAsLinks(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	writeFile(t, repo, "node_modules/dep/index.js", "precious\n")
	writeFile(t, repo, "vendor-cache/x", "precious\n") // not ignored: would show as untracked
	opts := Options{Link: []string{"node_modules", "vendor-cache", "absent", "../escape"}}
	b := openRunOn(t, repo, false, opts, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	require.Equal(t, "precious\n", readFile(t, w.Path(), "node_modules/dep/index.js"))
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	work, err := w.Collect(t.Context(), Scope{Ignored: func(string) bool { return true }})
	require.NoError(t, err)
	require.Equal(t, map[string]ChangeKind{"src/a.txt": Modified}, kindsOf(work))
	require.Empty(t, work.Nested)
	require.NoError(t, w.DiscardChanges(t.Context(), b.base))
	require.Equal(t, Landed, func() LandStatus {
		writeFile(t, w.Path(), "src/a.txt", "work\n")
		return b.land(a, fence, w).Status
	}())
	require.NoError(t, w.Release(t.Context(), ReleaseOptions{}))
	require.NoError(t, b.store.Close())
	require.Equal(t, "precious\n", readFile(t, repo, "node_modules/dep/index.js"))
	require.Equal(t, "precious\n", readFile(t, repo, "vendor-cache/x"))
}

func TestTheSameWorkGivesTheSameCommit(t *testing.T) {
	t.Parallel()
	b, w, work := collected(t, Scope{}, func(_ *bench, w *Worktree) { writeFile(t, w.Path(), "src/a.txt", "x\n") })
	req := CommitRequest{Attempt: attempt("n1", 1), Work: work, Message: "Subject\n\nBody\n\nMendflow-Node: forged", When: testTime}
	first, err := w.Commit(t.Context(), req)
	require.NoError(t, err)
	again, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	req.Work = again
	second, err := w.Commit(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "n1", plainGit(t, b.mirror.dir, "log", "-1", "--format=%(trailers:key=Mendflow-Node,valueonly)", first.OID)[:2])
	require.Equal(t, "", plainGit(t, w.Path(), "diff", "--cached", "--name-only"), "the worker's index did not change")
	require.Equal(t, b.base, plainGit(t, w.Path(), "rev-parse", "HEAD"))
}

func TestAGoneTreeIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	require.NoError(t, os.RemoveAll(w.Path()))
	_, err := w.Collect(t.Context(), Scope{})
	require.ErrorIs(t, err, ErrOutOfPlace)
}
