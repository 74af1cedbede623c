package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var (
	errSignal    = errors.New("stop signal")
	errParentEnd = errors.New("parent process ended")
)

// untilSignal returns a context that the first SIGTERM or SIGINT ends. The second one ends the process at once, which costs
// nothing: the database survives a kill.
func untilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel(errSignal)
		if number, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(128 + int(number))
		}
	}()
	return ctx
}
