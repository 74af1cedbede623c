package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"mendflow/internal/contract"
)

// errUnserved says that no host polls any of the queues.
var errUnserved = errors.New("no host polls the queue")

// pollerAge is how old the last poll of a live host can be: a poll that finds
// nothing lasts a minute. The server remembers hosts that are gone for five.
const pollerAge = 75 * time.Second

// AwaitHosts answers once a host polls the queue of one of the pools; until then
// it fails, and is tried again by its retry policy, which leaves no events.
func (a *Service) AwaitHosts(ctx context.Context, pools []string) (string, error) {
	for _, pool := range pools {
		described, err := a.Server.DescribeTaskQueue(ctx, contract.PoolQueue(pool), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			return "", translate(ctx, fmt.Errorf("look for hosts of pool %s: %w", pool, err))
		}
		for _, p := range described.GetPollers() {
			if time.Since(p.GetLastAccessTime().AsTime()) < pollerAge {
				return pool, nil
			}
		}
	}
	return "", translate(ctx, fmt.Errorf("look for hosts of pools %v: %w", pools, errUnserved))
}
