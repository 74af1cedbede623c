package main

import (
	"context"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
)

// store is where the server keeps its state: claimed for this process when it is opened, given up when it is closed.
type store interface {
	// persistence tells the server where its state is.
	persistence() config.Persistence
	// finish does what is left to do once the namespace is there and before the server starts.
	finish(ctx context.Context, logger log.Logger) error
	// checkpoint is called after an orderly stop.
	checkpoint(logger log.Logger) error
	// name is what the ready line calls it; empty: in memory.
	name() string
	close() error
}

var _, _ store = (*database)(nil), (*postgres)(nil)

func openStore(ctx context.Context, opts options, logger log.Logger) (store, error) {
	if opts.postgres != nil {
		return openPostgres(ctx, opts.postgres, logger)
	}
	return openDatabase(ctx, opts.database)
}
