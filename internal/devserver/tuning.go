package main

import (
	"os"
	"runtime/debug"

	"go.temporal.io/server/common/dynamicconfig"
)

// historyShards is fixed when a database is made. One shard has one set of queue processors; more only multiply their polling.
const historyShards = 1

// filePragmas are the settings of the connection to a database file.
func filePragmas() map[string]string {
	return map[string]string{
		"mode":         "rwc",
		"journal_mode": "wal",
		"synchronous":  "normal",
	}
}

func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

func tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
	}
}
