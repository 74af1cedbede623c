package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// trap is a program that leaves a mark when it is run.
func trap(t *testing.T) (program, mark string) {
	t.Helper()
	dir := realTemp(t)
	mark = filepath.Join(dir, "ran")
	program = filepath.Join(dir, "trap.sh")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho ran >> '"+mark+"'\ncat\n"), 0o755))
	return program, mark
}

// armed makes a repository whose configuration runs the program on about everything.
func armed(t *testing.T, dir, program string) {
	t.Helper()
	plainGit(t, filepath.Dir(dir), "init", "-q", dir)
	// Without a commit and an index git takes it for nothing.
	writeFile(t, dir, "tracked-by-it.txt", "x\n")
	plainGit(t, dir, "add", "tracked-by-it.txt")
	plainGit(t, dir, "commit", "-q", "-m", "x")
	writeFile(t, dir, "tracked-by-it.txt", "y\n") // of the same size: only its filter tells whether it changed
	for _, key := range []string{"core.fsmonitor", "filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.external", "diff.x.textconv",
		"core.sshCommand", "gpg.program", "core.pager", "core.editor", "uploadpack.packObjectsHook"} {
		plainGit(t, dir, "config", key, program)
	}
	plainGit(t, dir, "config", "core.hooksPath", filepath.Dir(program))
	plainGit(t, dir, "config", "commit.gpgSign", "true")
	writeFile(t, filepath.Join(dir, ".git", "info"), "attributes", "* filter=x diff=x\n")
}

// wholeLife takes a tree through everything that runs git after a worker was in it.
func wholeLife(t *testing.T, b *bench, a Attempt, fence Fence, w *Worktree) {
	t.Helper()
	ctx := t.Context()
	_, err := w.Facts(ctx)
	require.NoError(t, err)
	salvage, err := w.Salvage(ctx, Scope{Has: inSrc, Ignored: inSrc}, testTime)
	require.NoError(t, err)
	require.NotEmpty(t, salvage.Commit)
	res := b.land(a, fence, w)
	require.Equal(t, Landed, res.Status)
	tree := plainGit(t, b.repo, "rev-parse", res.Commit+"^{tree}")
	require.NoError(t, w.CheckoutTree(ctx, tree, res.Commit))
	require.NoError(t, w.AssertInPlace(res.Commit))
	require.NoError(t, w.DiscardChanges(ctx, tree))
	require.NoError(t, w.Release(ctx, ReleaseOptions{Reusable: true}))
	_, next := b.start(attempt("next", 1))
	require.NoError(t, next.AssertInPlace(res.Commit))
	require.Empty(t, plainGit(t, next.Path(), "status", "--porcelain", "--ignored"))
}

func TestReplacedGitFileRunsNothing(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t *testing.T, tree, program string){
		"file": func(t *testing.T, tree, program string) {
			evil := filepath.Join(realTemp(t), "evil")
			armed(t, evil, program)
			writeFile(t, tree, ".git", "gitdir: "+evil+"/.git\n")
		},
		"folder": func(t *testing.T, tree, program string) {
			require.NoError(t, os.Remove(filepath.Join(tree, ".git")))
			armed(t, tree, program)
		},
		"link": func(t *testing.T, tree, program string) {
			evil := filepath.Join(realTemp(t), "evil")
			armed(t, evil, program)
			require.NoError(t, os.Remove(filepath.Join(tree, ".git")))
			require.NoError(t, os.Symlink(filepath.Join(evil, ".git"), filepath.Join(tree, ".git")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, mark := trap(t)
			b := openRun(t, false, nil)
			a := attempt("n1", 1)
			fence, w := b.start(a)
			replace(t, w.Path(), program)
			writeFile(t, w.Path(), ".gitattributes", "* filter=x diff=x merge=x\n")
			writeFile(t, w.Path(), "src/a.txt", "work\n")
			wholeLife(t, b, a, fence, w)
			require.NoFileExists(t, mark)
		})
	}
}

func TestNestedRepositoriesAreNeverEntered(t *testing.T) {
	t.Parallel()
	program, mark := trap(t)
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	for _, dir := range []string{"nested", "src/nested", "build/nested", "src"} {
		nested := filepath.Join(w.Path(), dir)
		require.NoError(t, os.MkdirAll(nested, 0o755))
		armed(t, nested, program)
		writeFile(t, nested, "file.txt", "x\n")
	}
	wholeLife(t, b, a, fence, w)
	require.NoFileExists(t, mark)
}

func TestGitlinkOfTheBaseIsNeverEntered(t *testing.T) {
	t.Parallel()
	program, mark := trap(t)
	repo := newHub(t)
	head := plainGit(t, repo, "rev-parse", "HEAD")
	plainGit(t, repo, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
	plainGit(t, repo, "commit", "-q", "-m", "gitlink")
	b := openRunOn(t, repo, false, Options{}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	armed(t, filepath.Join(w.Path(), "sub"), program)
	writeFile(t, w.Path(), "sub/file.txt", "x\n")
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	wholeLife(t, b, a, fence, w)
	require.NoFileExists(t, mark)
	require.Equal(t, "submodule "+head, b.tree(b.truth())["sub"])
}

func TestChangedConfigurationOfTheMirrorIsPutBackUnread(t *testing.T) {
	t.Parallel()
	program, mark := trap(t)
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	before, err := b.mirror.MirrorFingerprint()
	require.NoError(t, err)
	fence, w := b.start(a)
	plainGit(t, w.Path(), "config", "filter.x.clean", program)
	plainGit(t, w.Path(), "branch", "planted")
	writeFile(t, w.Path(), ".gitattributes", "* filter=x\n")
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	evil := filepath.Join(realTemp(t), "evil")
	armed(t, evil, program)
	writeFile(t, w.AdminDir(), "commondir", evil+"/.git\n")
	after, err := b.mirror.MirrorFingerprint()
	require.NoError(t, err)
	require.Equal(t, []string{"refs", "config"}, before.Differs(after))
	work, err := w.Collect(t.Context(), Scope{})
	require.NoError(t, err)
	require.True(t, work.Tampered)
	require.Equal(t, Landed, b.land(a, fence, w).Status)
	require.NoFileExists(t, mark)
	after, err = b.mirror.MirrorFingerprint()
	require.NoError(t, err)
	require.Equal(t, []string{"refs"}, before.Differs(after))
}

func TestUsersHooksAndConfigurationPlayNoPart(t *testing.T) {
	t.Parallel()
	program, mark := trap(t)
	repo := newHub(t)
	hooks := filepath.Join(repo, ".git/hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	for _, h := range []string{"reference-transaction", "pre-commit", "commit-msg", "post-commit", "post-checkout", "update", "pre-receive", "post-receive", "pre-auto-gc"} {
		require.NoError(t, os.Symlink(program, filepath.Join(hooks, h)))
	}
	plainGit(t, repo, "config", "core.fsmonitor", program)
	plainGit(t, repo, "config", "commit.gpgSign", "true")
	plainGit(t, repo, "config", "gpg.program", program)
	require.NoError(t, os.RemoveAll(mark))
	b := openRunOn(t, repo, false, Options{}, nil)
	before, err := b.store.HubFingerprint(t.Context(), b.mirror.Hub())
	require.NoError(t, err)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "work\n")
	require.Equal(t, Landed, b.land(a, fence, w).Status)
	require.NoError(t, b.mirror.Probe(t.Context()))
	after, err := b.store.HubFingerprint(t.Context(), b.mirror.Hub())
	require.NoError(t, err)
	require.Empty(t, before.Differs(after))
	require.NoFileExists(t, mark)
}
