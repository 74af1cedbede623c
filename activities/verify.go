package activities

import (
	"context"
	"errors"
	"fmt"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/run"
)

// verify runs the node's commands on the merged tree, and repeats what the worker claimed.
func (l *lander) verify(ctx context.Context, truth string, merged gitrepo.MergeResult, commit gitrepo.Commit, step run.Step, checked *run.Checked) error {
	resumed := l.tree.HandedOver() // an earlier execution died here: the tree is in an unknown state
	leftovers := l.work.Leftovers()
	if len(leftovers) > 0 && l.end.Salvage == "" {
		kept, err := l.tree.Salvage(ctx, l.gitScope(), l.opened.config.OpenedAt)
		if err != nil {
			return fmt.Errorf("salvage leftovers: %w", err)
		}
		l.end.Salvage = kept.Ref
	}
	if err := l.tree.HandOver(l.work, commit); err != nil {
		return err
	}
	if err := l.tree.RemoveLeftovers(l.work); err != nil {
		return fmt.Errorf("remove leftovers: %w", err)
	}
	if len(l.node.Verify)+len(step.Claims) == 0 {
		checked.Verify = run.VerifyNone
		return nil
	}
	// A tree that did not move is verified as the worker left it, when it holds exactly what will land.
	if resumed || !merged.Skipped || l.work.Normalised() || len(leftovers) > 0 || merged.Tree != commit.Tree {
		if err := l.tree.CheckoutTree(ctx, merged.Tree, truth); err != nil {
			return fmt.Errorf("check out merged tree: %w", err)
		}
	}
	if resumed {
		if err := l.tree.DiscardChanges(ctx, merged.Tree); err != nil {
			return fmt.Errorf("clean merged tree: %w", err)
		}
	}
	return l.runVerify(ctx, merged.Tree, step, checked)
}

// verifyTruth verifies the truth without the worker's changes, for answers that change nothing.
func (l *lander) verifyTruth(ctx context.Context, state gitrepo.RunState, step run.Step) error {
	var checked run.Checked
	var left gitrepo.Commit
	if !l.work.Empty() || len(l.work.Leftovers()) > 0 {
		kept, err := l.tree.Salvage(ctx, l.gitScope(), l.opened.config.OpenedAt)
		if err != nil {
			return fmt.Errorf("salvage work: %w", err)
		}
		l.end.Salvage, left.OID = kept.Ref, kept.Commit
	}
	if err := l.tree.HandOver(l.work, left); err != nil {
		return err
	}
	if len(l.node.Verify) > 0 || len(step.Claims) > 0 {
		tree := state.Truth + "^{tree}"
		if err := l.tree.CheckoutTree(ctx, tree, state.Truth); err != nil {
			return fmt.Errorf("check out truth: %w", err)
		}
		if err := l.tree.DiscardChanges(ctx, tree); err != nil {
			return fmt.Errorf("clean truth: %w", err)
		}
		if err := l.runVerify(ctx, tree, step, &checked); err != nil {
			return err
		}
	} else {
		checked.Verify = run.VerifyNone
	}
	if checked.Verify == run.VerifyGreen && len(checked.Held) < len(step.Claims) {
		red, err := l.redAtBase(ctx)
		if err != nil {
			return err
		}
		checked.RedAtBase = red
	}
	l.end.VerifiedOn = state.Truth
	return l.salvage(ctx, run.After(l.ended, checked))
}

// runVerify runs the node's commands, then the claims, and takes back what they changed.
func (l *lander) runVerify(ctx context.Context, tree string, step run.Step, checked *run.Checked) error {
	checked.Verify, checked.Tail, checked.Held = run.VerifyNone, "", nil
	if len(l.node.Verify)+len(step.Claims) == 0 {
		return nil
	}
	l.heart.step("verify")
	l.Host.reach(PointVerifying)
	for i, command := range l.node.Verify {
		end, err := l.checkInTree(ctx, l.tree, checkRequest{
			Command: command, Timeout: l.verifyTimeout(),
			Log: fmt.Sprintf("runs/%s/nodes/%s/a%d/verify-%d.log", l.in.Run, l.in.Node, l.in.Attempt, i+1),
		})
		if err != nil {
			return err
		}
		checked.Verify = run.VerifyGreen
		if end.Code != 0 {
			checked.Verify = run.VerifyRed
			checked.Tail = fmt.Sprintf("`%s` failed with exit code %d:\n%s", command, end.Code, clipHead(end.Tail, tailSize-200))
			l.end.Verify = end.Log
			break
		}
	}
	for _, claim := range step.Claims {
		if checked.Verify == run.VerifyRed {
			break
		}
		end, err := l.checkInTree(ctx, l.tree, checkRequest{Command: claim.Command, Timeout: l.verifyTimeout()})
		if err != nil {
			return err
		}
		if end.Code == claim.ExitCode {
			checked.Held = append(checked.Held, claim.Finding)
		}
	}
	if err := l.tree.DiscardChanges(ctx, tree); err != nil {
		return fmt.Errorf("discard changes of the verification: %w", err)
	}
	return nil
}

// checkInTree runs a command in a tree and makes sure, before and after, that it is the tree of our record.
func (l *lander) checkInTree(ctx context.Context, tree *gitrepo.Worktree, req checkRequest) (checkEnd, error) {
	if err := tree.AssertInPlace(""); err != nil {
		return checkEnd{}, fmt.Errorf("check place before `%s`: %w", req.Command, err)
	}
	req.Dir, req.Tree = tree.Path(), tree.Path()
	req.Mark = fmt.Sprintf("%s/%s/%s/a%d/verify", l.Host.Mark(), l.in.Run, l.in.Node, l.in.Attempt)
	end, err := l.Host.check(ctx, l.opened, req)
	if err != nil {
		return end, l.rec.survived(l.dir, err)
	}
	if err := tree.AssertInPlace(""); err != nil {
		return end, fmt.Errorf("check place after `%s`: %w", req.Command, err)
	}
	return end, nil
}

// redAtBase reports whether a verify command fails on the run's base, which
// proves that something was repaired since.
func (l *lander) redAtBase(ctx context.Context) (bool, error) {
	if len(l.node.Verify) == 0 {
		return false, nil
	}
	l.heart.step("verify the base")
	tree, err := l.opened.mirror.ThrowawayWorktree(ctx, l.in.Run, "base-"+l.in.Node, l.opened.config.BaseCommit)
	if err != nil {
		return false, fmt.Errorf("check out base: %w", err)
	}
	defer func() {
		if err := tree.Release(context.WithoutCancel(ctx), gitrepo.ReleaseOptions{}); err != nil {
			l.Host.Log.Warn("release tree of the base", "node", l.in.Node, "error", err)
		}
	}()
	for _, command := range l.node.Verify {
		end, err := l.checkInTree(ctx, tree, checkRequest{Command: command, Timeout: l.verifyTimeout()})
		if err != nil {
			return false, err
		}
		if end.Code != 0 {
			return true, nil
		}
	}
	return false, nil
}

// ReleaseWorktree ends an attempt's tree: what did not land is salvaged, a kept
// tree stays where it is. Releasing twice changes nothing.
func (a *Landing) ReleaseWorktree(ctx context.Context, in contract.ReleaseInput) (contract.ReleaseEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "release")
	defer heart.end()
	ctx, leave, err := a.Host.turns.take(ctx, in.Run, in.Node, in.Attempt)
	if err != nil {
		return contract.ReleaseEnd{}, translate(ctx, err)
	}
	defer leave()
	end, err := a.release(ctx, in)
	if err == nil {
		a.Host.drain.paid(in.NodeInput)
	}
	return end, translate(ctx, err)
}

func (a *Landing) release(ctx context.Context, in contract.ReleaseInput) (contract.ReleaseEnd, error) {
	var end contract.ReleaseEnd
	l := &lander{Landing: a, in: contract.LandInput{NodeInput: in.NodeInput}}
	err := l.find(ctx)
	if errors.Is(err, gitrepo.ErrNoWorktree) && in.Kept != nil {
		// The attempt died before it had taken over the tree that it was to continue.
		older := in
		older.Attempt, older.Step, older.Kept = in.Kept.Attempt, in.Kept.Step, nil
		return a.release(ctx, older)
	}
	if errors.Is(err, gitrepo.ErrNoWorktree) { // released already, or never finished: no worker was in it
		return end, l.opened.mirror.ReleaseAttempt(ctx, l.rec.Attempt, gitrepo.ReleaseOptions{})
	}
	if err != nil {
		return end, err
	}
	if !in.Landed {
		kept, err := l.tree.Salvage(ctx, l.gitScope(), l.opened.config.OpenedAt)
		if err != nil {
			return end, fmt.Errorf("salvage work: %w", err)
		}
		end.Salvage = kept.Ref
		// A zombie of this attempt must not land any more.
		if l.rec.Fence != "" {
			if err := l.opened.mirror.LiftFence(ctx, gitrepo.Fence{Attempt: l.rec.Attempt, OID: l.rec.Fence}, "released"); err != nil {
				return end, err
			}
		}
	}
	// A tree whose setup was cut short, or that something still writes to, is no place to go on in.
	if in.Keep && l.rec.Started && !l.rec.Alive {
		end.Kept = &contract.Kept{Attempt: in.Attempt, Host: a.Host.ID, Pool: in.Pool, Session: l.rec.Session, Step: in.Step}
		return end, nil
	}
	if err := l.opened.mirror.ReleaseAttempt(ctx, l.rec.Attempt, l.rec.release()); err != nil {
		end.Left = "not removed: " + oneLine(err.Error())
	}
	return end, nil
}
