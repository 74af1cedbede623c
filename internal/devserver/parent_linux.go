package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// untilParentEnds returns a context that ends with the parent process.
//
// A pidfd, not PR_SET_PDEATHSIG: that one is bound to the parent's thread, and a Go parent ends threads while it lives on.
func untilParentEnds(ctx context.Context) (context.Context, error) {
	parent := os.Getppid()
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return nil, fmt.Errorf("watch parent process %d: %w", parent, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if os.Getppid() != parent {
		cancel(errParentEnd) // it ended before the watch began, and the number may belong to another process by now
		return ctx, unix.Close(fd)
	}
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				cancel(errParentEnd)
				return
			}
		}
	}()
	return ctx, nil
}
