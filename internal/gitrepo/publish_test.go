package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// repaired is a run with one landing that changes src/a.txt and adds src/new.txt.
func repaired(t *testing.T, url bool, change func(*Settings)) (*bench, string) {
	t.Helper()
	b := openRun(t, url, change)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "changed\n")
	writeFile(t, w.Path(), "src/new.txt", "new\n")
	res := b.land(a, fence, w)
	require.Equal(t, Landed, res.Status)
	return b, res.Commit
}

// commitFile is a user's commit on main that touches neither index nor working tree.
func (b *bench) commitFile(name, text string) string {
	b.t.Helper()
	return commitOn(b.t, b.repo, "main", name, text)
}

func commitOn(t testing.TB, repo, branch, name, text string) string {
	t.Helper()
	clone := filepath.Join(realTemp(t), "clone")
	plainGit(t, filepath.Dir(clone), "clone", "-q", "-b", branch, repo, clone)
	writeFile(t, clone, name, text)
	plainGit(t, clone, "add", "-A")
	plainGit(t, clone, "commit", "-qm", "By a user")
	oid := plainGit(t, clone, "rev-parse", "HEAD")
	plainGit(t, repo, "fetch", "-q", clone, oid)
	plainGit(t, repo, "update-ref", "refs/heads/"+branch, oid)
	return oid
}

func (b *bench) mergeRequest(head string) MergeIntoRequest {
	return MergeIntoRequest{Run: testRun, Branch: "main", Head: head, Message: "Merge run-1", When: testTime}
}

func (b *bench) merge(head string) MergeIntoResult {
	b.t.Helper()
	res, err := b.mirror.MergeInto(b.t.Context(), b.mergeRequest(head))
	require.NoError(b.t, err)
	return res
}

func (b *bench) ref(name string) string { return plainGit(b.t, b.repo, "rev-parse", name) }

// detach takes the hub's own checkout off main.
func (b *bench) detach() { plainGit(b.t, b.repo, "checkout", "-q", "--detach") }

func TestMergeIntoMovesABranchOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b, head := repaired(t, url, nil)
		b.detach()
		req := b.mergeRequest(head)
		req.Look = true
		res, err := b.mirror.MergeInto(t.Context(), req)
		require.NoError(t, err)
		require.False(t, res.Merged)
		require.Equal(t, b.base, b.ref("main"), "looking changes nothing")

		require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
		require.Equal(t, head, b.ref("main"), "a branch that did not move goes forward")
		require.Equal(t, b.base, b.ref(MergedRef(testRun)))
		later := b.commitFile("docs/later.md", "later\n")
		require.Equal(t, MergeIntoResult{Merged: true, Commit: later}, b.merge(head), "it is found, not done again")
		require.Equal(t, later, b.ref("main"))
		res, err = b.mirror.MergeInto(t.Context(), req)
		require.NoError(t, err)
		require.True(t, res.Merged)
		require.NoError(t, b.mirror.DropRun(t.Context(), testRun, true, true))
		require.Empty(t, plainGit(t, b.repo, "for-each-ref", "refs/mendflow"), "gc takes the mark along")
	})
}

func TestMergeIntoABranchThatMoved(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b, head := repaired(t, url, nil)
		b.detach()
		theirs := b.commitFile("src/b.txt", "theirs\n")
		res := b.merge(head)
		require.True(t, res.Merged, res.Refused)
		require.Equal(t, res.Commit, b.ref("main"))
		require.Equal(t, theirs+" "+head, plainGit(t, b.repo, "log", "-1", "--format=%P", "main"))
		b.expectTree(res.Commit, map[string]string{"src/a.txt": "changed\n", "src/b.txt": "theirs\n", "src/new.txt": "new\n"})
		plainGit(t, b.repo, "fsck", "--strict", "--no-dangling")

		b, head = repaired(t, url, nil)
		b.detach()
		theirs = b.commitFile("src/a.txt", "theirs\n")
		require.Equal(t, MergeIntoResult{Refused: "main has moved and conflicts in src/a.txt"}, b.merge(head))
		require.Equal(t, theirs, b.ref("main"))
	})
}

func TestMergeIntoLosesNoRace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		var b *bench
		var theirs string
		b, head := repaired(t, url, func(s *Settings) {
			s.Hook = func(point string) {
				if point == PointMerging && theirs == "" { // somebody is faster, once
					theirs = b.commitFile("src/b.txt", "theirs\n")
				}
			}
		})
		b.detach()
		res := b.merge(head)
		require.True(t, res.Merged, res.Refused)
		require.Equal(t, theirs+" "+head, plainGit(t, b.repo, "log", "-1", "--format=%P", "main"), "what somebody committed meanwhile stays")
	})
}

func TestMergeIntoACheckoutThatIsClean(t *testing.T) {
	t.Parallel()
	b, head := repaired(t, false, nil)
	writeFile(t, b.repo, "untracked.txt", "mine\n")
	writeFile(t, b.repo, "some.log", "ignored\n")
	require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
	require.Equal(t, head, b.ref("HEAD"))
	require.Equal(t, "?? untracked.txt", plainGit(t, b.repo, "status", "--porcelain"))
	text, err := os.ReadFile(filepath.Join(b.repo, "src/new.txt"))
	require.NoError(t, err)
	require.Equal(t, "new\n", string(text))
}

func TestMergeIntoALinkedCheckout(t *testing.T) {
	t.Parallel()
	b, head := repaired(t, false, nil)
	b.detach()
	linked := filepath.Join(realTemp(t), "linked")
	plainGit(t, b.repo, "worktree", "add", "-q", linked, "main")
	require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
	require.Empty(t, plainGit(t, linked, "status", "--porcelain"))
	require.FileExists(t, filepath.Join(linked, "src/new.txt"))
	require.Empty(t, plainGit(t, b.repo, "status", "--porcelain"), "the other checkout stays as it is")
	require.NoFileExists(t, filepath.Join(b.repo, "src/new.txt"))
}

func TestMergeIntoIsRefusedWhereWorkWouldBeLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, repo string)
		want   string
	}{
		"an edit": {func(t *testing.T, repo string) { writeFile(t, repo, "src/c.txt", "mine\n") }, "which has uncommitted changes"},
		"a staged edit": {func(t *testing.T, repo string) {
			writeFile(t, repo, "src/c.txt", "mine\n")
			plainGit(t, repo, "add", "src/c.txt")
		}, "which has uncommitted changes"},
		"an untracked file in the way": {func(t *testing.T, repo string) { writeFile(t, repo, "src/new.txt", "mine\n") }, "which cannot take the merge"},
		"a merge under way":            {func(t *testing.T, repo string) { writeFile(t, repo, ".git/MERGE_HEAD", "x\n") }, "where a git operation is under way (MERGE_HEAD)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, head := repaired(t, false, nil)
			c.change(t, b.repo)
			hub, err := ResolveHub(t.Context(), b.repo)
			require.NoError(t, err)
			before, err := b.store.HubFingerprint(t.Context(), hub)
			require.NoError(t, err)
			res := b.merge(head)
			require.Contains(t, res.Refused, "the branch is checked out at "+b.repo)
			require.Contains(t, res.Refused, c.want)
			after, err := b.store.HubFingerprint(t.Context(), hub)
			require.NoError(t, err)
			require.Empty(t, before.Differs(after))
		})
	}
}

func TestMergeIntoWaitsForAnIndexThatIsInUse(t *testing.T) {
	t.Parallel()
	b, head := repaired(t, false, nil)
	writeFile(t, b.repo, ".git/index.lock", "")
	_, err := b.mirror.MergeInto(t.Context(), b.mergeRequest(head))
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, b.base, b.ref("main"))
	require.NoError(t, os.Remove(filepath.Join(b.repo, ".git/index.lock")))
	require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
}

func TestMergeIntoGoesOnAfterItsProcessDied(t *testing.T) {
	t.Parallel()
	for _, point := range []string{PointMerging, PointMovedTo} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			died := false
			b, head := repaired(t, false, func(s *Settings) {
				s.Hook = func(at string) {
					if at == point && !died {
						died = true
						panic("killed")
					}
				}
			})
			require.Panics(t, func() { b.merge(head) })
			require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
			require.Empty(t, plainGit(t, b.repo, "status", "--porcelain"), "the checkout follows")
			require.FileExists(t, filepath.Join(b.repo, "src/new.txt"))
		})
	}
}

func TestMergeIntoABareHubAndAMissingBranch(t *testing.T) {
	t.Parallel()
	bare := filepath.Join(realTemp(t), "hub.git")
	plainGit(t, filepath.Dir(bare), "clone", "-q", "--bare", newHub(t), bare)
	b := openRunOn(t, bare, false, Options{}, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "changed\n")
	head := b.land(a, fence, w).Commit
	require.Equal(t, MergeIntoResult{Merged: true, Commit: head}, b.merge(head))
	require.Equal(t, head, b.ref("main"))
	req := b.mergeRequest(head)
	req.Branch = "release"
	res, err := b.mirror.MergeInto(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, MergeIntoResult{Refused: "the repository has no branch release"}, res)
}

// newRemote is an empty bare repository.
func newRemote(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(realTemp(t), "acme", "shop.git")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	plainGit(t, dir, "init", "-q", "--bare")
	return dir
}

func TestPushBranchLooksBeforeItWrites(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b, head := repaired(t, url, nil)
		dir := newRemote(t)
		to, err := b.mirror.Remote(t.Context(), dir)
		require.NoError(t, err)
		push := func(branch string, look bool) PushStatus {
			t.Helper()
			status, err := b.mirror.PushBranch(t.Context(), to, branch, head, look)
			require.NoError(t, err)
			return status
		}
		require.Empty(t, push("fix/x", true))
		require.Empty(t, plainGit(t, dir, "for-each-ref"))
		require.Equal(t, Pushed, push("fix/x", false))
		require.Equal(t, head, plainGit(t, dir, "rev-parse", "refs/heads/fix/x"))
		require.Equal(t, PushedAlready, push("fix/x", false))
		require.Equal(t, PushedAlready, push("fix/x", true))
		theirs := commitOn(t, dir, "fix/x", "more.txt", "more\n")
		require.Equal(t, PushedAlready, push("fix/x", false), "somebody went on from there")
		require.Equal(t, theirs, plainGit(t, dir, "rev-parse", "refs/heads/fix/x"))

		plainGit(t, dir, "update-ref", "refs/heads/behind", b.base)
		require.Equal(t, Pushed, push("behind", false))
		require.Equal(t, head, plainGit(t, dir, "rev-parse", "refs/heads/behind"))
		plainGit(t, dir, "update-ref", "refs/heads/other", b.base)
		other := commitOn(t, dir, "other", "src/a.txt", "theirs\n")
		require.Equal(t, PushDiverged, push("other", false))
		require.Equal(t, other, plainGit(t, dir, "rev-parse", "refs/heads/other"))
	})
}

func TestPushBranchTellsWhyItIsRefused(t *testing.T) {
	t.Parallel()
	b, head := repaired(t, false, nil)
	dir := newRemote(t)
	writeFile(t, dir, "hooks/update", "#!/bin/sh\necho no >&2\nexit 1\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "hooks/update"), 0o755))
	plainGit(t, b.repo, "remote", "add", "upstream", dir)
	to, err := b.mirror.Remote(t.Context(), "upstream")
	require.NoError(t, err)
	_, err = b.mirror.PushBranch(t.Context(), to, "x", head, false)
	require.ErrorIs(t, err, ErrPushRefused)
	require.ErrorContains(t, err, "hook declined")

	gone, err := b.mirror.Remote(t.Context(), dir+"-gone")
	require.NoError(t, err)
	_, err = b.mirror.PushBranch(t.Context(), gone, "x", head, false)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrPushRefused)
}

func TestRemoteIsFoundByNameURLOrPath(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	plainGit(t, b.repo, "remote", "add", "origin", "https://bot:secret@git.example.com:8443/a/b/shop.git")
	plainGit(t, b.repo, "remote", "add", "forge", "git@github.com:acme/shop.git")
	plainGit(t, b.repo, "remote", "add", "near", "../shop.git")
	for text, want := range map[string][3]string{ // URL, host, project
		"":                                 {"https://git.example.com:8443/a/b/shop.git", "git.example.com", "a/b/shop"},
		"forge":                            {"git@github.com:acme/shop.git", "github.com", "acme/shop"},
		"near":                             {filepath.Join(filepath.Dir(b.repo), "shop.git"), "", ""},
		"ssh://git@GitLab.com:22/g/s/p":    {"ssh://git@GitLab.com:22/g/s/p", "gitlab.com", "g/s/p"},
		"https://github.com/acme/shop.git": {"https://github.com/acme/shop.git", "github.com", "acme/shop"},
		"/srv/git/shop.git":                {"/srv/git/shop.git", "", ""},
	} {
		r, err := b.mirror.Remote(t.Context(), text)
		require.NoError(t, err, text)
		require.Equal(t, want, [3]string{r.URL, r.Host(), r.Project()}, text)
	}
	r, err := b.mirror.Remote(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"http.https://git.example.com:8443/a/b/shop.git.extraHeader=Authorization: Basic Ym90OnNlY3JldA=="}, r.config(), "the password is no argument")
	_, err = b.mirror.Remote(t.Context(), "nowhere")
	require.ErrorIs(t, err, ErrNotRepository)
	_, err = b.mirror.Remote(t.Context(), "--upload-pack=x")
	require.ErrorIs(t, err, ErrNotRepository)

	byURL := openRun(t, true, nil)
	r, err = byURL.mirror.Remote(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, byURL.mirror.hub.URL, r.URL)
}

func TestBranchNamed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		plainGit(t, b.repo, "tag", "v1")
		for rev, want := range map[string]string{"": "main", "HEAD": "main", "main": "main", "refs/heads/main": "main", "v1": "", b.base: "", "main~0": ""} {
			got, err := b.mirror.BranchNamed(t.Context(), rev)
			require.NoError(t, err, rev)
			require.Equal(t, want, got, rev)
		}
		b.detach()
		got, err := b.mirror.BranchNamed(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, got)
	})
}
