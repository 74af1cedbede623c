package workercmd

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"mendflow/activities"
	"mendflow/internal/gitrepo"
)

// killVariable names a point of landing.md at which this process kills itself
// once, the first time that it is reached: NAME, or NAME=FILE to do so only
// while FILE does not exist yet (it is made first). Crash tests set it.
const killVariable = "MENDFLOW_TEST_KILL_AT"

// KillPoints are the named points of an attempt, in the order in which it passes them.
func KillPoints() []string {
	return []string{
		gitrepo.PointWorktreeAdded, activities.PointWorkerStarted, activities.PointResult,
		activities.PointScope, gitrepo.PointCommitted, gitrepo.PointMerged, activities.PointVerifying,
		gitrepo.PointBeforeTransaction, gitrepo.PointObjectsSent, gitrepo.PointAfterTransaction,
		activities.PointBeforeRecord, gitrepo.PointSalvaging, gitrepo.PointReleasing,
	}
}

// GatePoints are the named points of gates and of what follows a red one.
func GatePoints() []string {
	return []string{activities.PointGating, activities.PointTrial, activities.PointBeforeRevert, activities.PointReverted}
}

// killPoint returns the hook that crash tests ask for; nil in every other life.
func killPoint() (func(string), error) {
	want, once, _ := strings.Cut(os.Getenv(killVariable), "=")
	if want == "" {
		return nil, nil
	}
	if !slices.Contains(slices.Concat(KillPoints(), GatePoints()), want) {
		return nil, fmt.Errorf("read %s: no point is called %q", killVariable, want)
	}
	var done atomic.Bool
	return func(point string) {
		if point != want || done.Swap(true) {
			return
		}
		if once != "" {
			f, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return
			}
			_ = f.Close()
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}, nil
}
