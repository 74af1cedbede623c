package gitrepo

import (
	"context"
	"errors"
	"fmt"
)

// LiftFence takes the right to land from the attempt that was given this fence, and from no other:
// when the fence names somebody else by now, nothing happens.
func (m *Mirror) LiftFence(ctx context.Context, f Fence, reason string) error {
	if err := f.Attempt.check(); err != nil {
		return err
	}
	oid, err := m.newFence(fenceBlob{Run: f.Attempt.Run, Node: f.Attempt.Node, Opening: f.Attempt.Opening, Reason: reason})
	if err != nil {
		return fmt.Errorf("lift fence of %s: %w", f.Attempt, err)
	}
	name := FenceRef(f.Attempt.Run, f.Attempt.Node)
	var last error
	for range refTries {
		refs, err := m.hubRefs(ctx, name)
		if err != nil {
			return fmt.Errorf("lift fence of %s: %w", f.Attempt, errors.Join(last, err))
		}
		if refs[name] != f.OID {
			return nil
		}
		if _, last = m.update(ctx, transfer{}, []refUpdate{{name, f.OID, oid}}, nil); last == nil || ctx.Err() != nil {
			return last
		}
		if errors.Is(last, ErrLocked) {
			if err := m.waitHubLock(ctx, name); err != nil {
				return fmt.Errorf("lift fence of %s: %w", f.Attempt, errors.Join(last, err))
			}
		}
	}
	return fmt.Errorf("lift fence of %s: %w", f.Attempt, last)
}

// FollowBranch lets the branch of a run follow the truth once more. The note says why it is left
// alone; empty: it is where the truth is.
func (m *Mirror) FollowBranch(ctx context.Context, run string, state RunState) (note string, err error) {
	refs, err := m.hubRefs(ctx, BranchRef(run), branchBlocker)
	if err != nil {
		return "", fmt.Errorf("follow branch of %s: %w", run, err)
	}
	follow, note, err := m.followBranch(run, state.Truth, state, refs)
	if err != nil || len(follow) == 0 {
		return note, err
	}
	if _, err := m.update(ctx, transfer{}, follow, nil); err != nil {
		return branchRefused, nil //nolint:nilerr // the branch is a convenience: the note says that it does not follow
	}
	return "", nil
}
