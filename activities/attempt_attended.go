package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// offer lays out what somebody who claimed the node needs; nothing is started.
// The work is over when it is taken over or released.
func (l *launch) offer(ctx context.Context) error {
	req, err := l.request(ctx)
	if err != nil {
		return err
	}
	if err := os.Remove(req.ResultFile); err != nil && !errors.Is(err, fs.ErrNotExist) { // of who had the tree before
		return fmt.Errorf("clear result: %w", err)
	}
	stored, err := l.Host.Artifacts.Put(ctx, fmt.Sprintf("runs/%s/nodes/%s/a%d/prompt.md", l.in.Run, l.in.Node, l.in.Attempt), []byte(req.Prompt))
	if err != nil {
		return fmt.Errorf("store prompt: %w", err)
	}
	l.rec.Started = true
	if err := writeRecord(l.dir, l.rec); err != nil {
		return err
	}
	l.Host.reach(PointWorkerStarted)
	prompt := contract.Artifact(stored)
	prompt.Tail = ""
	l.end.Outcome, l.end.Usage = contract.OutcomeSuccess, contract.Usage{Known: true} // nobody is paid for tokens
	l.end.Desk = &contract.Desk{
		Host: l.Host.ID, Worktree: l.tree.Path(), PromptFile: req.PromptFile, ResultFile: req.ResultFile, Prompt: &prompt,
	}
	return nil
}

// SignsOfLife looks when anything in an attended attempt's tree or result folder
// changed last. What somebody only reads leaves no trace.
func (a *Attempt) SignsOfLife(ctx context.Context, in contract.NodeInput) (contract.SignOfLife, error) {
	heart := startHeart(ctx, a.Host.ID, "look")
	defer heart.end()
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return contract.SignOfLife{}, translate(ctx, err)
	}
	dir := a.Host.attemptDir(in.Run, in.Node, in.Attempt)
	rec, err := readRecord(dir)
	if err != nil {
		return contract.SignOfLife{}, translate(ctx, err)
	}
	tree, err := opened.mirror.OpenWorktree(ctx, rec.Attempt)
	if err != nil {
		return contract.SignOfLife{}, translate(ctx, fmt.Errorf("open worktree: %w", err))
	}
	var sign contract.SignOfLife
	for _, folder := range []string{tree.Path(), filepath.Join(dir, resultFolder)} {
		last, err := lastChange(ctx, folder)
		if err != nil {
			return sign, translate(ctx, fmt.Errorf("look at %s: %w", folder, err))
		}
		if last.After(sign.LastChange) {
			sign.LastChange = last.UTC()
		}
	}
	return sign, nil
}

// lastChange is the newest time in a folder's entries; links are not followed,
// and what vanishes meanwhile shows in its folder's own time.
func lastChange(ctx context.Context, folder string) (time.Time, error) {
	var last time.Time
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return errors.Join(err, ctx.Err())
	})
	return last, err
}

// TakeOver ends the work of an attended attempt: its holder says that it is
// done, which counts as a command's exit code 0, and may bring a result file.
func (a *Attempt) TakeOver(ctx context.Context, in contract.HandOverInput) (contract.WorkerEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "take-over")
	defer heart.end()
	end := contract.WorkerEnd{Host: a.Host.ID, Outcome: contract.OutcomeSuccess, Usage: contract.Usage{Known: true}}
	ctx, leave, err := a.Host.turns.take(ctx, in.Run, in.Node, in.Attempt)
	if err != nil {
		return end, translate(ctx, err)
	}
	defer leave()
	dir := a.Host.attemptDir(in.Run, in.Node, in.Attempt)
	rec, err := readRecord(dir)
	if err != nil {
		return end, translate(ctx, err)
	}
	if in.Result != nil {
		if err := a.placeResult(ctx, dir, in.Result); err != nil {
			return end, translate(ctx, err)
		}
	}
	answer, _, err := readResult(resultFile(dir), rec.Attempt.Findings)
	end.Delivered = err == nil && answer != nil
	rec.Ended, rec.Exit, rec.Outcome = true, 0, end.Outcome
	end.EndedAt = a.Now().UTC()
	return end, translate(ctx, writeRecord(dir, rec))
}

// placeResult puts a result that was brought along where one is looked for.
func (a *Attempt) placeResult(ctx context.Context, dir string, ref *contract.Artifact) error {
	data, err := a.Host.Artifacts.Get(ctx, ref.URI)
	if err != nil {
		return fmt.Errorf("read result: %w", err)
	}
	if len(data) > run.MaxResultBytes {
		return fmt.Errorf("read result: it has %d bytes, more than %d", len(data), run.MaxResultBytes)
	}
	path := resultFile(dir)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
