package startercmd

import (
	"context"
	"fmt"
	"time"

	"mendflow/internal/gitrepo"
)

// checkSpace refuses to start a run on a host whose disk is nearly full.
func (a *app) checkSpace(floor uint64) error {
	state, err := a.state()
	if err != nil {
		return err
	}
	store, err := gitrepo.NewStore(gitrepo.Settings{StateDir: state, HostID: "starter", Log: a.logger()})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if err := store.CheckSpace(floor); err != nil {
		return fmt.Errorf("start run: %w", err)
	}
	return nil
}

// snapshot is the user's uncommitted state as the base of a run.
type snapshot struct {
	mirror *gitrepo.Mirror
	commit string
}

// takeSnapshot takes the checkout as the base when the options ask for it, and
// says what is in it.
func (a *app) takeSnapshot(ctx context.Context, o *startOptions) error {
	if !o.uncommitted {
		return nil
	}
	hub, err := gitrepo.ResolveHub(ctx, o.repo)
	if err != nil {
		return usage("open repository %s: %w", o.repo, err)
	}
	if hub.Path == "" || hub.Bare {
		return usage("start run: %s has no checkout: leave --include-uncommitted out", o.repo)
	}
	mirror, err := a.openMirror(ctx, hub)
	if err != nil {
		return err
	}
	taken, err := mirror.Snapshot(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("take the uncommitted state: %w", err)
	}
	fmt.Fprintf(a.Err, "starter: starting from %d uncommitted files\n", len(taken.Paths))
	for _, path := range taken.Excluded {
		fmt.Fprintf(a.Err, "starter: left out, it may hold secrets: %q\n", path)
	}
	a.snap = &snapshot{mirror: mirror, commit: taken.Commit}
	o.base = taken.Commit
	return nil
}

// publish brings the snapshot to the repository, where the run's truth holds it.
func (s *snapshot) publish(ctx context.Context, run string) error {
	if s == nil {
		return nil
	}
	if _, err := s.mirror.OpenTruth(ctx, run, s.commit); err != nil {
		return fmt.Errorf("bring the uncommitted state to the repository: %w", err)
	}
	return nil
}
