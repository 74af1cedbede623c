package workercmd

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

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

// PublishPoints are the named points of a closing action.
func PublishPoints() []string {
	return []string{
		gitrepo.PointPushing, gitrepo.PointPushed, activities.PointOpening, activities.PointOpened, gitrepo.PointMerging, gitrepo.PointMovedTo,
	}
}

// killPoint returns the hook that crash tests ask for; nil in every other life.
func killPoint() (func(string), error) {
	return pointHook(killVariable, func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	})
}

// drainVariable names a point at which this process asks itself to stop, in the
// form of killVariable: tests of draining hosts set it.
const drainVariable = "MENDFLOW_TEST_DRAIN_AT"

// drainPoint returns the hook that such a test asks for. The attempt is held at
// the point until the host is told to interrupt what works there.
func drainPoint(interrupted func() <-chan struct{}) (func(string), error) {
	return pointHook(drainVariable, func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-interrupted()
	})
}

// holdVariable names a point at which an attempt of this process is held, in the form POINT=FILE:
// FILE is made when it is there, and it goes on when FILE.go exists. Tests of races set it.
const holdVariable = "MENDFLOW_TEST_HOLD_AT"

// holdPoll is how often a held attempt looks whether it may go on.
const holdPoll = 5 * time.Millisecond

// holdPoint returns the hook that such a test asks for.
func holdPoint() (func(string), error) {
	_, file, named := strings.Cut(os.Getenv(holdVariable), "=")
	if !named && os.Getenv(holdVariable) != "" {
		return nil, fmt.Errorf("read %s: it names no file", holdVariable)
	}
	return pointHook(holdVariable, func() {
		for {
			if _, err := os.Stat(file + ".go"); err == nil {
				return
			}
			time.Sleep(holdPoll)
		}
	})
}

// pointHook does something the first time that the point is reached that a variable names.
func pointHook(variable string, do func()) (func(string), error) {
	want, once, _ := strings.Cut(os.Getenv(variable), "=")
	if want == "" {
		return nil, nil
	}
	if !slices.Contains(slices.Concat(KillPoints(), GatePoints(), PublishPoints()), want) {
		return nil, fmt.Errorf("read %s: no point is called %q", variable, want)
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
		do()
	}, nil
}

// testHook is what tests ask for at named points; nil in every other life.
func testHook(host *activities.Host) (func(string), error) {
	for _, ask := range []func() (func(string), error){killPoint, holdPoint} {
		if hook, err := ask(); err != nil || hook != nil {
			return hook, err
		}
	}
	return drainPoint(host.Interrupted)
}
