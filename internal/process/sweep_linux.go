package process

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep ends all processes whose mark is prefix or begins with prefix and a
// slash, with their descendants and with the sessions that they lead. A host
// worker calls it at its start with its own mark, before it runs anything and
// while it holds the lock on its state folder: what Sweep finds then was left by
// a worker that was killed together with its supervisors.
// The processes get TERM, then as long as a stopped program, then KILL.
//
// It returns what it ended, and an [AliveError] if something could not be ended.
// It cannot find a process that cleared its environment and has no ancestor
// left.
func Sweep(ctx context.Context, prefix string) ([]LeftProcess, error) {
	if prefix == "" {
		return nil, nil // an empty mark would be everybody's
	}
	seed := func(all []proc) func(proc) bool { return marked(all, prefix) }
	var ended []LeftProcess
	known := map[proc]bool{}
	look := func() (living []proc) {
		all := processes()
		for _, p := range spared(all, descendants(all, seed(all))) {
			if p.ended() {
				continue
			}
			living = append(living, p)
			if id := (proc{pid: p.pid, start: p.start}); !known[id] {
				known[id] = true
				ended = append(ended, LeftProcess{PID: p.pid, Command: commandOf(p.pid)})
				p.send(unix.SIGTERM)
			}
		}
		return living
	}
	for deadline := time.Now().Add(MinTermGrace); time.Now().Before(deadline); {
		if len(look()) == 0 {
			return ended, nil
		}
		select {
		case <-ctx.Done():
			return ended, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if _, alive := killUntilGone(seed, killTime); len(alive) > 0 {
		return ended, &AliveError{Left: alive}
	}
	return ended, nil
}

// marked selects the processes with a mark below prefix, and those in a session
// that one of them leads or whose leader is gone.
func marked(all []proc, prefix string) func(proc) bool {
	exists, selected := map[int]bool{}, map[int]bool{}
	for _, p := range all {
		exists[p.pid] = true
		mark := markOf(p.pid)
		if mark == prefix || strings.HasPrefix(mark, prefix+"/") {
			selected[p.pid] = true
		}
	}
	own, err := unix.Getsid(0)
	sessions := map[int]bool{}
	for _, p := range all {
		if selected[p.pid] && (selected[p.session] || !exists[p.session]) && err == nil && p.session != own {
			sessions[p.session] = true
		}
	}
	return func(p proc) bool { return selected[p.pid] || sessions[p.session] }
}
