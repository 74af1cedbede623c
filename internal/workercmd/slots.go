package workercmd

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// sharedSlots bounds the attempts of a host over all its pools. A pool's queue
// is polled only while the host has a free slot; since idle polls of several
// queues may each receive a task at the same moment, a host can overshoot by at
// most one attempt per further pool.
type sharedSlots struct {
	limit int // 0: only the pools' own caps
	// space is an error while the host's disk is too full to start anything: it then
	// polls for no attempt, which would only come back, and other hosts get them.
	// Nil: there is always space.
	space func() error
	log   *slog.Logger // nil: nothing is said

	mu   sync.Mutex
	full bool // as space was last told
	used int
	free chan struct{} // closed and renewed when a slot becomes free
}

func newSharedSlots(limit int) *sharedSlots {
	return &sharedSlots{limit: limit, free: make(chan struct{})}
}

// tuner returns the slot rules of one pool's worker.
func (s *sharedSlots) tuner(most int) worker.WorkerTuner {
	fixed := func(n int) worker.SlotSupplier {
		supplier, err := worker.NewFixedSizeSlotSupplier(n)
		if err != nil { // n is positive
			panic(err)
		}
		return supplier
	}
	tuner, err := worker.NewCompositeTuner(worker.CompositeTunerOptions{
		WorkflowSlotSupplier: fixed(2), LocalActivitySlotSupplier: fixed(1), NexusSlotSupplier: fixed(1),
		SessionActivitySlotSupplier: fixed(1),
		ActivitySlotSupplier:        &poolSlots{shared: s, most: most},
	})
	if err != nil { // all suppliers are there
		panic(err)
	}
	return tuner
}

// poolSlots hands out the slots of one pool.
type poolSlots struct {
	shared *sharedSlots
	most   int
	issued int // under shared.mu
}

// slotState travels in a permit: whether a task took the slot.
type slotState struct{ used bool }

// ReserveSlot waits until pool and host have room.
func (p *poolSlots) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		permit, free := p.take()
		if permit != nil {
			return permit, nil
		}
		select {
		case <-free:
		case <-p.shared.later():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot takes a slot when there is one.
func (p *poolSlots) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit {
	permit, _ := p.take()
	return permit
}

func (p *poolSlots) take() (*worker.SlotPermit, <-chan struct{}) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	if p.shared.noSpace() {
		return nil, p.shared.free
	}
	if p.issued >= p.most || p.shared.limit > 0 && p.shared.used >= p.shared.limit {
		return nil, p.shared.free
	}
	p.issued++
	return &worker.SlotPermit{UserData: &slotState{}}, nil
}

// spaceRetry is how often a host whose disk is full looks again.
const spaceRetry = time.Second

// later comes when a host whose disk is full has to look again; never for others.
func (s *sharedSlots) later() <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full {
		return nil
	}
	return time.After(spaceRetry)
}

// noSpace looks at the disk, and says when that changes something. The caller holds the lock.
func (s *sharedSlots) noSpace() bool {
	if s.space == nil {
		return false
	}
	err := s.space()
	if was := s.full; was != (err != nil) && s.log != nil {
		if err != nil {
			s.log.Warn("out of service", "error", err)
		} else {
			s.log.Warn("back in service: there is space again")
		}
	}
	s.full = err != nil
	return s.full
}

// MarkSlotUsed counts a slot that got a task.
func (p *poolSlots) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	if state, ok := info.Permit().UserData.(*slotState); ok && !state.used {
		state.used = true
		p.shared.used++
	}
}

// ReleaseSlot gives a slot back, with or without a task.
func (p *poolSlots) ReleaseSlot(info worker.SlotReleaseInfo) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	p.issued--
	if state, ok := info.Permit().UserData.(*slotState); ok && state.used {
		p.shared.used--
	}
	close(p.shared.free)
	p.shared.free = make(chan struct{})
}

// MaxSlots is the pool's own cap.
func (p *poolSlots) MaxSlots() int { return p.most }
