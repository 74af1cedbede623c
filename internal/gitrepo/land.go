package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A LandStatus says what became of a landing.
type LandStatus string

const (
	Landed   LandStatus = "landed"
	LostRace LandStatus = "lost_race" // the truth moved by landings of the run: merge again
	Fenced   LandStatus = "fenced"    // another attempt may land, or landed, this one may not
	Foreign  LandStatus = "foreign"   // somebody else wrote to the truth: the run has to be recovered
)

// A LandRequest puts a verified tree on the truth.
type LandRequest struct {
	Attempt     Attempt
	Fence       Fence  // as SetFence gave it to this attempt
	Base        string // the run's base commit
	ExpectTruth string // the truth that Tree was merged onto
	Tree        string
	Message     string // subject and body; trailers are added
	When        time.Time
}

// A LandResult is a value, never an error: only what nobody could find out is one.
type LandResult struct {
	Status LandStatus
	Commit string // with Landed: the commit; it may have landed in an earlier call
	Truth  string // where the truth is now
	// BranchNote says why the branch mendflow/<run> was left alone; empty: it is where the truth is.
	BranchNote string
}

// Land puts the tree on the truth as one commit and moves truth and fence in one transaction. It is
// idempotent: what landed already is found by its trailers, an unknown answer is resolved by looking.
func (m *Mirror) Land(ctx context.Context, req LandRequest) (LandResult, error) {
	if err := req.Attempt.check(); err != nil {
		return LandResult{}, err
	}
	var last error
	// One landing of this process at a time looks and swaps: the others would send objects for nothing.
	select {
	case m.state.swap <- struct{}{}:
		defer func() { <-m.state.swap }()
	case <-ctx.Done():
		return LandResult{}, fmt.Errorf("land %s: %w", req.Attempt, context.Cause(ctx))
	}
	look := ctx
	for range refTries {
		res, done, err := m.tryLand(ctx, look, req, last)
		if done {
			return res, nil
		}
		if last = err; !retryable(err) {
			break
		}
		if ctx.Err() != nil && look == ctx {
			// The transaction had begun: its answer is looked up all the same.
			var cancel context.CancelFunc
			look, cancel = context.WithTimeout(context.WithoutCancel(ctx), transactionLimit)
			defer cancel()
		}
	}
	return LandResult{}, fmt.Errorf("land %s: %w", req.Attempt, last)
}

// retryable: the hub refused although its refs did not move when we looked, or a lock was in the way.
func retryable(err error) bool {
	return errors.Is(err, errRefused) || errors.Is(err, ErrLocked) || errors.Is(err, errUnknownAnswer)
}

// errUnknownAnswer marks a transaction of which we do not know whether it happened.
var errUnknownAnswer = errors.New("the answer of the hub is unknown")

// tryLand decides by what the hub says now, and changes it once. An error that is retryable asks for
// another look; look is ctx until that is cancelled.
func (m *Mirror) tryLand(ctx, look context.Context, req LandRequest, last error) (LandResult, bool, error) {
	a := req.Attempt
	truthRef, fenceRef := TruthRef(a.Run), FenceRef(a.Run, a.Node)
	refs, err := m.hubRefs(look, truthRef, fenceRef, BranchRef(a.Run), branchBlocker)
	if err != nil {
		return LandResult{}, false, errors.Join(last, err)
	}
	truth := refs[truthRef]
	if truth == "" {
		return LandResult{}, false, ErrTruthMissing
	}
	state, err := m.stateAt(look, a.Run, req.Base, truth)
	if err != nil {
		return LandResult{}, false, err
	}
	if l, ok := state.Landed(a.Node, a.Opening); ok {
		return m.landedAlready(look, req, state, l, refs)
	}
	switch {
	case state.BranchMoved():
		return LandResult{Status: Foreign, Truth: truth}, true, nil
	case refs[fenceRef] != req.Fence.OID:
		return LandResult{Status: Fenced, Truth: truth}, true, nil
	case truth != req.ExpectTruth:
		return LandResult{Status: LostRace, Truth: truth}, true, nil
	}
	if last != nil && errors.Is(last, ErrLocked) {
		if err := m.waitHubLock(ctx, truthRef, fenceRef); err != nil {
			return LandResult{}, false, err
		}
	}
	res, err := m.transact(ctx, req, state, refs)
	return res, err == nil, err
}

// landedAlready answers for an opening that the truth holds. A fence that still names this attempt
// after its landing was left by a crash in the middle of the transaction, and is repaired.
func (m *Mirror) landedAlready(ctx context.Context, req LandRequest, state RunState, l Landing, refs map[string]string) (LandResult, bool, error) {
	a := req.Attempt
	if l.Attempt != a.Number {
		return LandResult{Status: Fenced, Truth: state.Truth}, true, nil
	}
	if refs[FenceRef(a.Run, a.Node)] == req.Fence.OID {
		if _, err := m.moveFence(ctx, a.Run, a.Node, fenceBlob{Run: a.Run, Node: a.Node, Opening: a.Opening, Landed: l.Commit}); err != nil {
			return LandResult{}, false, fmt.Errorf("repair fence: %w", err)
		}
	}
	res := LandResult{Status: Landed, Commit: l.Commit, Truth: state.Truth}
	follow, note, err := m.followBranch(a.Run, state.Truth, state, refs)
	if err != nil {
		return LandResult{}, false, err
	}
	if len(follow) > 0 {
		if _, err := m.update(ctx, transfer{}, follow, nil); err != nil {
			note = branchRefused
		}
	}
	res.BranchNote = note
	return res, true, nil
}

func (m *Mirror) transact(ctx context.Context, req LandRequest, state RunState, refs map[string]string) (LandResult, error) {
	a := req.Attempt
	landing := a.landing()
	landing.Parent, landing.Tree = req.ExpectTruth, req.Tree
	oid, err := m.writeCommit(ctx, req.Tree, []string{req.ExpectTruth}, fullMessage(req.Message, landing.trailers(a.Run)), req.When)
	if err != nil {
		return LandResult{}, err
	}
	landing.Commit = oid
	fence, err := m.newFence(fenceBlob{Run: a.Run, Node: a.Node, Opening: a.Opening, Landed: oid})
	if err != nil {
		return LandResult{}, err
	}
	// Truth first: refs of a hub by path are renamed one after the other, and truth moved with the
	// fence left behind still means landed.
	updates := []refUpdate{{TruthRef(a.Run), req.ExpectTruth, oid}, {FenceRef(a.Run, a.Node), req.Fence.OID, fence}}
	note, err := m.advance(ctx, a.Run, oid, state, refs, updates)
	if err != nil {
		return LandResult{}, err
	}
	m.extend(a.Run, req.Base, req.ExpectTruth, landing)
	return LandResult{Status: Landed, Commit: oid, Truth: oid, BranchNote: note}, nil
}

// advance moves the truth to a child of it, with what else belongs to the transaction, and lets the
// branch follow; note says why it does not. From the transaction to its answer nothing interrupts.
func (m *Mirror) advance(ctx context.Context, run, to string, state RunState, refs map[string]string, updates []refUpdate) (note string, err error) {
	follow, note, err := m.followBranch(run, to, state, refs)
	if err != nil {
		return "", err
	}
	m.store.hook(PointBeforeTransaction)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactionLimit)
	defer cancel()
	followed, err := m.update(bounded, transfer{tips: []string{to}, known: []string{state.Truth}}, updates, follow)
	if err != nil {
		if !errors.Is(err, errRefused) {
			err = fmt.Errorf("%w: %w", errUnknownAnswer, err)
		}
		return "", err
	}
	m.store.hook(PointAfterTransaction)
	if len(follow) > 0 && !followed {
		note = branchRefused
	}
	return note, nil
}

// transactionLimit ends a transaction that hangs, for instance on a network that went away.
const transactionLimit = 10 * time.Minute

// branchBlocker is the branch whose existence keeps refs below it from being made.
const branchBlocker = "refs/heads/mendflow"

const branchRefused = "the hub refused it"

// followBranch returns the update that lets the branch of the run follow to a commit, none when it is
// there already, or the note that says why it is left alone.
func (m *Mirror) followBranch(run, to string, state RunState, refs map[string]string) (follow []refUpdate, note string, err error) {
	name := BranchRef(run)
	now := refs[name]
	if refs[branchBlocker] != "" {
		return nil, "a branch named mendflow exists", nil
	}
	if now == to {
		return nil, "", nil
	}
	if now != "" && now != state.Truth && !state.contains(now) {
		return nil, "somebody moved it to " + now, nil
	}
	if m.hub.URL == "" {
		at, err := checkedOut(m.hub.GitDir, name)
		if err != nil {
			return nil, "", err
		}
		if at != "" {
			return nil, "it is checked out at " + at, nil
		}
	}
	return []refUpdate{{name, now, to}}, "", nil
}

// contains says that a commit is on the truth since the base, the base included.
func (s RunState) contains(oid string) bool {
	for _, l := range s.Landings {
		if l.Commit == oid || l.Parent == oid {
			return true
		}
	}
	return false
}
