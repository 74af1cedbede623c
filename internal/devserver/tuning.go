package main

import (
	"os"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/dynamicconfig"
)

// historyShards is fixed when a database is made. A shard brings its own queue processors with their own polling; all of them wait
// for the one SQLite connection anyway.
const historyShards = 1

// filePragmas are the settings of the connection to a database file; the file itself is in WAL mode (prepare).
func filePragmas() map[string]string {
	return map[string]string{
		"mode": "rwc",
		// A commit is in the WAL file before it is acknowledged: it survives the end of this process. Only a power cut can take the
		// last moments, and never the consistency. With the default every commit waits for the disk.
		"synchronous": "normal",
		// The lock is held instead of being taken for every statement, and the index of the WAL stays in memory: an eighth less
		// processor time. Nothing else may open the file meanwhile, which lockDatabase forbids to another server anyway.
		"locking_mode": "exclusive",
		// The driver replaces a connection whose query was cancelled. The new one waits until the old one has let go.
		"busy_timeout": "5000",
	}
}

const (
	// garbagePercent trades memory for processor time, up to memoryLimit (bytes), where collecting becomes more frequent again.
	garbagePercent = 400
	memoryLimit    = 512 << 20
)

// tuneRuntime leaves alone what the environment sets.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	// The server's own workers would otherwise hash the whole binary at the start: more than half of the start's processor time.
	worker.SetBinaryChecksum("devserver-" + version)
}

// unlimited is a rate (per second) that one machine does not reach.
const unlimited = 100_000

// tuning is the server's dynamic configuration. The limits of sizes and counts (signals, updates, payloads, history) stay as they
// are by default: what works here must work on a cluster.
func tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// Latency. A queue processor that has used up its polls makes the next task wait: with the default of 20 a second a round of
		// two signals between workflows takes 180 ms instead of 14.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): 1000,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():    1000,
		// The timer processor reads this far ahead and fires what lies within late: a timer of 100 ms came 900 ms late by default.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

		// One partition: a task meets its poller at once instead of being forwarded to another partition.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// The limits protect shared clusters. Throttled here, a burst of a run only fails and is retried.
		dynamicconfig.FrontendRPS.Key():                                  unlimited,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():           unlimited,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): unlimited,
		dynamicconfig.HistoryRPS.Key():                                   unlimited,
		dynamicconfig.MatchingRPS.Key():                                  unlimited,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                    unlimited,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                     unlimited,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                    unlimited,
		dynamicconfig.WorkerPersistenceMaxQPS.Key():                      unlimited,

		// Closed workflows stay in this cache for an hour; the default of 128 000 is more than the memory limit of this process.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 4096,

		// A worker that stops would otherwise lose the task that its cancelled poll had just been given, and a run waits ten
		// seconds for the workflow task to time out. So the server ends the polls, with an answer.
		dynamicconfig.EnableCancelWorkerPollsOnShutdown.Key(): true,

		// Behind no load balancer, closing every connection after five minutes only makes workers log failed polls.
		dynamicconfig.KeepAliveMaxConnectionAge.Key(): 30 * 24 * time.Hour,
	}
}
