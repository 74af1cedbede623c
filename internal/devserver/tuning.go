package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
)

// historyShards is fixed when a database is made. One shard has one set of queue processors; more only multiply their polling.
var historyShards = func() int32 { n, _ := strconv.Atoi(os.Getenv("X_SHARDS")); return int32(max(n, 1)) }()

// filePragmas are the settings of the connection to a database file.
func filePragmas() map[string]string {
	m := map[string]string{
		"mode":         "rwc",
		"journal_mode": "wal",
		"synchronous":  "normal",
	}
	explore(m)
	return m
}

func tuneRuntime() {
	worker.SetBinaryChecksum("devserver")
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

func tuning() dynamicconfig.StaticClient {
	return exploreDC(dynamicconfig.StaticClient{
		dynamicconfig.TransferProcessorMaxPollRPS.Key():         1000,
		dynamicconfig.TransferProcessorMaxPollHostRPS.Key():     10000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():            1000,
		dynamicconfig.TimerProcessorMaxPollHostRPS.Key():        10000,
		dynamicconfig.TimerProcessorMaxTimeShift.Key():          time.Millisecond,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	})
}
