package workercmd

import (
	"log/slog"
	"os"
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
	require.Equal(t, []string{"drain", "stop pool", "interrupt"}, host.said[:3])
	require.Less(t, index(host, "stopped pool"), index(host, "stop host"), "landing and release need the host's queue: %v", host.said)
	require.Less(t, index(host, "stopped pool"), index(host, "stop main"))
}

func TestDrainThatFinishesInterruptsNobody(t *testing.T) {
	defer goleak.VerifyNone(t)
	d, q, host, _, busy := scene(true, 0)
	ended := make(chan struct{})
	go func() { d.stop(q); close(ended) }()
	require.Eventually(t, func() bool { host.mu.Lock(); defer host.mu.Unlock(); return len(host.said) == 2 }, time.Minute, time.Millisecond)
	close(busy)
	host.interrupted = nil
	host.rest()
	<-ended
	require.NotContains(t, host.said, "interrupt")
	require.Contains(t, host.said, "stopped main")
}

func TestSecondSignalInterruptsAndThirdDoesNotWait(t *testing.T) {
	d, q, host, signals, busy := scene(true, 0)
	host.interrupted = nil // the attempt does not end
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	d.stop(q)
	require.Contains(t, host.said, "interrupt")
	require.NotContains(t, host.said, "stop main")
	close(busy)
}

func index(h *restingHost, what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range h.said {
		if s == what {
			return i
		}
	}
	return len(h.said)
}

func TestWorkerRefusesAnUnknownDrain(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--drain", "hope"}, {"--drain-grace", "-1s"}} {
		code, _, errOut := runWorker(t, args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errOut, "invalid argument")
	}
}
