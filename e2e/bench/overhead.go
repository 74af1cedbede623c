package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func smallRepository(ctx context.Context, s *stage) ([]row, error) {
	return s.overhead(ctx, 1000, 50, row{figure: "overhead per node ÷ yardstick, 1 000 files, 50 nodes, 4 slots, no sleep", floor: 2, goal: 1.3})
}

func largeRepository(ctx context.Context, s *stage) ([]row, error) {
	return s.overhead(ctx, 20_000, 24, row{figure: "the same, 20 000 files, 24 nodes", floor: 0.6, goal: 0.35})
}

// overhead runs the yardstick and Mendflow in turn. Mendflow's time is that of
// the whole run, with opening the repository and writing the report.
func (s *stage) overhead(ctx context.Context, files, nodes int, r row) ([]row, error) {
	const slots = 4
	seed, err := s.ready(files, editing(slots))
	if err != nil {
		return nil, err
	}
	defer s.down()
	yardstick := loop{seed: seed, nodes: nodes, parallel: slots, sleep: "0", temp: s.dir}
	var theirs, ours []float64
	var used usage
	for range s.rounds {
		t, err := used.loop(yardstick)
		if err != nil {
			return nil, err
		}
		o, err := used.mendflow(ctx, s, seed, nodes)
		if err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, perNode(t, nodes)), append(ours, perNode(o, nodes))
		r.samples = append(r.samples, ours[len(ours)-1]/theirs[len(theirs)-1])
		fmt.Fprintf(s.progress, "  yardstick %.1f ms a node, mendflow %.1f ms\n", theirs[len(theirs)-1], ours[len(ours)-1])
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("%.1f ms ÷ %.1f ms; %s", median(ours), median(theirs), used.text(nodes*s.rounds))
	return []row{r}, nil
}

// usage is the processor time of all rounds: a busy machine stretches the
// clock, but hardly this.
type usage struct {
	yardstick, server, host, programs time.Duration
}

// loop runs the yardstick; a run that lost a node does not count.
func (u *usage) loop(l loop) (time.Duration, error) {
	for try := 1; ; try++ {
		before, err := childrenTime()
		if err != nil {
			return 0, err
		}
		took, err := l.run()
		if errors.Is(err, errIncomplete) && try < 5 {
			continue
		}
		if err != nil {
			return 0, err
		}
		after, err := childrenTime()
		u.yardstick += after - before
		return took, err
	}
}

func (u *usage) mendflow(ctx context.Context, s *stage, seed string, nodes int) (time.Duration, error) {
	var before, after [2]processorTime
	look := func(to *[2]processorTime) (err error) {
		for i, pid := range []int{s.server.PID(), s.host.PID()} {
			if to[i], err = processorTimeOf(pid); err != nil {
				return err
			}
		}
		return nil
	}
	if err := look(&before); err != nil {
		return 0, err
	}
	_, ran, err := s.green(ctx, seed, independent(nodes))
	if err != nil {
		return 0, err
	}
	if err := look(&after); err != nil {
		return 0, err
	}
	server, host := after[0].since(before[0]), after[1].since(before[1])
	u.server, u.host, u.programs = u.server+server.own, u.host+host.own, u.programs+host.children
	return ran.elapsed(), nil
}

func (u *usage) text(nodes int) string {
	return fmt.Sprintf("processor time %.0f ms (server %.0f, worker %.0f, its programs %.0f) ÷ %.0f ms",
		perNode(u.server+u.host+u.programs, nodes), perNode(u.server, nodes), perNode(u.host, nodes), perNode(u.programs, nodes),
		perNode(u.yardstick, nodes))
}

// perNode is in milliseconds.
func perNode(d time.Duration, nodes int) float64 {
	return float64(d.Microseconds()) / 1000 / float64(nodes)
}
