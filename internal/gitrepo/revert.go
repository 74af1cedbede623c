package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A RevertRequest takes landed commits back.
type RevertRequest struct {
	Run         string
	Base        string   // the run's base commit
	ExpectTruth string   // the truth that the decision was made on
	Commits     []string // landings to take back, in any order
	Message     string   // subject and body; trailers are added
	When        time.Time
}

// A RevertResult says what became of it. With Conflicts the truth did not change.
type RevertResult struct {
	Status     LandStatus
	Commit     string
	Truth      string
	Conflicts  []string // paths that could not be taken back
	ConflictAt string   // the landing at which they are
	BranchNote string
}

// Conflicted is the status of a revert or landing that does not apply.
const Conflicted LandStatus = "conflict"

// Revert takes landings back, latest first, as one commit on the truth that names them. It is
// idempotent, like Land.
func (m *Mirror) Revert(ctx context.Context, req RevertRequest) (RevertResult, error) {
	if err := checkName("run", req.Run); err != nil {
		return RevertResult{}, err
	}
	var last error
	for range refTries {
		res, err := m.tryRevert(ctx, req)
		if err == nil {
			return res, nil
		}
		if last = err; !retryable(err) || ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrLocked) {
			if err := m.waitHubLock(ctx, TruthRef(req.Run)); err != nil {
				break
			}
		}
	}
	return RevertResult{}, fmt.Errorf("revert on %s: %w", req.Run, last)
}

func (m *Mirror) tryRevert(ctx context.Context, req RevertRequest) (RevertResult, error) {
	name := TruthRef(req.Run)
	refs, err := m.hubRefs(ctx, name, BranchRef(req.Run), branchBlocker)
	if err != nil {
		return RevertResult{}, err
	}
	truth := refs[name]
	if truth == "" {
		return RevertResult{}, ErrTruthMissing
	}
	state, err := m.stateAt(ctx, req.Run, req.Base, truth)
	if err != nil {
		return RevertResult{}, err
	}
	if by, ok := state.reverted(req.Commits); ok {
		return RevertResult{Status: Landed, Commit: by, Truth: truth}, nil
	}
	switch {
	case state.BranchMoved():
		return RevertResult{Status: Foreign, Truth: truth}, nil
	case truth != req.ExpectTruth:
		return RevertResult{Status: LostRace, Truth: truth}, nil
	}
	tree, at, conflicts, err := m.revertTree(ctx, state, req.Commits, req.When)
	if err != nil {
		return RevertResult{}, err
	}
	if len(conflicts) > 0 {
		return RevertResult{Status: Conflicted, Truth: truth, Conflicts: conflicts, ConflictAt: at}, nil
	}
	landing := Landing{Parent: truth, Tree: tree, Reverts: slices.Sorted(slices.Values(req.Commits))}
	oid, err := m.writeCommit(ctx, tree, []string{truth}, fullMessage(req.Message, landing.trailers(req.Run)), req.When)
	if err != nil {
		return RevertResult{}, err
	}
	landing.Commit = oid
	note, err := m.advance(ctx, req.Run, oid, state, refs, []refUpdate{{name, truth, oid}})
	if err != nil {
		return RevertResult{}, err
	}
	m.extend(req.Run, req.Base, truth, landing)
	return RevertResult{Status: Landed, Commit: oid, Truth: oid, BranchNote: note}, nil
}

// reverted returns the commit that takes all of the landings back, if one does.
func (s RunState) reverted(commits []string) (by string, ok bool) {
	for _, oid := range commits {
		i := slices.IndexFunc(s.Landings, func(l Landing) bool { return l.Commit == oid })
		if i < 0 || s.Landings[i].RevertedBy == "" || by != "" && s.Landings[i].RevertedBy != by {
			return "", false
		}
		by = s.Landings[i].RevertedBy
	}
	return by, by != ""
}

// revertTree computes the truth's tree with the landings taken back. Each is merged as a synthetic
// commit: the tree of the landing's parent on top of the landing, so that the landing itself is the
// merge base (merge-tree of git 2.39 takes no base).
func (m *Mirror) revertTree(ctx context.Context, state RunState, commits []string, when time.Time) (tree, at string, conflicts []string, err error) {
	position := func(oid string) int {
		return slices.IndexFunc(state.Landings, func(l Landing) bool { return l.Commit == oid })
	}
	order := slices.Clone(commits)
	slices.SortFunc(order, func(a, b string) int { return position(b) - position(a) })
	current := state.Truth
	for _, oid := range order {
		i := position(oid)
		if i < 0 {
			return "", "", nil, fmt.Errorf("%s did not land in this run", oid)
		}
		before, err := m.treeOf(ctx, state.Landings[i].Parent)
		if err != nil {
			return "", "", nil, err
		}
		undo, err := m.writeCommit(ctx, before, []string{oid}, "Undo "+oid, when)
		if err != nil {
			return "", "", nil, err
		}
		merged, err := m.mergeTree(ctx, current, undo)
		if err != nil {
			return "", "", nil, err
		}
		if !merged.Clean {
			return "", oid, merged.Conflicts, nil
		}
		tree = merged.Tree
		if current, err = m.writeCommit(ctx, tree, []string{current}, "Without "+oid, when); err != nil {
			return "", "", nil, err
		}
	}
	if tree == "" {
		return "", "", nil, errors.New("nothing to revert")
	}
	return tree, "", nil, nil
}

// Tree is the tree object of a commit of the mirror: equal trees have equal content.
func (m *Mirror) Tree(ctx context.Context, commit string) (string, error) {
	if err := checkRev(commit); err != nil {
		return "", err
	}
	return m.treeOf(ctx, commit)
}

func (m *Mirror) treeOf(ctx context.Context, commit string) (string, error) {
	return m.revParse(ctx, commit+"^{tree}")
}

func (m *Mirror) parentOf(ctx context.Context, commit string) (string, error) {
	return m.revParse(ctx, commit+"^")
}

func (m *Mirror) revParse(ctx context.Context, rev string) (string, error) {
	res, err := m.run(ctx, command{args: []string{"rev-parse", "--verify", "--end-of-options", rev}})
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", rev, err)
	}
	return lastLine(res.text()), nil
}

// A PickResult is a chain of commits, or the paths in conflict.
type PickResult struct {
	Commit     Commit // of everything picked; for a throw-away worktree
	Conflicts  []string
	ConflictAt string // the commit that does not apply
}

// Pick puts the changes of commits, in the given order, onto another commit of the mirror, without
// landing anything: an attribution asks what a landing does on its own.
func (m *Mirror) Pick(ctx context.Context, onto string, commits []string, when time.Time) (PickResult, error) {
	current := Commit{OID: onto}
	var err error
	if current.Tree, err = m.treeOf(ctx, onto); err != nil {
		return PickResult{}, fmt.Errorf("pick onto %s: %w", onto, err)
	}
	for _, oid := range commits {
		parent, err := m.parentOf(ctx, oid)
		if err != nil {
			return PickResult{}, fmt.Errorf("pick %s: %w", oid, err)
		}
		// The tree so far, as a sibling of the commit: the commit's parent is the merge base.
		sibling, err := m.writeCommit(ctx, current.Tree, []string{parent}, "Onto "+onto, when)
		if err != nil {
			return PickResult{}, fmt.Errorf("pick %s: %w", oid, err)
		}
		merged, err := m.mergeTree(ctx, sibling, oid)
		if err != nil {
			return PickResult{}, fmt.Errorf("pick %s: %w", oid, err)
		}
		if !merged.Clean {
			return PickResult{Conflicts: merged.Conflicts, ConflictAt: oid}, nil
		}
		current.Tree = merged.Tree
		if current.OID, err = m.writeCommit(ctx, current.Tree, []string{current.OID}, "Pick "+oid, when); err != nil {
			return PickResult{}, fmt.Errorf("pick %s: %w", oid, err)
		}
	}
	return PickResult{Commit: current}, nil
}
