package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mendflow/internal/contract"
)

// errHostStops is why what works on this host is interrupted when its worker ends.
var errHostStops = errors.New("the host is being stopped")

// drain is how a host comes to rest: nothing new, then what works there ends or
// is interrupted, then the trees of the last attempts are landed or kept. The
// zero value is a host that works.
type drain struct {
	mu        sync.Mutex
	begun     bool
	interrupt chan struct{} // closed: end what works here; made on demand
	ended     bool
	owed      map[string]time.Time // attempts whose tree is still to be landed or released here, since the end of their worker
}

// owedFor is how long a host waits for that: whoever asks later than this has
// given the host up.
const owedFor = 150 * time.Second

// Drain lets nothing begin on this host any more.
func (h *Host) Drain() {
	h.drain.mu.Lock()
	defer h.drain.mu.Unlock()
	h.drain.begun = true
}

// Interrupt ends, with their work kept, the attempts and gates that are at work on this host.
func (h *Host) Interrupt() {
	stopped := h.drain.stopped()
	h.drain.mu.Lock()
	defer h.drain.mu.Unlock()
	if h.drain.begun = true; !h.drain.ended {
		h.drain.ended = true
		close(stopped)
	}
}

// Interrupted is closed when what works on this host is to end.
func (h *Host) Interrupted() <-chan struct{} { return h.drain.stopped() }

// Quiet reports whether no attempt is on its way on this host: none is at work,
// and no tree waits to be landed or released.
func (h *Host) Quiet() bool {
	h.turns.mu.Lock()
	working := len(h.turns.held)
	h.turns.mu.Unlock()
	h.drain.mu.Lock()
	defer h.drain.mu.Unlock()
	for key, since := range h.drain.owed {
		if time.Since(since) > owedFor {
			delete(h.drain.owed, key)
		}
	}
	return working == 0 && len(h.drain.owed) == 0
}

func (d *drain) stopped() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.interrupt == nil {
		d.interrupt = make(chan struct{})
	}
	return d.interrupt
}

func (d *drain) draining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begun
}

func owedKey(in contract.NodeInput) string {
	return fmt.Sprintf("%s/%s/%d", in.Run, in.Node, in.Attempt)
}

// owes notes that the attempt's tree is still to be landed or released on this host.
func (d *drain) owes(in contract.NodeInput) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owed == nil {
		d.owed = map[string]time.Time{}
	}
	d.owed[owedKey(in)] = time.Now()
}

// paid notes that it was.
func (d *drain) paid(in contract.NodeInput) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owed, owedKey(in))
}

// untilStopped ends the context when this host is asked to stop, so that what
// works is interrupted and kept rather than killed.
func (h *Host) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := h.drain.stopped()
	go func() {
		select {
		case <-stopped:
			cancel(errHostStops)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// hostStops reports whether an activity was interrupted because its host stops.
func hostStops(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errHostStops) }

// turnedAway is how an attempt ends that came to a host which is being stopped.
func (h *Host) turnedAway(in contract.NodeInput) contract.WorkerEnd {
	return contract.WorkerEnd{
		Outcome: contract.OutcomeInterrupted, Reason: "not begun: host " + h.ID + " is being stopped", Kept: in.Kept, Stopping: true,
	}
}
