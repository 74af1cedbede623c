package gitrepo

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkSparse runs whole nodes in a huge repository (MENDFLOW_BENCH_FILES files, 100 000 where it
// is not set), with the whole tree, a recycled whole tree, and a sparse one of a folder. It reports the
// time to a usable tree, of the whole node, and the size of the tree.
func BenchmarkSparse(b *testing.B) {
	files := 100_000
	if n, err := strconv.Atoi(os.Getenv("MENDFLOW_BENCH_FILES")); err == nil {
		files = n
	}
	hub := generatedRepo(b, files)
	for _, c := range []struct {
		name            string
		sparse, recycle bool
	}{{"whole", false, false}, {"recycled", false, true}, {"sparse", true, false}} {
		b.Run(fmt.Sprintf("files=%d/%s", files, c.name), func(b *testing.B) {
			// The cases share the repository, not what they land.
			if old := plainGit(b, hub, "for-each-ref", "--format=delete %(refname)", "refs/mendflow", "refs/heads/mendflow"); old != "" {
				plainGitInput(b, hub, old+"\n", "update-ref", "--stdin")
			}
			run := openRunOn(b, hub, false, Options{Sparse: c.sparse}, nil)
			var opts WorktreeOptions
			if c.sparse {
				opts.Sparse = []string{"/src/d000/**"}
			}
			var ready, whole time.Duration
			var size int64
			i := 0
			for b.Loop() {
				begin := time.Now()
				a := attempt(c.name+strconv.Itoa(i), 1)
				fence, err := run.mirror.SetFence(b.Context(), a)
				require.NoError(b, err)
				w, err := run.mirror.AddWorktree(b.Context(), a, run.truth(), opts)
				require.NoError(b, err)
				if !c.recycle || i > 0 { // the first tree of a host is a fresh one
					ready += time.Since(begin)
				}
				if i == 0 {
					size, _ = diskUse(w.Path())
				}
				writeFile(b, w.Path(), "src/d000/f000000.txt", a.Node+"\n")
				require.Equal(b, Landed, run.land(a, fence, w).Status)
				require.NoError(b, w.Release(b.Context(), ReleaseOptions{Reusable: c.recycle}))
				if !c.recycle || i > 0 {
					whole += time.Since(begin)
				}
				i++
			}
			n := float64(max(1, i))
			if c.recycle {
				n = float64(max(1, i-1))
			}
			b.ReportMetric(ready.Seconds()/n, "s/tree")
			b.ReportMetric(whole.Seconds()/n, "s/node")
			b.ReportMetric(float64(size)/(1<<20), "MiB/tree")
		})
	}
}
