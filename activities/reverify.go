package activities

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
)

// Reverify asks whether a node's blocked findings are repaired on the truth after
// all: others may have done it. The node's commands must all be green there, one
// of them must have been red on the run's base, and the finding's files must exist.
func (a *Gate) Reverify(ctx context.Context, in contract.ReverifyInput) (contract.ReverifyEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "verify again")
	defer heart.end()
	ctx, stop := a.Host.untilStopped(ctx)
	defer stop()
	end, err := a.reverify(ctx, in, heart)
	return end, translate(ctx, err)
}

func (a *Gate) reverify(ctx context.Context, in contract.ReverifyInput, heart *heart) (contract.ReverifyEnd, error) {
	var none contract.ReverifyEnd
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return none, err
	}
	node, _, err := opened.node(in.Node)
	if err != nil {
		return none, err
	}
	state, err := a.truth(ctx, opened, in.Run)
	if err != nil {
		return none, err
	}
	end := contract.ReverifyEnd{Truth: state.Truth}
	if len(node.Verify) == 0 {
		end.Reason = "the node has no verify commands"
		return end, nil
	}
	there, err := present(ctx, opened, state.Truth, in.Findings)
	if err != nil {
		return none, err
	}
	if len(there) == 0 {
		end.Reason = "its files do not exist on the truth"
		return end, nil
	}
	failed, err := a.verifyAt(ctx, opened, node, state.Truth, "again-"+in.Node, heart)
	if err != nil {
		return none, err
	}
	if failed != "" {
		end.Reason = fmt.Sprintf("`%s` still fails on the truth", clip(failed, 300))
		return end, nil
	}
	if failed, err = a.verifyAt(ctx, opened, node, opened.config.BaseCommit, "base-"+in.Node, heart); err != nil {
		return none, err
	}
	if failed == "" {
		end.Reason = "its commands are green on the base already: they prove nothing"
		return end, nil
	}
	end.Resolved = there
	end.Reason = fmt.Sprintf("`%s` was red on the base and is green on %s", clip(failed, 300), state.Truth[:min(len(state.Truth), 12)])
	return end, nil
}

// present are the findings all of whose files exist at a commit.
func present(ctx context.Context, opened *openRun, commit string, ids []string) ([]string, error) {
	var there []string
	for _, f := range opened.findings(ids) {
		missing := false
		for _, at := range f.Files {
			files, err := opened.mirror.ListFiles(ctx, commit, at.Path)
			if err != nil {
				return nil, fmt.Errorf("look for %s: %w", at.Path, err)
			}
			missing = missing || len(files) == 0
		}
		if !missing && len(f.Files) > 0 {
			there = append(there, f.ID)
		}
	}
	return there, nil
}

// verifyAt runs a node's commands on a commit and returns the first that fails; empty: none does.
func (a *Gate) verifyAt(ctx context.Context, opened *openRun, node plan.Node, commit, name string, heart *heart) (failed string, err error) {
	heart.step("verify " + node.ID + " at " + commit)
	tree, release, err := a.tree(ctx, opened, name, commit)
	if err != nil {
		return "", err
	}
	defer func() { release(err == nil) }()
	policy := opened.config.Plan.Policy
	for _, command := range opened.config.Plan.Setup {
		code, err := a.checkIn(ctx, opened, tree, command, time.Duration(policy.SetupMinutes)*time.Minute)
		if err != nil {
			return "", err
		}
		if code != 0 {
			return "", fmt.Errorf("set up tree to verify %s: `%s` failed with exit code %d", node.ID, command, code)
		}
	}
	for _, command := range node.Verify {
		code, err := a.checkIn(ctx, opened, tree, command, time.Duration(policy.VerifyMinutes)*time.Minute)
		if err != nil {
			return "", err
		}
		if code != 0 {
			return command.String(), nil
		}
	}
	return "", nil
}

func (a *Gate) checkIn(ctx context.Context, opened *openRun, tree *gitrepo.Worktree, command plan.Command, timeout time.Duration) (int, error) {
	if err := tree.AssertInPlace(""); err != nil {
		return 0, fmt.Errorf("check place before `%s`: %w", command, err)
	}
	end, err := a.Host.check(ctx, opened, checkRequest{
		Command: command, Dir: tree.Path(), Tree: tree.Path(), Timeout: timeout,
		Mark: fmt.Sprintf("%s/%s/verify/%s", a.Host.Mark(), opened.config.Run, filepath.Base(tree.Path())),
	})
	return end.Code, err
}
