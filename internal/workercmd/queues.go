package workercmd

import (
	"fmt"
	"runtime"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/workflows"
)

// endlessly is the SDK's own limit on a stopping worker; ours are the drain's.
const endlessly = 365 * 24 * time.Hour

// queues are the Temporal workers of this process: one for the main queue, one
// for what must happen on this host, one per pool.
type queues struct {
	main, host worker.Worker
	pools      []worker.Worker
	failed     chan error
}

func newQueues(connected client.Client, set activities.Set, pools []contract.Pool, slots int) *queues {
	q := &queues{failed: make(chan error, 1)}
	git := 2 * runtime.GOMAXPROCS(0)
	q.main = q.add(connected, contract.QueueMain, worker.Options{
		MaxConcurrentActivityExecutionSize:     8,
		MaxConcurrentWorkflowTaskExecutionSize: 64,
		WorkflowTaskPollerBehavior:             workflows.Pollers(),
		MaxConcurrentActivityTaskPollers:       2,
		// After a worker died the server offers its workflows' tasks to it first;
		// with the default they wait 5 s before another worker may take them.
		StickyScheduleToStartTimeout: time.Second,
		Interceptors:                 workflows.Interceptors(),
	})
	workflows.Register(q.main)
	set.RegisterMain(q.main)

	q.host = q.add(connected, contract.HostQueue(set.Landing.Host.ID), worker.Options{
		MaxConcurrentActivityExecutionSize: max(git, 4),
		MaxConcurrentActivityTaskPollers:   2,
		DisableWorkflowWorker:              true,
	})
	set.RegisterHost(q.host)

	shared := newSharedSlots(slots)
	host := set.Landing.Host
	shared.space, shared.log = func() error { return host.Git.CheckSpace(host.DiskFloor) }, host.Log
	for _, p := range pools {
		pool := q.add(connected, contract.PoolQueue(p.ID), worker.Options{
			Tuner:                            shared.tuner(p.MaxConcurrent),
			MaxConcurrentActivityTaskPollers: min(2, p.MaxConcurrent),
			DisableWorkflowWorker:            true,
		})
		set.RegisterPool(pool)
		q.pools = append(q.pools, pool)
	}
	return q
}

// add makes a worker with what all of them share.
func (q *queues) add(connected client.Client, queue string, options worker.Options) worker.Worker {
	options.WorkerStopTimeout = endlessly
	options.MaxHeartbeatThrottleInterval = activities.BeatEvery // a cancel reaches an activity with its next beat
	options.DefaultHeartbeatThrottleInterval = activities.BeatEvery
	options.DisableEagerActivities = true
	options.DisableRegistrationAliasing = true
	options.OnFatalError = func(err error) {
		select {
		case q.failed <- fmt.Errorf("serve queue %s: %w", queue, err):
		default:
		}
	}
	return worker.New(connected, queue, options)
}

func (q *queues) start() error {
	for _, w := range append([]worker.Worker{q.main, q.host}, q.pools...) {
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
	}
	return nil
}
