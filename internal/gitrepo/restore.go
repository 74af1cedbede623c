package gitrepo

import (
	"context"
	"errors"
	"fmt"
)

// ForeignRef is where what somebody else put on the truth of a run is kept when the truth is restored.
func ForeignRef(run, commit string) string {
	return "refs/mendflow/salvage/" + run + "/foreign/" + commit[:min(len(commit), 12)]
}

// Restored is what RestoreTruth did. Kept is the ref under which what was on the truth lies now; empty
// when the truth was as the run left it, or was gone.
type Restored struct {
	State RunState
	Kept  string
}

// RestoreTruth puts the truth of a run back to what the run itself landed, when somebody else moved or
// removed it. known are commits that the run remembers as its own; what holds the most landings of the
// run and nothing foreign counts. Without any of these the truth becomes the base.
func (m *Mirror) RestoreTruth(ctx context.Context, run, base string, known ...string) (Restored, error) {
	var last error
	for range refTries {
		done, restored, err := m.tryRestore(ctx, run, base, known)
		if done || err != nil && !errors.Is(err, errRefused) {
			return restored, err
		}
		last = err
		if err := m.waitHubLock(ctx, TruthRef(run)); err != nil {
			return Restored{}, errors.Join(last, err)
		}
	}
	return Restored{}, fmt.Errorf("restore truth of %s: %w", run, last)
}

func (m *Mirror) tryRestore(ctx context.Context, run, base string, known []string) (done bool, restored Restored, err error) {
	state, err := m.State(ctx, run, base)
	missing := errors.Is(err, ErrTruthMissing)
	if err != nil && !missing {
		return false, restored, err
	}
	if !missing && !state.BranchMoved() {
		return true, Restored{State: state}, nil
	}
	own, err := m.ownState(ctx, run, base, append([]string{}, known...), state)
	if err != nil {
		return false, restored, fmt.Errorf("restore truth of %s: %w", run, err)
	}
	restored.State = own
	updates := []refUpdate{{TruthRef(run), state.Truth, own.Truth}}
	if !missing {
		restored.Kept = ForeignRef(run, state.Truth)
		kept, err := m.hubRefs(ctx, restored.Kept)
		if err != nil {
			return false, restored, fmt.Errorf("restore truth of %s: %w", run, err)
		}
		if kept[restored.Kept] == "" {
			updates = append(updates, refUpdate{restored.Kept, "", state.Truth})
		}
	}
	if _, err := m.update(ctx, transfer{tips: []string{own.Truth}, known: m.hubTips()}, updates, nil); err != nil {
		return false, restored, fmt.Errorf("restore truth of %s: %w", run, err)
	}
	m.remember(run, base, own)
	return true, restored, nil
}

// ownState is the state of the run that holds the most of its landings and nothing foreign.
func (m *Mirror) ownState(ctx context.Context, run, base string, known []string, moved RunState) (RunState, error) {
	best := RunState{Truth: base}
	if !moved.Diverged {
		for _, l := range moved.Landings {
			known = append(known, l.Commit)
		}
	}
	refs, err := m.hubRefs(ctx, BranchRef(run))
	if err != nil {
		return best, err
	}
	if branch := refs[BranchRef(run)]; branch != "" && m.ensure(ctx, branch, BranchRef(run)) == nil {
		known = append(known, branch)
	}
	for _, commit := range known {
		if has, err := m.has(ctx, commit); err != nil || !has {
			continue // it was never here: another host landed it, and it is not on any ref any more
		}
		state, err := m.readState(ctx, run, base, commit)
		if err != nil {
			return best, err
		}
		if !state.BranchMoved() && len(state.Landings) > len(best.Landings) {
			best = state
		}
	}
	return best, nil
}
