package startercmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
)

// diff prints the patch of a run, of a node's landing or of an attempt's salvage.
func (a *app) diff(ctx context.Context, run, what string) error {
	repository, base, head, err := a.runCommits(ctx, run)
	if err != nil {
		return err
	}
	from, to := base, head
	node, number, salvage := strings.Cut(what, "/")
	if what != "" {
		rows, err := a.attempts(ctx, run, node)
		if err != nil {
			return err
		}
		if from, to, err = attemptDiff(rows, node, number, salvage); err != nil {
			return err
		}
	}
	hub, err := gitrepo.ResolveHub(ctx, repository)
	if err != nil {
		return fmt.Errorf("open repository %s: %w", repository, err)
	}
	mirror, err := a.openMirror(ctx, hub)
	if err != nil {
		return err
	}
	find := mirror.ResolveBase
	if from == "" { // a salvage, which may lie on its host alone
		find = mirror.FindSalvage
	}
	name := to
	if to, err = find(ctx, name); err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if from == "" {
		from = to + "^"
	}
	patch, err := mirror.Diff(ctx, from, to)
	if err != nil {
		return fmt.Errorf("print diff: %w", err)
	}
	apply := "git cherry-pick " + to
	if what == "" {
		apply = "git merge " + contract.TruthRef(run)
	}
	return a.sayDiff(diffOut{From: from, To: to, Apply: apply, Patch: string(patch)})
}

// attemptDiff names what of a node is shown: its landing, or the salvage of a named attempt.
func attemptDiff(rows []contract.AttemptRow, node, number string, named bool) (from, to string, err error) {
	k := 0
	if named {
		if k, err = strconv.Atoi(number); err != nil {
			return "", "", usage("read %s/%s: the attempt is a number", node, number)
		}
	}
	for i := len(rows) - 1; i >= 0; i-- {
		row := rows[i]
		switch {
		case k != 0 && row.K != k:
		case row.Commit != "":
			return row.LandedOn, row.Commit, nil
		case row.Salvage != "":
			return "", row.Salvage, nil
		}
	}
	return "", "", fmt.Errorf("print diff: %s left nothing there: neither a landed commit nor a salvage", node)
}

// runCommits finds a run's repository, base and head, from the run or from its report.
func (a *app) runCommits(ctx context.Context, run string) (repository, base, head string, err error) {
	if model, _, err := a.reportModel(ctx, run); err == nil {
		return model.Repository, model.BaseCommit, model.HeadCommit, nil
	}
	c, err := a.dial(ctx)
	if err != nil {
		return "", "", "", err
	}
	defer c.Close()
	v, err := view(ctx, c, run)
	if err != nil {
		return "", "", "", err
	}
	return v.Repository, v.BaseCommit, contract.TruthRef(run), nil
}
