package workercmd

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// Ways to drain a host: what its running attempts do when the worker is asked to stop.
const (
	drainInterrupt = "interrupt" // they get a grace, then they are interrupted and kept
	drainFinish    = "finish"    // they go to their end, landing included
)

// defaultGrace is how long attempts may still run before they are interrupted:
// what is about to end or to land does, and a restart stays quick.
const defaultGrace = 10 * time.Second

// stopTimeout is how long interrupted attempts may take to be salvaged, and the
// trees of ended ones to be landed or released; a further signal cuts it short.
const stopTimeout = 25 * time.Second

// quietPoll is how often a draining worker looks whether its host is quiet.
const quietPoll = 50 * time.Millisecond

// resting is the host as a draining worker sees it.
type resting interface {
	Drain()
	Interrupt()
	Quiet() bool
}

// drainer brings the workers of a process to their end.
type drainer struct {
	host    resting
	finish  bool
	grace   time.Duration
	signals <-chan os.Signal
	log     *slog.Logger
}

// stop takes nothing new, lets attempts end or interrupts them, waits until their
// trees are landed or kept, and ends. A second signal interrupts at once, a third
// one does not wait at all.
//
// The host's own queue and the workflows are served until the host is quiet: the
// landing of what just ended needs both.
func (d *drainer) stop(q *queues) {
	d.host.Drain()
	d.log.Info("draining: nothing new is taken", "finish", d.finish, "grace", d.grace)
	pools := stopping(q.pools)
	if !d.await(d.patience(), pools, d.host.Quiet) {
		d.host.Interrupt()
		d.log.Info("draining: interrupting what still runs")
		if !d.await(stopTimeout, pools, d.host.Quiet) {
			return
		}
	}
	rest := stopping([]worker.Worker{q.host, q.main}) // a gate may be at work on the main queue
	if d.finish && d.await(0, rest) {
		return
	}
	d.host.Interrupt()
	d.await(stopTimeout, rest)
}

// patience is how long running attempts may go on; 0: for ever.
func (d *drainer) patience() time.Duration {
	if d.finish {
		return 0
	}
	return max(d.grace, time.Nanosecond)
}

// await waits until the workers have stopped and the conditions hold. It reports
// false when the time is over (0: it has no limit) or a signal came.
func (d *drainer) await(limit time.Duration, stopped <-chan struct{}, conditions ...func() bool) bool {
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(quietPoll)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return false
		case <-d.signals:
			return false
		case <-stopped:
			stopped = nil
		case <-tick.C:
		}
		if stopped == nil && all(conditions) {
			return true
		}
	}
}

func all(conditions []func() bool) bool {
	for _, holds := range conditions {
		if !holds() {
			return false
		}
	}
	return true
}

// stopping stops workers side by side; the channel closes when all have.
func stopping(workers []worker.Worker) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wait sync.WaitGroup
		for _, w := range workers {
			wait.Go(w.Stop)
		}
		wait.Wait()
	}()
	return done
}

// checkDrain refuses a way to drain that there is not.
func (o *options) checkDrain() error {
	if o.drain != drainInterrupt && o.drain != drainFinish {
		return fmt.Errorf("invalid argument %q for --drain: want %s or %s", o.drain, drainInterrupt, drainFinish)
	}
	if o.grace < 0 {
		return fmt.Errorf("invalid argument %s for --drain-grace: it is negative", o.grace)
	}
	return nil
}
