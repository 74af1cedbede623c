package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"mendflow/internal/contract"
)

// patience bounds every wait for something that must happen.
const patience = 5 * time.Minute

// marks is the folder in which workers leave marks that the bench waits for.
func (s *stage) marks() string { return filepath.Join(s.dir, "marks") }

// mark is a shell command that leaves one, with the time in it. It appears
// complete or not at all.
func (s *stage) mark(name string) string {
	path := filepath.Join(s.marks(), name)
	return fmt.Sprintf(`date +%%s%%N > "%s.new" && mv "%s.new" "%s"`, path, path, path)
}

// marked reads the marks of a kind: when each was left.
func (s *stage) marked(kind string) (map[string]time.Time, error) {
	paths, err := filepath.Glob(filepath.Join(s.marks(), kind+"-*"))
	if err != nil {
		return nil, err
	}
	found := map[string]time.Time{}
	for _, path := range paths {
		if strings.HasSuffix(path, ".new") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		nanos, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil {
			return nil, err
		}
		found[strings.TrimPrefix(filepath.Base(path), kind+"-")] = time.Unix(0, nanos)
	}
	return found, nil
}

// await waits until the marks of a kind are as wanted.
func (s *stage) await(ctx context.Context, kind string, wanted func(map[string]time.Time) bool) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("no worker left a mark of the kind "+kind))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := s.marked(kind)
		if err != nil || wanted(found) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// forget removes all marks.
func (s *stage) forget() error {
	if err := os.RemoveAll(s.marks()); err != nil {
		return err
	}
	return os.Mkdir(s.marks(), 0o700)
}

// cancelling cancels runs whose workers hang, at different moments of their
// heartbeats, and takes the time from the command to each worker's signal.
func cancelling(ctx context.Context, s *stage) ([]row, error) {
	const workers, runs = 5, 4
	p := pool{workers, "trap '" + s.mark("told-$MENDFLOW_NODE") + "; exit 1' TERM INT; " +
		s.mark("up-$MENDFLOW_NODE") + "; while :; do sleep 0.01; done"}
	seed, err := s.ready(100, p)
	if err != nil {
		return nil, err
	}
	defer s.down()
	r := row{figure: "cancel to worker told, p90", unit: "s", floor: 2, goal: 1}
	var all []float64
	for round := range s.rounds {
		var samples []float64
		for i := range runs {
			shift := time.Duration(i*1000/runs+round*70) * time.Millisecond
			told, err := s.cancelOnce(ctx, seed, workers, shift)
			if err != nil {
				return nil, err
			}
			samples = append(samples, told...)
		}
		all = append(all, samples...)
		r.samples = append(r.samples, percentile(samples, 90))
		fmt.Fprintf(s.progress, "  p90 %.2f s, median %.2f s of %d workers\n", percentile(samples, 90), median(samples), len(samples))
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("median of all %.2f s, longest %.2f s", median(all), percentile(all, 100))
	return []row{r}, nil
}

func (s *stage) cancelOnce(ctx context.Context, seed string, workers int, shift time.Duration) ([]float64, error) {
	if err := s.forget(); err != nil {
		return nil, err
	}
	run, err := s.start(seed, independent(workers))
	if err != nil {
		return nil, err
	}
	all := func(found map[string]time.Time) bool { return len(found) == workers }
	if _, err := s.await(ctx, "up", all); err != nil {
		return nil, err
	}
	time.Sleep(shift) // where in the second between two heartbeats the cancel falls
	started := time.Now()
	if err := s.starter("cancel", run).run(); err != nil {
		return nil, err
	}
	told, err := s.await(ctx, "told", all)
	var samples []float64
	for _, at := range told {
		samples = append(samples, at.Sub(started).Seconds())
	}
	return samples, err
}

// retrying kills the host worker under a running attempt, starts it again at
// once and waits for the next attempt of the node, beyond the heartbeat timeout.
func retrying(ctx context.Context, s *stage) ([]row, error) {
	p := pool{1, s.mark("up-$MENDFLOW_NODE-$MENDFLOW_ATTEMPT") + "; while :; do sleep 0.01; done"}
	seed, err := s.ready(100, p)
	if err != nil {
		return nil, err
	}
	defer s.down()
	r := row{figure: "worker killed to its node retried, beyond the heartbeat timeout", unit: "s", floor: 2, goal: 1}
	for range s.rounds {
		took, timeout, err := s.retryOnce(ctx, seed)
		if err != nil {
			return nil, err
		}
		r.samples = append(r.samples, took.Seconds()-timeout.Seconds())
		r.detail = fmt.Sprintf("%.2f s with a timeout of %.0f s", took.Seconds(), timeout.Seconds())
		fmt.Fprintf(s.progress, "  %s\n", r.detail)
	}
	r.value = median(r.samples)
	return []row{r}, nil
}

func (s *stage) retryOnce(ctx context.Context, seed string) (took, timeout time.Duration, err error) {
	if err := s.forget(); err != nil {
		return 0, 0, err
	}
	run, err := s.start(seed, independent(1))
	if err != nil {
		return 0, 0, err
	}
	has := func(name string) func(map[string]time.Time) bool {
		return func(found map[string]time.Time) bool { return !found[name].IsZero() }
	}
	if _, err := s.await(ctx, "up", has("n0-1")); err != nil {
		return 0, 0, err
	}
	killed := time.Now()
	s.host.Kill()
	if err := s.host.Restart(); err != nil {
		return 0, 0, err
	}
	found, err := s.await(ctx, "up", has("n0-2"))
	if err != nil {
		return 0, 0, err
	}
	err = s.events(ctx, contract.NodeID(run, 1, "n0", 1), func(e *historypb.HistoryEvent) {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "RunWorker" {
			timeout = a.GetHeartbeatTimeout().AsDuration()
		}
	})
	if err != nil {
		return 0, 0, err
	}
	return found["n0-2"].Sub(killed), timeout, s.starter("cancel", run).run()
}

// restarting kills the server in the middle of a run, starts it again at once
// on its database and waits for the first worker that starts afterwards.
func restarting(ctx context.Context, s *stage) ([]row, error) {
	p := pool{4, s.mark("up-$MENDFLOW_NODE-$MENDFLOW_ATTEMPT") + `; sleep 0.3; echo "edited $i" >> "$f"`}
	seed, err := s.ready(1000, p)
	if err != nil {
		return nil, err
	}
	defer s.down()
	r := row{figure: "server killed and restarted to first progress", unit: "s", floor: 10, goal: 3.5}
	for range s.rounds {
		took, up, err := s.restartOnce(ctx, seed)
		if err != nil {
			return nil, err
		}
		r.samples = append(r.samples, took.Seconds())
		r.detail = fmt.Sprintf("of which the server took %.2f s to be up", up.Seconds())
		fmt.Fprintf(s.progress, "  %.2f s, %s\n", took.Seconds(), r.detail)
	}
	r.value = median(r.samples)
	return []row{r}, nil
}

func (s *stage) restartOnce(ctx context.Context, seed string) (took, up time.Duration, err error) {
	const nodes = 40
	if err := s.forget(); err != nil {
		return 0, 0, err
	}
	run, err := s.start(seed, independent(nodes))
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.await(ctx, "up", func(found map[string]time.Time) bool { return len(found) >= 8 }); err != nil {
		return 0, 0, err
	}
	s.server.Kill()
	before, err := s.marked("up")
	if err != nil {
		return 0, 0, err
	}
	killed := time.Now()
	if err := s.server.Restart(); err != nil {
		return 0, 0, err
	}
	up = time.Since(killed)
	first := time.Time{}
	_, err = s.await(ctx, "up", func(found map[string]time.Time) bool {
		for name, at := range found {
			// What was handed out before the kill may still start while the server is down.
			if _, old := before[name]; !old && at.After(killed.Add(up/2)) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		return !first.IsZero()
	})
	if err != nil {
		return 0, 0, err
	}
	return first.Sub(killed), up, s.starter("cancel", run).run()
}
