//go:build !linux

package main

import (
	"context"
	"os"
	"time"
)

// parentPoll is how often the parent is looked for where the kernel offers no watch.
const parentPoll = 500 * time.Millisecond

// untilParentEnds returns a context that ends with the parent process.
func untilParentEnds(ctx context.Context) (context.Context, error) {
	parent := os.Getppid()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for os.Getppid() == parent {
			<-ticker.C
		}
		cancel(errParentEnd)
	}()
	return ctx, nil
}
