package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"mendflow/internal/contract"
)

// BeatEvery is short against the heartbeat timeout of the workflows, so that a
// busy machine is not taken for a dead one, and so short that a cancel, which
// comes back with a beat, is told well within a second. A worker's throttle of
// heartbeats must not be longer.
const BeatEvery = 500 * time.Millisecond

// heart beats for a long activity from its own goroutine, so that no step of
// the activity can silence it.
type heart struct {
	mu   sync.Mutex
	beat contract.Beat
	tell func()
	stop context.CancelFunc
	done chan struct{}
}

// startHeart begins to beat, first when the activity has taken a while or has
// something to tell; the caller must call end.
func startHeart(ctx context.Context, host, step string) *heart {
	ctx, cancel := context.WithCancel(ctx)
	h := &heart{beat: contract.Beat{Host: host, Step: step}, stop: cancel, done: make(chan struct{})}
	h.tell = func() { activity.RecordHeartbeat(ctx, h.now()) }
	go h.run(ctx)
	return h
}

func (h *heart) run(ctx context.Context) {
	defer close(h.done)
	tick := time.NewTicker(BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.tell()
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
