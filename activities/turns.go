package activities

import (
	"context"
	"strconv"
	"sync"
)

// turns lets one activity at a time be at an attempt on this host. When the
// server could not be reached for longer than a heartbeat timeout it takes an
// activity for lost that still works here; what it sends next for the attempt
// ends the old one and waits until nothing of it is alive, so that two never
// work in one tree. The zero value is ready for use.
type turns struct {
	mu   sync.Mutex
	held map[string]*turn
}

type turn struct {
	end  context.CancelFunc
	over chan struct{}
}

// take ends who is at the attempt, waits for its end and takes its place. The
// context ends when somebody else wants the place; the caller must call leave.
func (t *turns) take(ctx context.Context, run, node string, attempt int) (_ context.Context, leave func(), err error) {
	key := run + "/" + node + "/" + strconv.Itoa(attempt)
	own, end := context.WithCancel(ctx)
	mine := &turn{end: end, over: make(chan struct{})}
	for {
		other := t.enter(key, mine)
		if other == nil {
			return own, func() { t.leave(key, mine) }, nil
		}
		other.end()
		select {
		case <-other.over:
		case <-ctx.Done():
			end()
			return ctx, nil, ctx.Err()
		}
	}
}

// enter takes a free place and returns nil, or returns who has it.
func (t *turns) enter(key string, mine *turn) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, ok := t.held[key]; ok {
		return other
	}
	if t.held == nil {
		t.held = map[string]*turn{}
	}
	t.held[key] = mine
	return nil
}

func (t *turns) leave(key string, mine *turn) {
	t.mu.Lock()
	delete(t.held, key)
	t.mu.Unlock()
	mine.end()
	close(mine.over)
}
