package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"mendflow/internal/gitrepo"
)

// landing times what LandWork does between the commit and the landed truth,
// on a large repository against a small one.
func landing(ctx context.Context, s *stage) ([]row, error) {
	const small, large, nodes = 1000, 100_000, 8
	landers := map[int]*lander{}
	for _, files := range []int{small, large} {
		l, err := openLander(ctx, filepath.Join(s.dir, strconv.Itoa(files)), files)
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.store.Close() }()
		landers[files] = l
	}
	r := row{figure: "merge + object transfer + transaction, 100 000 files ÷ 1 000", floor: 2, goal: 1.2}
	var smalls, larges []float64
	for range s.rounds {
		var few, many time.Duration
		for range nodes { // in turn, so that a busy moment hits both
			for _, files := range []int{small, large} {
				took, err := landers[files].node(ctx)
				if err != nil {
					return nil, err
				}
				if files == small {
					few += took
				} else {
					many += took
				}
			}
		}
		smalls, larges = append(smalls, perNode(few, nodes)), append(larges, perNode(many, nodes))
		r.samples = append(r.samples, float64(many)/float64(few))
		fmt.Fprintf(s.progress, "  1 000 files %.1f ms, 100 000 files %.1f ms\n", smalls[len(smalls)-1], larges[len(larges)-1])
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("%.1f ms ÷ %.1f ms", median(larges), median(smalls))
	return []row{r}, nil
}

// lander lands nodes of one run, one after the other.
type lander struct {
	store  *gitrepo.Store
	mirror *gitrepo.Mirror
	base   string
	landed int
}

const landerRun = "landing"

func openLander(ctx context.Context, dir string, files int) (*lander, error) {
	seed := filepath.Join(dir, "hub")
	if err := makeRepository(seed, files); err != nil {
		return nil, err
	}
	store, err := gitrepo.NewStore(gitrepo.Settings{StateDir: filepath.Join(dir, "state"), HostID: "bench"})
	if err != nil {
		return nil, err
	}
	hub, err := gitrepo.ResolveHub(ctx, seed)
	if err != nil {
		return nil, err
	}
	l := &lander{store: store}
	if l.mirror, err = store.Mirror(ctx, hub, gitrepo.Options{}); err != nil {
		return nil, err
	}
	if l.base, err = l.mirror.ResolveBase(ctx, ""); err != nil {
		return nil, err
	}
	_, err = l.mirror.OpenTruth(ctx, landerRun, l.base)
	return l, err
}

// node lands an edit that was made on the run's base, so that all but the first
// need a true merge, and returns how long merge and landing took.
func (l *lander) node(ctx context.Context) (time.Duration, error) {
	i := l.landed
	l.landed++
	a := gitrepo.Attempt{Run: landerRun, Node: "n" + strconv.Itoa(i), Opening: 1, Number: 1, Findings: []string{"F" + strconv.Itoa(i)}}
	fence, err := l.mirror.SetFence(ctx, a)
	if err != nil {
		return 0, err
	}
	tree, err := l.mirror.AddWorktree(ctx, a, l.base, gitrepo.WorktreeOptions{})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(tree.Path(), sourceFile(i)), []byte("edited "+strconv.Itoa(i)+"\n"), 0o644); err != nil {
		return 0, err
	}
	work, err := tree.Collect(ctx, gitrepo.Scope{})
	if err != nil {
		return 0, err
	}
	when := time.Unix(1_700_000_000, 0)
	commit, err := tree.Commit(ctx, gitrepo.CommitRequest{Attempt: a, Work: work, Message: "Edit", When: when})
	if err != nil {
		return 0, err
	}
	started := time.Now()
	if err := l.land(ctx, a, fence, tree, commit, when); err != nil {
		return 0, err
	}
	took := time.Since(started)
	return took, tree.Release(ctx, gitrepo.ReleaseOptions{Reusable: true})
}

func (l *lander) land(ctx context.Context, a gitrepo.Attempt, fence gitrepo.Fence, tree *gitrepo.Worktree, commit gitrepo.Commit, when time.Time) error {
	state, err := l.mirror.State(ctx, landerRun, l.base)
	if err != nil {
		return err
	}
	merged, err := l.mirror.Merge(ctx, gitrepo.MergeRequest{Truth: state.Truth, Base: tree.Base(), Commit: commit})
	if err != nil {
		return err
	}
	result, err := l.mirror.Land(ctx, gitrepo.LandRequest{
		Attempt: a, Fence: fence, Base: l.base, ExpectTruth: state.Truth, Tree: merged.Tree, Message: "Edit", When: when,
	})
	if err == nil && result.Status != gitrepo.Landed {
		err = errors.New("land: " + fmt.Sprint(result.Status))
	}
	return err
}
