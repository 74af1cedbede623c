package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes this process adopt the descendants whose supervisor
// died, so that they can be found by descent and ended; a host worker calls it
// once at its start. Adopted processes that end are reaped from then on until
// ctx ends. Children that this process started itself are left alone, also those
// started with os/exec, as long as they stay in its session.
func BecomeSubreaper(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGCHLD)
	go func() {
		defer signal.Stop(ends)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ends:
			}
			select { // one look for a burst of ends
			case <-ctx.Done():
				return
			case <-time.After(reapPause):
			}
			reapAdopted()
		}
	}()
	return nil
}

const reapPause = time.Second

// adopted are the children of this process that it did not start. Whoever
// descends from a supervisor is in another session than this process, and can
// never come back to it. What is in the session of a child that still runs is
// that child's matter.
func adopted(all []proc) []proc {
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(p proc) bool {
		return p.parent != self || p.session == session || children.has(p.pid) || children.has(p.session)
	})
}

// reapAdopted reaps the adopted processes that have ended, one by one, and
// never anybody else. It looks and reaps under the same lock: the number of a
// reaped process may soon be that of a child.
func reapAdopted() {
	children.start.Lock()
	defer children.start.Unlock()
	for _, p := range adopted(processes()) {
		if p.ended() {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// endOrphans ends what a dead supervisor left: its session, what this process
// adopted since the supervisor started, what carries the mark, and all their
// descendants. It returns what had to be killed and what could not be.
func endOrphans(mark string, supervisor proc) (left, alive []LeftProcess) {
	seed := func(all []proc) func(proc) bool {
		children.start.Lock()
		roots := adopted(all)
		children.start.Unlock()
		return func(p proc) bool {
			return p.session == supervisor.pid && p.start >= supervisor.start ||
				slices.ContainsFunc(roots, func(r proc) bool { return r.pid == p.pid && r.start >= supervisor.start }) ||
				mark != "" && markOf(p.pid) == mark
		}
	}
	return killUntilGone(seed, killTime)
}

// killUntilGone kills the seeds and their descendants until there are none. The
// seeds are determined anew each time: killing changes who is whose child.
func killUntilGone(seed func([]proc) func(proc) bool, limit time.Duration) (left, alive []LeftProcess) {
	known := map[proc]bool{}
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		all := processes()
		targets := spared(all, descendants(all, seed(all)))
		var living []proc
		for _, p := range targets {
			if p.ended() {
				continue
			}
			living = append(living, p)
			id := proc{pid: p.pid, start: p.start}
			if !known[id] {
				known[id] = true
				left = append(left, LeftProcess{PID: p.pid, Command: commandOf(p.pid)})
			}
			p.send(unix.SIGKILL)
		}
		reapAdopted()
		if len(living) == 0 {
			return left, nil
		}
		if time.Now().After(deadline) {
			return left, leftOf(living)
		}
	}
}

// spared takes out of list this process, its ancestors, the first process, and
// the children that this process started with what descends from them.
func spared(all, list []proc) []proc {
	keep := map[int]bool{1: true}
	for _, p := range descendants(all, func(p proc) bool { return children.has(p.pid) }) {
		keep[p.pid] = true
	}
	for pid := os.Getpid(); pid > 1 && !keep[pid]; {
		keep[pid] = true
		p, ok := readProc(pid)
		if !ok {
			break
		}
		pid = p.parent
	}
	return slices.DeleteFunc(list, func(p proc) bool { return keep[p.pid] })
}
