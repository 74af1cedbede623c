package workercmd

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"
)

// restingHost records what a drain does to the host.
type restingHost struct {
	mu    sync.Mutex
	said  []string
	quiet bool
	// interrupted is called when the host is interrupted.
	interrupted func()
}

func (h *restingHost) say(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, what)
}

func (h *restingHost) told() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said)
}

func (h *restingHost) Drain() { h.say("drain") }
func (h *restingHost) Interrupt() {
	h.say("interrupt")
	if h.interrupted != nil {
		h.interrupted()
	}
}

func (h *restingHost) Quiet() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quiet
}

func (h *restingHost) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.quiet = true
}

// stoppable is a worker whose stopping takes until it is let go.
type stoppable struct {
	worker.Worker
	name string
	host *restingHost
	busy chan struct{} // nil: idle
}

func (s *stoppable) Stop() {
	s.host.say("stop " + s.name)
	if s.busy != nil {
		<-s.busy
	}
	s.host.say("stopped " + s.name)
}

// scene is a worker process with one pool, whose attempt ends when it is interrupted.
func scene(finish bool, grace time.Duration) (*drainer, *queues, *restingHost, chan os.Signal, chan struct{}) {
	host := &restingHost{}
	busy := make(chan struct{})
	var once sync.Once
	host.interrupted = func() { once.Do(func() { close(busy) }); host.rest() }
	q := &queues{
		main: &stoppable{name: "main", host: host}, host: &stoppable{name: "host", host: host},
		pools: []worker.Worker{&stoppable{name: "pool", host: host, busy: busy}},
	}
	signals := make(chan os.Signal, 2)
	return &drainer{host: host, finish: finish, grace: grace, signals: signals, log: slog.New(slog.DiscardHandler)}, q, host, signals, busy
}

func TestDrainInterruptsAfterTheGraceAndServesItsTreesFirst(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, q, host, _, _ := scene(false, time.Millisecond)
	d.stop(q)
	told := host.told()
	require.Equal(t, "drain", told[0])
	require.ElementsMatch(t, []string{"stop pool", "interrupt"}, told[1:3], "the grace may pass before the pool is told")
	require.Less(t, slices.Index(told, "stopped pool"), slices.Index(told, "stop host"), "landing and release need the host's queue: %v", told)
	require.Less(t, slices.Index(told, "stopped pool"), slices.Index(told, "stop main"))
}

func TestDrainThatFinishesInterruptsNobody(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, q, host, _, busy := scene(true, 0)
	ended := make(chan struct{})
	go func() { d.stop(q); close(ended) }()
	require.Eventually(t, func() bool { return len(host.told()) == 2 }, time.Minute, time.Millisecond)
	close(busy)
	host.interrupted = nil
	host.rest()
	<-ended
	require.NotContains(t, host.told(), "interrupt")
	require.Contains(t, host.told(), "stopped main")
}

func TestSecondSignalInterruptsAndThirdDoesNotWait(t *testing.T) {
	d, q, host, signals, busy := scene(true, 0)
	host.interrupted = nil // the attempt does not end
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	d.stop(q)
	require.Contains(t, host.told(), "interrupt")
	require.NotContains(t, host.told(), "stop main")
	close(busy)
}
