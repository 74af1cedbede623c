package gitrepo

import (
	"context"
	"fmt"
	"slices"
)

// A MergeRequest brings an attempt's commit onto the truth.
type MergeRequest struct {
	Truth  string // where the truth is now
	Base   string // where the commit's parent is
	Commit Commit
	// SharedAppend says that both sides declared the path shared_append.
	SharedAppend func(path string) bool
}

// A MergeResult is the merged tree, or the paths in conflict.
type MergeResult struct {
	Tree      string   // of the merge; with conflicts it holds markers and is of no use
	Clean     bool     // nothing is in conflict
	Skipped   bool     // the truth did not move: Tree is the commit's own
	Conflicts []string // by path
	Appended  []string // conflicts that were resolved as additions, ours then theirs
}

// Merge computes the tree of the truth with the commit merged in, without any worktree.
func (m *Mirror) Merge(ctx context.Context, req MergeRequest) (MergeResult, error) {
	if req.Truth == req.Base {
		m.store.hook(PointMerged)
		return MergeResult{Tree: req.Commit.Tree, Clean: true, Skipped: true}, nil
	}
	// Another host may have moved the truth.
	if err := m.ensure(ctx, req.Truth, req.Truth); err != nil {
		return MergeResult{}, fmt.Errorf("merge %s onto %s: %w", req.Commit.OID, req.Truth, err)
	}
	res, err := m.mergeTree(ctx, req.Truth, req.Commit.OID)
	if err != nil {
		return MergeResult{}, fmt.Errorf("merge %s onto %s: %w", req.Commit.OID, req.Truth, err)
	}
	if !res.Clean && req.SharedAppend != nil && !slices.ContainsFunc(res.Conflicts, func(p string) bool { return !req.SharedAppend(p) }) {
		if res, err = m.appendBoth(ctx, req, res); err != nil {
			return MergeResult{}, fmt.Errorf("merge additions of %s onto %s: %w", req.Commit.OID, req.Truth, err)
		}
	}
	m.store.hook(PointMerged)
	return res, nil
}

func mergeTreeCommand(ours, theirs string) command {
	return command{
		args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs},
		ok:   []int{1},
	}
}

func (m *Mirror) mergeTree(ctx context.Context, ours, theirs string) (MergeResult, error) {
	res, err := m.run(ctx, mergeTreeCommand(ours, theirs))
	if err != nil {
		return MergeResult{}, err
	}
	merged, err := parseMergeTree(res.stdout)
	merged.Clean = res.code == 0
	return merged, err
}

// parseMergeTree reads the output of merge-tree --name-only: the tree, then the paths in conflict.
func parseMergeTree(out []byte) (MergeResult, error) {
	parts := splitNUL(out)
	if len(parts) == 0 || !isOID(parts[0]) {
		return MergeResult{}, fmt.Errorf("unexpected answer of merge-tree: %q", out)
	}
	return MergeResult{Tree: parts[0], Conflicts: slices.Compact(slices.Sorted(slices.Values(parts[1:])))}, nil
}
