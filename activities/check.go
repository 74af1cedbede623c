package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/process"
)

// checkRequest is one command that we run ourselves: setup, verification, evidence.
type checkRequest struct {
	Command plan.Command
	Dir     string // where it runs
	Tree    string // the worktree that it may write to
	Mark    string
	Timeout time.Duration
	Log     string    // artifact key; empty: the output is not kept
	Output  io.Writer // receives the output instead of an artifact
}

// checkEnd is how such a command ended. Code is -1 when it was killed at its limit.
type checkEnd struct {
	Code     int
	TimedOut bool
	Elapsed  time.Duration
	Tail     string
	Log      *contract.Artifact
}

// commandNotFound is the exit code that shells give to a missing program.
const commandNotFound = 127

// check runs a command of the plan: bounded, without secrets, killed whole. The
// error is the host's or a cancellation, never the command's.
func (h *Host) check(ctx context.Context, r *openRun, req checkRequest) (checkEnd, error) {
	tmp, err := os.MkdirTemp(filepath.Join(h.StateDir, "tmp"), "check-")
	if err != nil {
		return checkEnd{}, fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env, err := h.environment(r.config.Plan.Env, tmp, true, map[string]string{"CI": "true"})
	if err != nil {
		return checkEnd{}, err
	}
	output, finish, err := h.checkLog(ctx, r, req)
	if err != nil {
		return checkEnd{}, err
	}
	result, err := process.Run(ctx, process.Spec{
		Argv: req.Command.Argv, Shell: req.Command.Shell, Dir: req.Dir, Env: env,
		Sandbox: h.sandbox(true, req.Tree, tmp),
		Mark:    req.Mark, Absolute: req.Timeout, Output: output, Secrets: r.masker,
	})
	log, closeErr := finish()
	if errors.Is(err, process.ErrNotFound) {
		return checkEnd{Code: commandNotFound, Tail: err.Error(), Log: log}, nil
	}
	if err == nil {
		err = closeErr
	}
	if err != nil {
		return checkEnd{}, fmt.Errorf("run `%s`: %w", req.Command, err)
	}
	if result.Ended == process.EndCancelled {
		return checkEnd{}, context.Canceled
	}
	end := checkEnd{Code: result.ExitCode, Elapsed: result.Finished.Sub(result.Started), Tail: result.StdoutTail + result.StderrTail, Log: log}
	if result.Ended == process.EndAbsolute {
		end.Code, end.TimedOut = -1, true
		end.Tail += fmt.Sprintf("\nstopped after its limit of %s", req.Timeout)
	} else if result.Signaled && end.Code == 0 {
		end.Code = -1
	}
	return end, nil
}

// checkLog opens where the output goes and returns how to finish it.
func (h *Host) checkLog(ctx context.Context, r *openRun, req checkRequest) (io.Writer, func() (*contract.Artifact, error), error) {
	if req.Output != nil {
		return req.Output, func() (*contract.Artifact, error) { return nil, nil }, nil
	}
	if req.Log == "" {
		return io.Discard, func() (*contract.Artifact, error) { return nil, nil }, nil
	}
	log, err := h.Artifacts.Writer(ctx, req.Log, r.masker)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	return log, func() (*contract.Artifact, error) {
		ref, err := log.Finish()
		if err != nil {
			return nil, fmt.Errorf("close log: %w", err)
		}
		stored := reference(ref)
		return &stored, nil
	}, nil
}
