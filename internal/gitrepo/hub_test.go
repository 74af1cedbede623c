package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHubByPathIsItsCanonicalTop(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	link := filepath.Join(realTemp(t), "link")
	require.NoError(t, os.Symlink(repo, link))
	for _, name := range []string{repo, link, repo + "/", filepath.Join(repo, ".git")} {
		hub, err := ResolveHub(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, Hub{Canonical: repo, Path: repo, GitDir: repo + "/.git", TreeDir: repo + "/.git"}, hub)
	}
	bare := filepath.Join(realTemp(t), "bare.git")
	plainGit(t, repo, "clone", "-q", "--bare", repo, bare)
	hub, err := ResolveHub(t.Context(), bare)
	require.NoError(t, err)
	require.Equal(t, Hub{Canonical: bare, Path: bare, GitDir: bare, TreeDir: bare, Bare: true}, hub)
}

func TestLinkedWorktreeIsTheSameHub(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	linked := filepath.Join(realTemp(t), "linked")
	plainGit(t, repo, "worktree", "add", "-q", "-b", "side", linked)
	plainGit(t, linked, "commit", "-q", "--allow-empty", "-m", "side")
	hub, err := ResolveHub(t.Context(), linked)
	require.NoError(t, err)
	require.Equal(t, repo, hub.Canonical)
	require.Equal(t, linked, hub.Path)
	m := newMirror(t, newStore(t, nil), linked, Options{})
	base, err := m.ResolveBase(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, plainGit(t, linked, "rev-parse", "HEAD"), base, "the HEAD of the tree that was named")
}

func TestFolderInsideAnotherRepositoryIsRefused(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	_, err := ResolveHub(t.Context(), filepath.Join(repo, "src"))
	require.ErrorIs(t, err, ErrInsideRepository)
	_, err = ResolveHub(t.Context(), realTemp(t))
	require.ErrorIs(t, err, ErrNotRepository)
	_, err = ResolveHub(t.Context(), filepath.Join(repo, "absent"))
	require.ErrorIs(t, err, ErrNotRepository)
	for _, name := range []string{"", "-u", "--upload-pack=x", "a\nb"} {
		_, err = ResolveHub(t.Context(), name)
		require.ErrorIs(t, err, ErrNotRepository)
	}
}

func TestHubByURL(t *testing.T) {
	t.Parallel()
	for text, canonical := range map[string]string{
		"https://example.com/a/b.git":      "https://example.com/a/b.git",
		"https://bot@example.com/a/b.git/": "https://example.com/a/b.git",
		"https://example.com/a?token=x#y":  "https://example.com/a",
		"ssh://git@example.com:22/a":       "ssh://example.com:22/a",
		"git@example.com:a/b.git":          "git@example.com:a/b.git",
		"git@example.com:/srv/b.git":       "git@example.com:/srv/b.git",
	} {
		hub, err := ResolveHub(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, Hub{Canonical: canonical, URL: text}, hub)
	}
	for _, text := range []string{"ext::sh -c x", "ext://x", "javascript://x"} {
		_, err := ResolveHub(t.Context(), text)
		require.ErrorIs(t, err, ErrNotRepository, text)
	}
}

func TestPasswordInURLIsRefusedAndNeverShown(t *testing.T) {
	t.Parallel()
	_, err := ResolveHub(t.Context(), "https://bot:s3cret@example.com/a.git")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
	require.Contains(t, err.Error(), "credential_helper")
}

func TestForeignOwnerIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	repo := newHub(t)
	m := newMirror(t, newStore(t, nil), repo, Options{})
	require.NoError(t, os.Chown(repo, 12345, 12345))
	require.NoError(t, os.Chown(filepath.Join(repo, ".git"), 12345, 12345))
	_, err := ResolveHub(t.Context(), repo)
	require.ErrorIs(t, err, ErrDubiousOwnership)
	require.ErrorIs(t, m.Probe(t.Context()), ErrDubiousOwnership)
}

func TestMirrorIsMadeOnceAndCarriesNoRemote(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		before := b.store.Commands()
		again, err := b.store.Mirror(t.Context(), b.mirror.Hub(), Options{})
		require.NoError(t, err)
		require.Equal(t, b.mirror.Dir(), again.Dir())
		require.Equal(t, before, b.store.Commands())
		require.NotContains(t, readFile(t, b.mirror.dir, "config"), "remote")
		require.Empty(t, plainGit(t, b.mirror.dir, "remote"))
	})
}

func TestUnfinishedCloneIsReplaced(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	s := newStore(t, nil)
	hub, err := ResolveHub(t.Context(), repo)
	require.NoError(t, err)
	half := s.path(mirrorsDir, mirrorID(hub)+".git.new-123")
	writeFile(t, half, "HEAD", "ref: refs/heads/main\n")
	_, err = s.Mirror(t.Context(), hub, Options{})
	require.NoError(t, err)
	require.NoDirExists(t, half)
}

func TestMirrorIsMadeByManyAtOnce(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	hub, err := ResolveHub(t.Context(), repo)
	require.NoError(t, err)
	state := filepath.Join(realTemp(t), "state")
	errs := make(chan error, 8)
	for range cap(errs) {
		s := newStore(t, func(set *Settings) { set.StateDir = state })
		go func() {
			_, err := s.Mirror(t.Context(), hub, Options{})
			errs <- err
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
}

func TestRepositoriesThatCannotBeWorkedOnAreRefused(t *testing.T) {
	t.Parallel()
	source := newHub(t)
	empty := filepath.Join(realTemp(t), "empty")
	plainGit(t, filepath.Dir(empty), "init", "-q", empty)
	shallow := filepath.Join(realTemp(t), "shallow")
	plainGit(t, source, "commit", "-q", "--allow-empty", "-m", "second")
	plainGit(t, source, "clone", "-q", "--depth=1", "file://"+source, shallow)
	partial := filepath.Join(realTemp(t), "partial")
	plainGit(t, source, "config", "uploadpack.allowFilter", "true")
	plainGit(t, source, "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+source, partial)
	for name, want := range map[string]error{
		empty: ErrEmptyRepository, "file://" + empty: ErrEmptyRepository,
		shallow: ErrIncompleteHub, "file://" + shallow: ErrIncompleteHub, partial: ErrIncompleteHub,
	} {
		hub, err := ResolveHub(t.Context(), name)
		require.NoError(t, err)
		_, err = newStore(t, nil).Mirror(t.Context(), hub, Options{})
		require.ErrorIs(t, err, want, name)
	}
	for name, want := range map[string]error{"file://" + source + "-absent": ErrNotRepository, "https://127.0.0.1:1/x.git": ErrUnreachable} {
		hub, err := ResolveHub(t.Context(), name)
		require.NoError(t, err)
		_, err = newStore(t, nil).Mirror(t.Context(), hub, Options{})
		require.ErrorIs(t, err, want, name)
	}
}

func TestStateInsideTheRepositoryIsRefused(t *testing.T) {
	t.Parallel()
	repo := newHub(t)
	s := newStore(t, func(set *Settings) { set.StateDir = filepath.Join(repo, ".state") })
	hub, err := ResolveHub(t.Context(), repo)
	require.NoError(t, err)
	_, err = s.Mirror(t.Context(), hub, Options{})
	require.ErrorContains(t, err, "lies inside it")
}

func TestBaseIsAnyRevisionOfTheHub(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		repo := newHub(t)
		first := plainGit(t, repo, "rev-parse", "HEAD")
		plainGit(t, repo, "branch", "-m", "main", "trunk")
		plainGit(t, repo, "tag", "-a", "-m", "x", "v1")
		b := openRunOn(t, repo, url, Options{}, nil)
		require.Equal(t, first, b.base)
		// Made after the mirror.
		plainGit(t, repo, "commit", "-q", "--allow-empty", "-m", "second")
		second := plainGit(t, repo, "rev-parse", "HEAD")
		for rev, want := range map[string]string{"": second, "trunk": second, "trunk~1": first, "v1": first, "refs/heads/trunk": second,
			second: second, second[:10]: second, first + "^{commit}": first} {
			got, err := b.mirror.ResolveBase(t.Context(), rev)
			require.NoError(t, err, rev)
			require.Equal(t, want, got, rev)
			present, err := b.mirror.has(t.Context(), got)
			require.NoError(t, err)
			require.True(t, present)
		}
		for _, rev := range []string{"absent", "-x", "--all", "main", "a\nb", "trunk..v1"} {
			_, err := b.mirror.ResolveBase(t.Context(), rev)
			require.ErrorIs(t, err, ErrBaseUnknown, rev)
		}
	})
}

func TestDetachedHeadIsABase(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		repo := newHub(t)
		plainGit(t, repo, "checkout", "-q", "--detach")
		plainGit(t, repo, "commit", "-q", "--allow-empty", "-m", "on no branch")
		want := plainGit(t, repo, "rev-parse", "HEAD")
		b := openRunOn(t, repo, url, Options{}, nil)
		require.Equal(t, want, b.base)
		a := attempt("n", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		require.Equal(t, Landed, b.land(a, fence, w).Status)
		require.Equal(t, want, plainGit(t, repo, "rev-parse", "HEAD"))
	})
}

func TestProbeAcceptsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		objects := plainGit(t, b.repo, "count-objects", "-v")
		require.NoError(t, b.mirror.Probe(t.Context()))
		require.NotContains(t, plainGit(t, b.repo, "for-each-ref"), "probe")
		require.NoDirExists(t, filepath.Join(b.repo, ".git/refs/mendflow/probe"))
		require.Equal(t, objects, plainGit(t, b.repo, "count-objects", "-v"))
	})
}

func TestProbeNamesAHubThatRefusesOurRefs(t *testing.T) {
	t.Parallel()
	b := openRun(t, true, nil)
	hook := filepath.Join(b.repo, ".git/hooks/update")
	writeFile(t, filepath.Dir(hook), "update", "#!/bin/sh\necho no such refs here >&2\nexit 1\n")
	require.NoError(t, os.Chmod(hook, 0o755))
	err := b.mirror.Probe(t.Context())
	require.ErrorIs(t, err, ErrHubRefuses)
	require.ErrorContains(t, err, "no such refs here")
}
