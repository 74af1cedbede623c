package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/provider"
)

// request says what the worker is to do and with what.
func (l *launch) request(ctx context.Context) (provider.Request, error) {
	task := provider.Task{
		Goal: l.opened.config.Plan.Goal, Node: l.node, Findings: l.opened.findings(l.rec.Attempt.Findings),
		MustNotTouch: l.opened.config.Plan.Intent.MustNotTouch, ResultFile: l.resultFile(),
		Failure: l.in.Tail, Salvage: l.salvaged(ctx), Landed: l.landed, Continued: l.in.Kept != nil, Left: l.left(ctx),
		Attended:  l.in.Claim != nil,
		Clarified: clarified(l.in.Clarified),
	}
	req := provider.Request{
		Pool: l.pool, Node: l.in.Node, Prompt: provider.Prompt(task), PromptFile: filepath.Join(l.dir, "prompt.md"),
		ResultFile: l.resultFile(), Worktree: l.tree.Path(), Tokens: l.in.Tokens,
		Home: l.Host.home(false), Folder: filepath.Join(l.dir, "launch"), Confined: l.Host.Confine,
		Write: l.node.Write, Read: l.about(task.Findings),
	}
	if l.in.Kept != nil && l.in.Kept.Session != "" {
		req.Session = l.in.Kept.Session
		if old, err := readRecord(l.Host.attemptDir(l.in.Run, l.in.Node, l.in.Kept.Attempt)); err == nil && old.Session == req.Session {
			req.Before = old.Totals
		}
	}
	if err := os.WriteFile(req.PromptFile, []byte(req.Prompt), 0o600); err != nil {
		return req, fmt.Errorf("write prompt: %w", err)
	}
	return req, nil
}

// clarified are operators' answers as the prompt shows them.
func clarified(answers []contract.Clarification) []string {
	var told []string
	for _, c := range answers {
		text := c.Finding + ": " + c.Answer
		if c.Question != "" {
			text = fmt.Sprintf("About %s you asked: %s\n\nThe answer is: %s", c.Finding, foldSpace(c.Question), c.Answer)
		}
		told = append(told, text)
	}
	return told
}

// left are the paths that an earlier attempt changed in the tree that goes on. A
// worker whose session is lost has nothing else to know it from; it can look for itself.
func (l *launch) left(ctx context.Context) []string {
	if l.in.Kept == nil {
		return nil
	}
	work, err := l.tree.Collect(ctx, gitrepo.Scope{})
	if err != nil {
		l.Host.Log.Warn("look at the kept tree", "run", l.in.Run, "node", l.in.Node, "error", err)
		return nil
	}
	return work.Paths()
}

// about are the paths and globs that the node is about.
func (l *launch) about(findings []plan.Finding) []string {
	var paths []string
	for _, f := range findings {
		for _, at := range f.Files {
			paths = append(paths, at.Path)
		}
	}
	return append(paths, l.node.Read...)
}

// salvaged writes what the last failed attempt left as a diff that the worker
// can read, and returns its path; empty when there is none on this host or in
// the hub. The work can do without it.
func (l *launch) salvaged(ctx context.Context) string {
	if l.in.Salvage == "" || l.in.Kept != nil {
		return ""
	}
	patch, err := l.patch(ctx)
	path := filepath.Join(l.dir, "salvage.diff")
	if err == nil {
		err = os.WriteFile(path, patch, 0o600)
	}
	if err != nil {
		if !errors.Is(err, gitrepo.ErrBaseUnknown) { // it lies on another host
			l.Host.Log.Warn("show the salvage to the worker", "run", l.in.Run, "node", l.in.Node, "error", err)
		}
		return ""
	}
	return path
}

func (l *launch) patch(ctx context.Context) ([]byte, error) {
	commit, err := l.opened.mirror.FindSalvage(ctx, l.in.Salvage)
	if err != nil {
		return nil, fmt.Errorf("find salvage: %w", err)
	}
	patch, err := l.opened.mirror.Diff(ctx, commit+"^", commit)
	if err != nil {
		return nil, fmt.Errorf("read salvage: %w", err)
	}
	return patch, nil
}
