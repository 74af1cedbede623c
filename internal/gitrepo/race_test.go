package gitrepo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// landRequest commits the tree's work and asks for its landing on the truth as it is now.
func (b *bench) landRequest(a Attempt, fence Fence, w *Worktree) LandRequest {
	b.t.Helper()
	ctx := b.t.Context()
	work, err := w.Collect(ctx, Scope{})
	require.NoError(b.t, err)
	commit, err := w.Commit(ctx, CommitRequest{Attempt: a, Work: work, Message: "Repair", When: testTime})
	require.NoError(b.t, err)
	truth := b.truth()
	merged, err := b.mirror.Merge(ctx, MergeRequest{Truth: truth, Base: w.Base(), Commit: commit})
	require.NoError(b.t, err)
	require.True(b.t, merged.Clean)
	return LandRequest{Attempt: a, Fence: fence, Base: b.base, ExpectTruth: truth, Tree: merged.Tree, Message: "Repair", When: testTime}
}

func (b *bench) landings(node string) int {
	b.t.Helper()
	log := plainGit(b.t, b.repo, "log", "--format=%(trailers:key=Mendflow-Node,valueonly)", b.base+".."+b.truth())
	n := 0
	for _, line := range strings.Fields(log) {
		if line == node {
			n++
		}
	}
	return n
}

func TestLandingTwiceLandsOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		req := b.landRequest(a, fence, w)
		first, err := b.mirror.Land(t.Context(), req)
		require.NoError(t, err)
		// The same request by a process that knows nothing.
		other := newMirror(t, newStore(t, nil), b.mirror.hub.remote(), Options{})
		second, err := other.Land(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, first, second)
		// And one that was merged again, on a truth that holds the landing.
		req.ExpectTruth = first.Commit
		third, err := b.mirror.Land(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, first, third)
		require.Equal(t, 1, b.landings("n1"))
	})
}

func TestZombieDoesNotLandAfterItsSuccessorBegan(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a1, a2 := attempt("n1", 1), attempt("n1", 2)
		f1, w1 := b.start(a1)
		writeFile(t, w1.Path(), "src/a.txt", "zombie\n")
		zombie := b.landRequest(a1, f1, w1)
		f2, w2 := b.start(a2)
		res, err := b.mirror.Land(t.Context(), zombie)
		require.NoError(t, err)
		require.Equal(t, LandResult{Status: Fenced, Truth: b.base}, res)
		writeFile(t, w2.Path(), "src/a.txt", "successor\n")
		landed := b.land(a2, f2, w2)
		require.Equal(t, Landed, landed.Status)
		res, err = b.mirror.Land(t.Context(), zombie)
		require.NoError(t, err)
		require.Equal(t, LandResult{Status: Fenced, Truth: landed.Commit}, res)
		require.Equal(t, 1, b.landings("n1"))
	})
}

func TestMovedFenceKeepsACancelledAttemptFromLanding(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		req := b.landRequest(a, fence, w)
		require.NoError(t, b.mirror.MoveFence(t.Context(), a, "cancelled"))
		res, err := b.mirror.Land(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, Fenced, res.Status)
		again, err := b.mirror.SetFence(t.Context(), a)
		require.NoError(t, err)
		require.NotEqual(t, fence.OID, again.OID, "always a new blob")
	})
}

// atTransaction calls f once, when a landing has looked and is about to change the hub.
func atTransaction(f func()) func(*Settings) {
	var once sync.Once
	return func(s *Settings) {
		s.Hook = func(point string) {
			if point == PointBeforeTransaction {
				once.Do(f)
			}
		}
	}
}

func TestTransactionChecksTruthAndFenceItself(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		for name, c := range map[string]struct {
			move func(b *bench)
			want LandStatus
		}{
			"fence moved": {func(b *bench) {
				blob := plainGitInput(t, b.repo, "x", "hash-object", "-w", "--stdin")
				plainGit(t, b.repo, "update-ref", FenceRef(testRun, "n1"), blob)
			}, Fenced},
			"truth moved by a foreign commit": {func(b *bench) {
				oid := plainGit(t, b.repo, "commit-tree", "-p", b.base, "-m", "foreign", b.base+"^{tree}")
				plainGit(t, b.repo, "update-ref", TruthRef(testRun), oid)
			}, Foreign},
			"truth moved by a landing": {func(b *bench) {
				oid := plainGit(t, b.repo, "commit-tree", "-p", b.base, "-m", "other\n\nMendflow-Run: run-1\nMendflow-Node: n2\nMendflow-Opening: 1\nMendflow-Attempt: 1", b.base+"^{tree}")
				plainGit(t, b.repo, "update-ref", TruthRef(testRun), oid)
			}, LostRace},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var b *bench
				b = openRun(t, url, atTransaction(func() { c.move(b) }))
				a := attempt("n1", 1)
				fence, w := b.start(a)
				writeFile(t, w.Path(), "src/a.txt", "x\n")
				res, err := b.mirror.Land(t.Context(), b.landRequest(a, fence, w))
				require.NoError(t, err)
				require.Equal(t, c.want, res.Status)
				require.Zero(t, b.landings("n1"))
				require.NotContains(t, plainGit(t, b.repo, "for-each-ref"), "heads/mendflow")
			})
		}
	})
}

func TestForeignCommitIsBranchMovedNotALostRace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		a := attempt("n1", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		req := b.landRequest(a, fence, w)
		foreign := plainGit(t, b.repo, "commit-tree", "-p", b.base, "-m", "foreign\n\nMendflow-Run: run-2\nMendflow-Node: n1", b.base+"^{tree}")
		plainGit(t, b.repo, "update-ref", TruthRef(testRun), foreign)
		res, err := b.mirror.Land(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, LandResult{Status: Foreign, Truth: foreign}, res)
		state, err := b.mirror.State(t.Context(), testRun, b.base)
		require.NoError(t, err)
		require.True(t, state.BranchMoved())
		require.Equal(t, []string{foreign}, state.Foreign)
		// Rolled back behind the base, and gone.
		root := plainGit(t, b.repo, "commit-tree", "-m", "root", b.base+"^{tree}")
		plainGit(t, b.repo, "update-ref", TruthRef(testRun), root)
		state, err = b.mirror.State(t.Context(), testRun, b.base)
		require.NoError(t, err)
		require.True(t, state.Diverged)
		plainGit(t, b.repo, "update-ref", "-d", TruthRef(testRun))
		_, err = b.mirror.State(t.Context(), testRun, b.base)
		require.ErrorIs(t, err, ErrTruthMissing)
		_, err = b.mirror.Land(t.Context(), req)
		require.ErrorIs(t, err, ErrTruthMissing)
	})
}

func TestGitDecidesWhenALandingWasRolledBack(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	require.Equal(t, Landed, b.land(a, fence, w).Status)
	plainGit(t, b.repo, "update-ref", TruthRef(testRun), b.base)
	state, err := b.mirror.State(t.Context(), testRun, b.base)
	require.NoError(t, err)
	_, ok := state.Landed("n1", 1)
	require.False(t, ok)
}

func TestOpeningsCountApart(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a1 := attempt("n1", 1)
	fence, w := b.start(a1)
	writeFile(t, w.Path(), "src/a.txt", "first\n")
	require.Equal(t, Landed, b.land(a1, fence, w).Status)
	a2 := attempt("n1", 2)
	a2.Opening = 2
	state, err := b.mirror.State(t.Context(), testRun, b.base)
	require.NoError(t, err)
	_, ok := state.Landed("n1", 2)
	require.False(t, ok)
	fence, w = b.start(a2)
	writeFile(t, w.Path(), "src/a.txt", "second\n")
	require.Equal(t, Landed, b.land(a2, fence, w).Status)
	require.Equal(t, 2, b.landings("n1"))
}

func TestLostAcknowledgementIsResolvedByLooking(t *testing.T) {
	t.Parallel()
	b := openRun(t, true, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	req := b.landRequest(a, fence, w)
	// The server applies the push and dies before it answers.
	writeFile(t, b.repo, ".git/hooks/post-receive", "#!/bin/sh\nrm -f \"$0\"\nkill -9 $PPID\n")
	hook := filepath.Join(b.repo, ".git/hooks/post-receive")
	require.NoError(t, os.Chmod(hook, 0o755))
	res, err := b.mirror.Land(t.Context(), req)
	require.NoError(t, err)
	require.NoFileExists(t, hook, "the answer was lost")
	require.Equal(t, Landed, res.Status)
	require.Equal(t, res.Commit, b.truth())
	require.Equal(t, 1, b.landings("n1"))
}

func TestLostAcknowledgementIsLookedUpAlthoughTheCallerWentAway(t *testing.T) {
	t.Parallel()
	b := openRun(t, true, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	req := b.landRequest(a, fence, w)
	mark := filepath.Join(realTemp(t), "applied")
	writeFile(t, b.repo, ".git/hooks/post-receive", "#!/bin/sh\nrm -f \"$0\"\necho > "+mark+"\nwhile [ -e "+mark+" ]; do :; done\nkill -9 $PPID\n")
	require.NoError(t, os.Chmod(filepath.Join(b.repo, ".git/hooks/post-receive"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for range time.Tick(time.Millisecond) {
			if _, err := os.Stat(mark); err == nil {
				cancel()
				_ = os.Remove(mark)
				return
			}
		}
	}()
	res, err := b.mirror.Land(ctx, req)
	require.NoError(t, err)
	require.Error(t, ctx.Err())
	require.Equal(t, Landed, res.Status)
	require.Equal(t, res.Commit, b.truth())
}

func TestCancelDuringTheTransactionStillGetsItsAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		var ctx context.Context
		cancel := context.CancelFunc(func() {})
		b := openRun(t, url, func(s *Settings) {
			s.Hook = func(point string) {
				if point == PointObjectsSent {
					cancel()
				}
			}
		})
		a := attempt("n1", 1)
		fence, w := b.start(a)
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		req := b.landRequest(a, fence, w)
		ctx, cancel = context.WithCancel(t.Context()) // the hook was called for the fence already
		defer cancel()
		res, err := b.mirror.Land(ctx, req)
		require.NoError(t, err)
		require.Equal(t, Landed, res.Status)
		require.Error(t, ctx.Err())
		require.Equal(t, res.Commit, b.truth())
	})
}

func TestTruthMovedWithoutFenceIsLandedAndRepaired(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	a := attempt("n1", 1)
	fence, w := b.start(a)
	writeFile(t, w.Path(), "src/a.txt", "x\n")
	req := b.landRequest(a, fence, w)
	res, err := b.mirror.Land(t.Context(), req)
	require.NoError(t, err)
	plainGit(t, b.repo, "update-ref", FenceRef(testRun, "n1"), fence.OID)
	again, err := b.mirror.Land(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, res, again)
	require.NotEqual(t, fence.OID, plainGit(t, b.repo, "rev-parse", FenceRef(testRun, "n1")))
}
