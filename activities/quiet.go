package activities

import (
	"context"
	"fmt"

	"mendflow/internal/contract"
	"mendflow/internal/process"
)

// ProveQuiet ends what is left on this host of an attempt, or of the run's
// gates, and answers once nothing of it is alive. That this host answers at all
// proves most of it: a worker ends at its start what an earlier one left.
func (a *Landing) ProveQuiet(ctx context.Context, in contract.QuietInput) error {
	heart := startHeart(ctx, a.Host.ID, "end what is left")
	defer heart.end()
	prefix := a.Host.Mark() + "/" + in.Run
	marks := []string{prefix + "/gate", prefix + "/verify"}
	if in.Node != "" {
		// An activity that the server takes for lost may still be at it here.
		_, leave, err := a.Host.turns.take(ctx, in.Run, in.Node, in.Attempt)
		if err != nil {
			return translate(ctx, err)
		}
		defer leave()
		marks = []string{fmt.Sprintf("%s/%s/a%d", prefix, in.Node, in.Attempt)}
	}
	for _, mark := range marks {
		left, err := process.Sweep(ctx, mark)
		for _, p := range left {
			a.Host.Log.Warn("ended a process that a lost attempt left", "process", p)
		}
		if err != nil {
			return translate(ctx, fmt.Errorf("end what is left of %s: %w", mark, &hostError{a.Host.ID, err}))
		}
	}
	return nil
}

// RestoreTruth puts the truth of a run back to what the run itself landed.
func (a *Repository) RestoreTruth(ctx context.Context, in contract.RestoreInput) (contract.RestoreEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "restore the truth")
	defer heart.end()
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return contract.RestoreEnd{}, translate(ctx, err)
	}
	restored, err := opened.mirror.RestoreTruth(ctx, in.Run, opened.config.BaseCommit, in.Known...)
	if err != nil {
		return contract.RestoreEnd{}, translate(ctx, err)
	}
	return contract.RestoreEnd{Truth: restored.State.Truth, Kept: restored.Kept}, nil
}
