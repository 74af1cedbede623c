package gitrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// generatedRepo makes the yardstick repository of shared/bench/mkrepo.py: files of about 1.2 KB,
// 100 a folder, in one pack.
func generatedRepo(t testing.TB, files int) string {
	t.Helper()
	dir := filepath.Join(realTemp(t), "hub")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	plainGit(t, dir, "init", "-q", "-b", "main")
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter b <bench@example.com> 1700000000 +0000\ndata 4\nbase\n")
	for i := range files {
		var body strings.Builder
		fmt.Fprintf(&body, "// file %d\n", i)
		for j := range 25 {
			fmt.Fprintf(&body, "line %d %040x\n", j, (i*31+j)*2654435761)
		}
		fmt.Fprintf(&b, "M 100644 inline src/d%03d/f%06d.txt\ndata %d\n%s\n", i/100, i, body.Len(), body.String())
	}
	plainGitInput(t, dir, b.String(), "fast-import", "--quiet")
	plainGit(t, dir, "reset", "-q", "--hard")
	return dir
}

// BenchmarkNode runs whole nodes (fence, worktree, edit, collect, commit, merge, check out, land,
// release) and reports git processes per node and the time of each step. The truth moves before each
// landing, as it does when nodes run in parallel.
func BenchmarkNode(b *testing.B) {
	sizes := []int{1000}
	if list := os.Getenv("MENDFLOW_BENCH_FILES"); list != "" {
		sizes = nil
		for s := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(s)
			require.NoError(b, err)
			sizes = append(sizes, n)
		}
	}
	for _, files := range sizes {
		for _, recycle := range []bool{false, true} {
			for _, moved := range []bool{false, true} {
				b.Run(fmt.Sprintf("files=%d/recycle=%v/moved=%v", files, recycle, moved), func(b *testing.B) {
					benchmarkNode(b, files, recycle, moved)
				})
			}
		}
	}
}

func benchmarkNode(b *testing.B, files int, recycle, moved bool) {
	run := openRunOn(b, generatedRepo(b, files), false, Options{}, nil)
	steps := map[string]time.Duration{}
	var processes int64
	other := 0
	i := 0
	for b.Loop() {
		a := attempt("n"+strconv.Itoa(i), 1)
		before := run.store.Commands()
		node := timedNode{bench: run, steps: steps, attempt: a, file: fmt.Sprintf("src/d%03d/f%06d.txt", i%files/100, i%files)}
		node.prepare()
		processes += run.store.Commands() - before
		if moved {
			b.StopTimer()
			other++
			side := attempt("s"+strconv.Itoa(other), 1)
			fence, w := run.start(side)
			writeFile(b, w.Path(), fmt.Sprintf("side/f%d.txt", other), "side\n")
			require.Equal(b, Landed, run.land(side, fence, w).Status)
			require.NoError(b, w.Release(b.Context(), ReleaseOptions{}))
			b.StartTimer()
		}
		before = run.store.Commands()
		node.finish(recycle)
		processes += run.store.Commands() - before
		i++
	}
	b.ReportMetric(float64(processes)/float64(i), "git/node")
	names := sortedKeys(steps)
	slices.Sort(names)
	for _, name := range names {
		b.ReportMetric(float64(steps[name].Microseconds())/float64(i)/1000, "ms-"+name)
	}
}

// gitCPU is the processor time of all git processes so far: it tells more than the clock on a machine
// that others use as well.
func gitCPU(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timedNode is one node with the time of each of its steps.
type timedNode struct {
	*bench
	steps   map[string]time.Duration
	attempt Attempt
	file    string
	fence   Fence
	tree    *Worktree
}

func (n *timedNode) step(name string, f func() error) {
	n.t.Helper()
	started, cpu := time.Now(), gitCPU(n.t)
	require.NoError(n.t, f())
	n.steps[name] += time.Since(started)
	n.steps["cpu"+name] += gitCPU(n.t) - cpu
}

func (n *timedNode) prepare() {
	ctx := n.t.Context()
	n.step("1fence", func() (err error) { n.fence, err = n.mirror.SetFence(ctx, n.attempt); return err })
	n.step("2worktree", func() (err error) {
		truth, err := n.mirror.Truth(ctx, testRun)
		if err != nil {
			return err
		}
		n.tree, err = n.mirror.AddWorktree(ctx, n.attempt, truth, WorktreeOptions{})
		return err
	})
	f, err := os.OpenFile(filepath.Join(n.tree.Path(), n.file), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(n.t, err)
	_, err = f.WriteString("edited " + n.attempt.Node + "\n")
	require.NoError(n.t, err)
	require.NoError(n.t, f.Close())
}

func (n *timedNode) finish(recycle bool) {
	ctx := n.t.Context()
	var (
		work   Work
		commit Commit
		merged MergeResult
		truth  string
	)
	n.step("3collect", func() (err error) { work, err = n.tree.Collect(ctx, Scope{}); return err })
	n.step("4commit", func() (err error) {
		commit, err = n.tree.Commit(ctx, CommitRequest{Attempt: n.attempt, Work: work, Message: "Edit", When: testTime})
		return err
	})
	n.step("5merge", func() (err error) {
		if truth, err = n.mirror.Truth(ctx, testRun); err != nil {
			return err
		}
		merged, err = n.mirror.Merge(ctx, MergeRequest{Truth: truth, Base: n.tree.Base(), Commit: commit})
		return err
	})
	if !merged.Skipped {
		n.step("6checkout", func() error { return n.tree.CheckoutTree(ctx, merged.Tree, truth) })
	}
	n.step("7land", func() error {
		res, err := n.mirror.Land(ctx, LandRequest{Attempt: n.attempt, Fence: n.fence, Base: n.base, ExpectTruth: truth,
			Tree: merged.Tree, Message: "Edit", When: testTime})
		require.Equal(n.t, Landed, res.Status)
		return err
	})
	n.step("8release", func() error { return n.tree.Release(ctx, ReleaseOptions{Reusable: recycle}) })
}
