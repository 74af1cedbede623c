package gitrepo

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoHosts opens the same run on two hosts with states of their own.
func twoHosts(t *testing.T, url bool) (*bench, *bench) {
	t.Helper()
	one := openRun(t, url, nil)
	two := &bench{t: t, repo: one.repo, base: one.base, store: newStore(t, func(s *Settings) { s.HostID = "host-2" })}
	two.mirror = newMirror(t, two.store, one.mirror.hub.remote(), Options{})
	return one, two
}

func TestTwoHostsLandInTheSameHub(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		one, two := twoHosts(t, url)
		const each = 4
		var wg sync.WaitGroup
		errs := make([]error, 2*each)
		for i := range each {
			wg.Go(func() { errs[i] = one.wholeNode(attempt("one-"+string(rune('a'+i)), 1), false) })
			wg.Go(func() { errs[each+i] = two.wholeNode(attempt("two-"+string(rune('a'+i)), 1), false) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		state, err := one.mirror.State(t.Context(), testRun, one.base)
		require.NoError(t, err)
		require.False(t, state.BranchMoved())
		require.Len(t, state.Landings, 2*each)
		again, err := two.mirror.State(t.Context(), testRun, one.base)
		require.NoError(t, err)
		require.Equal(t, state, again)
		require.Equal(t, state.Truth, plainGit(t, one.repo, "rev-parse", BranchRef(testRun)))
	})
}

func TestTwoHostsWithTheSameAttemptLandItOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		one, two := twoHosts(t, url)
		a1, a2 := attempt("n1", 1), attempt("n1", 2)
		f1, w1 := one.start(a1)
		writeFile(t, w1.Path(), "src/a.txt", "one\n")
		r1 := one.landRequest(a1, f1, w1)
		f2, w2 := two.start(a2)
		writeFile(t, w2.Path(), "src/a.txt", "two\n")
		r2 := two.landRequest(a2, f2, w2)
		var wg sync.WaitGroup
		var s1, s2 LandResult
		var e1, e2 error
		wg.Go(func() { s1, e1 = one.mirror.Land(t.Context(), r1) })
		wg.Go(func() { s2, e2 = two.mirror.Land(t.Context(), r2) })
		wg.Wait()
		require.NoError(t, e1)
		require.NoError(t, e2)
		require.Equal(t, Fenced, s1.Status)
		require.Equal(t, Landed, s2.Status)
		require.Equal(t, 1, one.landings("n1"))
	})
}

// A fetch that is under way, or was killed, must not show a commit without its trees: another landing
// of the host would merge onto it and fail, after a kill forever.
func TestWhatAnotherHostLandedAppearsAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		one, two := twoHosts(t, url)
		require.NoError(t, one.wholeNode(attempt("n1", 1), false))
		loose := func() []string {
			files, err := filepath.Glob(filepath.Join(two.mirror.dir, "objects", "??", "*"))
			require.NoError(t, err)
			return files
		}
		before := loose()
		truth, err := two.mirror.Truth(t.Context(), testRun)
		require.NoError(t, err)
		require.NotEqual(t, two.base, truth)
		require.Equal(t, before, loose(), "objects came one by one")
		plainGit(t, two.mirror.dir, "rev-list", "--objects", "--quiet", truth)
	})
}
