package workercmd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// used and released are what the SDK tells a slot supplier; only the permit is read.
type used struct {
	worker.SlotMarkUsedInfo
	permit *worker.SlotPermit
}

func (u used) Permit() *worker.SlotPermit { return u.permit }

type released struct {
	worker.SlotReleaseInfo
	permit *worker.SlotPermit
}

func (r released) Permit() *worker.SlotPermit { return r.permit }

func TestPoolsShareTheSlotsOfAHost(t *testing.T) {
	t.Parallel()
	shared := newSharedSlots(2)
	a, b := &poolSlots{shared: shared, most: 2}, &poolSlots{shared: shared, most: 3}
	take := func(p *poolSlots) *worker.SlotPermit {
		permit := p.TryReserveSlot(nil)
		require.NotNil(t, permit)
		p.MarkSlotUsed(used{permit: permit})
		return permit
	}
	first, second := take(a), take(b)
	require.Nil(t, a.TryReserveSlot(nil), "the host is full")
	require.Nil(t, b.TryReserveSlot(nil))

	a.ReleaseSlot(released{permit: first})
	third := take(b)
	b.ReleaseSlot(released{permit: second})
	b.ReleaseSlot(released{permit: third})
	require.Zero(t, shared.used)
	require.Equal(t, 3, b.MaxSlots())
}

func TestPoolsCapHoldsWithoutALimitOfTheHost(t *testing.T) {
	t.Parallel()
	p := &poolSlots{shared: newSharedSlots(0), most: 2}
	one, two := p.TryReserveSlot(nil), p.TryReserveSlot(nil)
	require.NotNil(t, one)
	require.NotNil(t, two)
	require.Nil(t, p.TryReserveSlot(nil))
	p.ReleaseSlot(released{permit: one})
	require.NotNil(t, p.TryReserveSlot(nil))
}

// A poll that waits for a task is no attempt: it takes nothing from other pools.
func TestIdlePollsTakeNoSlotOfTheHost(t *testing.T) {
	t.Parallel()
	shared := newSharedSlots(1)
	a, b := &poolSlots{shared: shared, most: 1}, &poolSlots{shared: shared, most: 1}
	idle := a.TryReserveSlot(nil)
	require.NotNil(t, idle)
	busy := b.TryReserveSlot(nil)
	require.NotNil(t, busy)
	b.MarkSlotUsed(used{permit: busy})
	b.MarkSlotUsed(used{permit: busy}) // told twice, counted once
	require.Equal(t, 1, shared.used)
	a.ReleaseSlot(released{permit: idle})
	require.Nil(t, a.TryReserveSlot(nil), "polling ends while the host is full")
	b.ReleaseSlot(released{permit: busy})
	require.NotNil(t, a.TryReserveSlot(nil))
}

func TestAWaitForASlotEndsWithOneOrWithItsContext(t *testing.T) {
	t.Parallel()
	shared := newSharedSlots(1)
	a, b := &poolSlots{shared: shared, most: 1}, &poolSlots{shared: shared, most: 1}
	busy := a.TryReserveSlot(nil)
	a.MarkSlotUsed(used{permit: busy})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.ReserveSlot(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)

	got := make(chan *worker.SlotPermit)
	go func() {
		permit, _ := b.ReserveSlot(t.Context(), nil)
		got <- permit
	}()
	a.ReleaseSlot(released{permit: busy})
	require.NotNil(t, <-got)
}

func TestHostWithAFullDiskPollsForNothingUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	var said bytes.Buffer
	shared := newSharedSlots(0)
	shared.log = slog.New(slog.NewTextHandler(&said, nil))
	shared.space = func() error {
		if full.Load() {
			return errors.New("only 3 MiB are free")
		}
		return nil
	}
	p := &poolSlots{shared: shared, most: 3}
	running := p.TryReserveSlot(nil)
	require.NotNil(t, running)

	full.Store(true)
	require.Nil(t, p.TryReserveSlot(nil))
	require.Nil(t, p.TryReserveSlot(nil))
	got := make(chan *worker.SlotPermit, 1)
	go func() {
		permit, _ := p.ReserveSlot(t.Context(), nil)
		got <- permit
	}()
	p.ReleaseSlot(released{permit: running})
	require.Nil(t, p.TryReserveSlot(nil), "a slot that becomes free is no space")

	full.Store(false)
	require.NotNil(t, <-got, "it looks again by itself")
	shared.mu.Lock()
	defer shared.mu.Unlock()
	require.Equal(t, 1, strings.Count(said.String(), "out of service"), "said once: %s", &said)
	require.Equal(t, 1, strings.Count(said.String(), "back in service"))
}
