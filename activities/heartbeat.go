package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"mendflow/internal/contract"
)

// beatEvery is short against the heartbeat timeout of the workflows, so that a
// cancel is told within a second and a busy machine is not taken for a dead one.
const beatEvery = time.Second

// heart beats for a long activity from its own goroutine, so that no step of
// the activity can silence it.
type heart struct {
	mu   sync.Mutex
	beat contract.Beat
	stop context.CancelFunc
	done chan struct{}
}

// startHeart begins to beat; the caller must call end.
func startHeart(ctx context.Context, host, step string) *heart {
	ctx, cancel := context.WithCancel(ctx)
	h := &heart{beat: contract.Beat{Host: host, Step: step}, stop: cancel, done: make(chan struct{})}
	activity.RecordHeartbeat(ctx, h.now())
	go h.run(ctx)
	return h
}

func (h *heart) run(ctx context.Context) {
	defer close(h.done)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			activity.RecordHeartbeat(ctx, h.now())
		}
	}
}

// step says what the activity does now; it shows in the Web UI and after a lost heartbeat.
func (h *heart) step(step string) {
	h.update(func(b *contract.Beat) { b.Step = step })
}

func (h *heart) update(change func(*contract.Beat)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.beat)
}

func (h *heart) now() contract.Beat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.beat
}

// end stops the goroutine and waits for it.
func (h *heart) end() {
	h.stop()
	<-h.done
}
