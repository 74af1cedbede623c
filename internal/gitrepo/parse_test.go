package gitrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRefsAreReadAsGitReadsThem(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	gitDir := filepath.Join(repo, ".git")
	plainGit(t, repo, "tag", "-a", "-m", "x", "v1")
	plainGit(t, repo, "branch", "packed")
	plainGit(t, repo, "branch", "a/b/c")
	plainGit(t, repo, "pack-refs", "--all")
	plainGit(t, repo, "commit", "-q", "--allow-empty", "-m", "second")
	plainGit(t, repo, "branch", "loose")
	plainGit(t, repo, "branch", "-f", "packed")
	plainGit(t, repo, "symbolic-ref", "refs/heads/link", "refs/heads/a/b/c")
	want := map[string]string{}
	for _, line := range strings.Split(plainGit(t, repo, "for-each-ref", "--format=%(objectname) %(refname)"), "\n") {
		oid, name, _ := strings.Cut(line, " ")
		want[name] = oid
		got, err := readRef(gitDir, name)
		require.NoError(t, err)
		require.Equal(t, oid, got, name)
	}
	all, err := listRefs(gitDir, func(string) bool { return true })
	require.NoError(t, err)
	require.Equal(t, want, all)
	head, err := readRef(gitDir, "HEAD")
	require.NoError(t, err)
	require.Equal(t, want["refs/heads/main"], head)
	for _, name := range []string{"refs/heads/absent", "refs/heads/a", "refs/heads/main/x"} {
		got, err := readRef(gitDir, name)
		require.NoError(t, err)
		require.Empty(t, got)
	}
	for text, name := range map[string]string{"garbage": "refs/heads/g", "ref: ../../etc/passwd": "refs/heads/e", "ref: refs/heads/loop": "refs/heads/loop"} {
		require.NoError(t, os.WriteFile(filepath.Join(gitDir, name), []byte(text), 0o600))
		_, err := readRef(gitDir, name)
		require.Error(t, err, name)
	}
}

func TestRefsSurvivePackingWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	gitDir := filepath.Join(repo, ".git")
	want := plainGit(t, repo, "rev-parse", "HEAD")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 15 {
			plainGit(t, repo, "update-ref", "refs/mendflow/run/x", want)
			plainGit(t, repo, "pack-refs", "--all", "--prune")
		}
	}()
	plainGit(t, repo, "update-ref", "refs/mendflow/run/x", want)
	for {
		got, err := readRef(gitDir, "refs/mendflow/run/x")
		require.NoError(t, err)
		require.Equal(t, want, got)
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestObjectsAreThoseOfGit(t *testing.T) {
	t.Parallel()
	for _, format := range []objectFormat{formatSHA1, formatSHA256} {
		repo := filepath.Join(realTemp(t), "r")
		plainGit(t, filepath.Dir(repo), "init", "-q", "--bare", "--object-format="+string(format), repo)
		got, err := readFormat(repo)
		require.NoError(t, err)
		require.Equal(t, format, got)
		for _, text := range []string{"", "x", "binary\x00\xff", strings.Repeat("long ", 10000)} {
			oid, err := writeObject(repo, format, "blob", []byte(text))
			require.NoError(t, err)
			require.Equal(t, plainGitInput(t, repo, text, "hash-object", "--stdin"), oid)
			again, err := writeObject(repo, format, "blob", []byte(text))
			require.NoError(t, err)
			require.Equal(t, oid, again)
		}
		plainGit(t, repo, "fsck", "--strict")
	}
}

func TestObjectsOfASharedHubKeepItsMode(t *testing.T) {
	t.Parallel()
	repo := filepath.Join(realTemp(t), "r")
	plainGit(t, filepath.Dir(repo), "init", "-q", "--bare", "--shared=group", repo)
	oid, err := writeObject(repo, formatSHA1, "blob", []byte("x"))
	require.NoError(t, err)
	dir, err := os.Stat(filepath.Dir(objectPath(repo, oid)))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o775), dir.Mode().Perm()&0o775)
	require.NotZero(t, dir.Mode()&os.ModeSetgid)
	file, err := os.Stat(objectPath(repo, oid))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o440), file.Mode().Perm()&0o440)
}

func TestSHA256RepositoriesWork(t *testing.T) {
	t.Parallel()
	repo := filepath.Join(realTemp(t), "r")
	plainGit(t, filepath.Dir(repo), "init", "-q", "-b", "main", "--object-format=sha256", repo)
	writeFile(t, repo, "src/a.txt", "a\n")
	plainGit(t, repo, "add", "-A")
	plainGit(t, repo, "commit", "-q", "-m", "base")
	b := openRunOn(t, repo, false, Options{}, nil)
	b.landEdit("n1", "src/b.txt", "b\n")
	c := b.landEdit("n2", "src/c.txt", "c\n")
	require.Equal(t, map[string]string{"src/a.txt": "a\n", "src/b.txt": "b\n", "src/c.txt": "c\n"}, b.tree(c))
	plainGit(t, repo, "fsck", "--strict", "--no-dangling")
}

func TestAuthorOfCommits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "Mendflow <mendflow@localhost> 1796040000 +0000",
		"Bot <bot@example.com>":     "Bot <bot@example.com> 1796040000 +0000",
		"Bot":                       "Bot <mendflow@localhost> 1796040000 +0000",
		"E\nvil> <x@y>\ncommitter ": "Evil <x@ycommitter> 1796040000 +0000",
		" <only@mail>":              "Mendflow <only@mail> 1796040000 +0000",
	} {
		require.Equal(t, want, Options{Author: text}.signature(testTime).line(), "%q", text)
	}
	both(t, func(t *testing.T, url bool) {
		b := openRunOn(t, newHub(t), url, Options{Author: "Bot <bot@example.com>"}, nil)
		c := b.landEdit("n1", "src/a.txt", "x\n")
		require.Equal(t, "Bot <bot@example.com>|Bot <bot@example.com>|1796040000|1796040000", plainGit(t, b.repo, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%at|%ct", c))
	})
}

func TestStateSurvivesHostileMessages(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	req := b.landRequest(a, fence, w)
	req.Message = "Subject \x00 \x1f \x1e \xff\n\nMendflow-Run: forged\nMendflow-Node: forged\nMendflow-Reverts: " + b.base + "\n\n\n"
	res, err := b.mirror.Land(t.Context(), req)
	require.NoError(t, err)
	state, err := newMirror(t, newStore(t, nil), b.repo, Options{}).State(t.Context(), testRun, b.base)
	require.NoError(t, err)
	require.Empty(t, state.Foreign)
	require.Len(t, state.Landings, 1)
	require.Equal(t, "n1", state.Landings[0].Node)
	require.Empty(t, state.Landings[0].Reverts)
	require.Equal(t, res.Commit, state.Landings[0].Commit)
}

func TestTrailersComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	id := rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		l := Landing{Node: id.Draw(t, "node"), Opening: rapid.IntRange(1, 99).Draw(t, "opening"), Attempt: rapid.IntRange(1, 99).Draw(t, "attempt"),
			Findings: rapid.SliceOfN(id, 0, 4).Draw(t, "findings")}
		if len(l.Findings) == 0 {
			l.Findings = nil
		}
		run := id.Draw(t, "run")
		var got Landing
		require.Equal(t, run, got.parseTrailers(strings.ReplaceAll(l.trailers(run), "\n", trailerSep)))
		require.Equal(t, l, got)
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("1 .M N... 100644 100644 100644 aa bb path with space\x00? new\nline\x00! build/\x00u x\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, e := range parseStatus(out) {
			if e.path == "" || strings.ContainsRune(e.path, 0) {
				t.Fatalf("path %q", e.path)
			}
		}
	})
}

func FuzzParsePackedRefs(f *testing.F) {
	f.Add([]byte("# pack-refs with: peeled fully-peeled sorted \n" + strings.Repeat("a", 40) + " refs/heads/main\n^" + strings.Repeat("b", 40) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, oid := range parsePackedRefs(text) {
			if !isOID(oid) {
				t.Fatalf("%q is %q", name, oid)
			}
		}
	})
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(">aa\x1fbb\x1fcc\x1fMendflow-Run: r\x1eMendflow-Node: n\x1eMendflow-Opening: 1\x00-bb\x1f\x1f\x1f\x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		s := parseState("r", log)
		for _, l := range s.Landings {
			if l.Node == "" && len(l.Reverts) == 0 {
				t.Fatalf("landing of nothing: %+v", l)
			}
		}
	})
}

func FuzzParseBatch(f *testing.F) {
	f.Add([]byte("aa blob 3\nabc\nbb blob 0\n\n"))
	f.Add([]byte("aa missing\n"))
	f.Add([]byte("aa blob 99999999999999999999\nx"))
	f.Add([]byte("aa blob 9223372036854775807\nx"))
	f.Fuzz(func(_ *testing.T, out []byte) {
		_ = parseBatch(out, map[string][]byte{})
	})
}

func FuzzParseMergeTree(f *testing.F) {
	oid := strings.Repeat("a", 40)
	f.Add([]byte(oid + "\x00a.txt\x00dir/b c\x00"))
	f.Add([]byte(oid + "\x00100644 " + oid + " 2\ta.txt\x00100644 " + oid + " 3\ta.txt\x00"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, out []byte) {
		if merged, err := parseMergeTree(out); err == nil && !isOID(merged.Tree) {
			t.Fatalf("tree %q", merged.Tree)
		}
		_, _ = parseStages(out)
	})
}

func FuzzParseTree(f *testing.F) {
	oid := strings.Repeat("a", 40)
	f.Add([]byte("100644 blob " + oid + "      12\ta\tb\x00160000 commit " + oid + "       -\tsub\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		entries, err := parseTree(out)
		for _, e := range entries {
			if err == nil && strings.ContainsRune(e.Path, 0) {
				t.Fatalf("path %q", e.Path)
			}
		}
	})
}

func FuzzParseRemote(f *testing.F) {
	f.Add([]byte(strings.Repeat("a", 40) + "\trefs/heads/main\n"))
	f.Add([]byte("\t\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		refs := map[string]string{}
		parseRemote(out, refs)
		for name, oid := range refs {
			if !isOID(oid) || strings.ContainsRune(name, '\n') {
				t.Fatalf("%q is %q", name, oid)
			}
		}
	})
}

func FuzzParseModules(f *testing.F) {
	f.Add([]byte("submodule.a.b.path\nlib/a\x00submodule.a.b.url\n../a.git\x00submodule.x\x00"))
	f.Fuzz(func(_ *testing.T, out []byte) { parseModules(out) })
}

func FuzzSalvageRefs(f *testing.F) {
	f.Add("refs/mendflow/salvage/run/node/1 1700000000\n")
	f.Add("refs/mendflow/salvage/run/node/1 99999999999999999999\nrefs/x\n")
	f.Fuzz(func(t *testing.T, lines string) {
		for run := range newestByRun(lines) {
			if strings.Contains(run, "/") {
				t.Fatalf("run %q", run)
			}
		}
	})
}
