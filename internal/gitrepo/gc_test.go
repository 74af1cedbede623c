package gitrepo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func classes(items []Garbage) []string {
	var names []string
	for _, g := range items {
		names = append(names, string(g.Class))
	}
	return names
}

func TestGarbageOfClosedRunsIsSalvagedAndSwept(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	_, w := b.start(attempt("n1", 1))
	writeFile(t, w.Path(), "src/a.txt", "never landed\n")
	_, err := b.mirror.ThrowawayWorktree(t.Context(), testRun, "gate", b.base)
	require.NoError(t, err)
	open := attempt("n1", 1)
	open.Run = "open-run"
	kept, err := b.mirror.AddWorktree(t.Context(), open, b.base, WorktreeOptions{})
	require.NoError(t, err)
	b.landEdit("n2", "src/b.txt", "x\n") // leaves a parked tree
	writeFile(t, b.store.path(quarantineDir, "x", "t"), "f", "x")

	closed := func(run string) bool { return run == testRun }
	items, err := b.store.Garbage(t.Context(), closed)
	require.NoError(t, err)
	require.Equal(t, []string{"idle", "quarantine", "throwaway", "worktree"}, classes(items))
	for _, g := range items {
		require.Positive(t, g.Bytes)
		require.False(t, g.ModTime.IsZero())
	}
	// Another process sweeps.
	require.NoError(t, b.store.Close())
	s := newStore(t, func(set *Settings) { set.StateDir = b.store.settings.StateDir })
	left, err := s.Sweep(t.Context(), items, testTime)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, kept.AssertInPlace(b.base))
	require.NoDirExists(t, w.Path())
	require.Contains(t, plainGit(t, b.mirror.dir, "for-each-ref"), "refs/mendflow/salvage/run-1/n1/1")
	items, err = s.Garbage(t.Context(), func(string) bool { return true })
	require.NoError(t, err)
	items = slices.DeleteFunc(items, func(g Garbage) bool { return g.Class == GarbageTrash }) // being deleted
	require.Equal(t, []string{"worktree"}, classes(items))
	_, err = s.Sweep(t.Context(), items, testTime)
	require.NoError(t, err)

	// The mirror stays while it holds salvage.
	require.NoError(t, s.Close())
	items, err = s.Garbage(t.Context(), closed)
	require.NoError(t, err)
	require.Empty(t, items, "an open run uses the mirror, although no worktree hangs off it now")
	items, err = s.Garbage(t.Context(), func(string) bool { return true })
	require.NoError(t, err)
	require.Equal(t, []string{"mirror"}, classes(items))
	left, err = s.Sweep(t.Context(), items, testTime)
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, items, left)
	require.NoError(t, b.mirror.DropRun(t.Context(), testRun, true, true))
	left, err = s.Sweep(t.Context(), items, testTime)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, b.mirror.dir)
	newMirror(t, s, b.repo, Options{})
}

func TestOldSalvageOfClosedRunsIsSweptAndNoOther(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	for _, run := range []string{testRun, "run-10"} {
		a := attempt("n1", 1)
		a.Run = run
		w, err := b.mirror.AddWorktree(t.Context(), a, b.base, WorktreeOptions{})
		require.NoError(t, err)
		writeFile(t, w.Path(), "src/a.txt", "never landed\n")
		_, err = w.Salvage(t.Context(), Scope{}, testTime)
		require.NoError(t, err)
	}
	of := func(run string) func(string) bool { return func(name string) bool { return name == run } }
	items, err := b.store.SalvageGarbage(t.Context(), of(testRun), testTime)
	require.NoError(t, err)
	require.Empty(t, items, "it is not older than itself")
	items, err = b.store.SalvageGarbage(t.Context(), of("run-9"), testTime.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, items)
	items, err = b.store.SalvageGarbage(t.Context(), of(testRun), testTime.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, []Garbage{{Class: GarbageSalvage, Run: testRun, Path: b.mirror.dir, ModTime: items[0].ModTime}}, items)
	require.True(t, items[0].ModTime.Equal(testTime))
	left, err := b.store.Sweep(t.Context(), items, testTime)
	require.NoError(t, err)
	require.Empty(t, left)
	refs := plainGit(t, b.mirror.dir, "for-each-ref")
	require.NotContains(t, refs, "salvage/"+testRun+"/")
	require.Contains(t, refs, "salvage/run-10/n1/1")
}

func TestDroppedRunLosesItsRefsOnly(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		b := openRun(t, url, nil)
		_, err := b.mirror.OpenTruth(t.Context(), "run-10", b.base)
		require.NoError(t, err)
		_, w := b.start(attempt("n1", 1))
		writeFile(t, w.Path(), "src/a.txt", "x\n")
		_, err = w.Salvage(t.Context(), Scope{}, testTime)
		require.NoError(t, err)
		_, err = b.mirror.PushSalvage(t.Context(), testRun)
		require.NoError(t, err)
		b.landEdit("n2", "src/b.txt", "x\n")
		hub, mirror, err := b.mirror.RunRefs(t.Context(), testRun)
		require.NoError(t, err)
		require.Equal(t, []string{"refs/mendflow/fence/run-1/n1", "refs/mendflow/fence/run-1/n2", "refs/mendflow/run/run-1", "refs/mendflow/salvage/run-1/n1/1"}, hub)
		require.Equal(t, []string{"refs/mendflow/salvage/run-1/n1/1"}, mirror)
		require.NoError(t, b.mirror.DropRun(t.Context(), testRun, false, false))
		hub, mirror, err = b.mirror.RunRefs(t.Context(), testRun)
		require.NoError(t, err)
		require.Equal(t, []string{"refs/mendflow/run/run-1", "refs/mendflow/salvage/run-1/n1/1"}, hub)
		require.Len(t, mirror, 1)
		require.NoError(t, b.mirror.DropRun(t.Context(), testRun, true, true))
		hub, mirror, err = b.mirror.RunRefs(t.Context(), testRun)
		require.NoError(t, err)
		require.Empty(t, hub)
		require.Empty(t, mirror)
		refs := plainGit(t, b.repo, "for-each-ref", "--format=%(refname)")
		require.Contains(t, refs, "refs/mendflow/run/run-10")
		require.Contains(t, refs, "refs/heads/mendflow/run-1")
		require.Equal(t, 3, len(strings.Split(refs, "\n")), refs)
	})
}

func TestFreeSpaceIsKnown(t *testing.T) {
	t.Parallel()
	free, err := newStore(t, nil).DiskFree()
	require.NoError(t, err)
	require.Positive(t, free)
}
