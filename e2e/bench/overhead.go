package main

import (
	"context"
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
	for range s.rounds {
		t, err := yardstick.run()
		if err != nil {
			return nil, err
		}
		_, o, err := s.green(ctx, seed, independent(nodes))
		if err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, perNode(t, nodes)), append(ours, perNode(o.elapsed(), nodes))
		r.samples = append(r.samples, ours[len(ours)-1]/theirs[len(theirs)-1])
		fmt.Fprintf(s.progress, "  yardstick %.1f ms a node, mendflow %.1f ms\n", theirs[len(theirs)-1], ours[len(ours)-1])
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("%.1f ms ÷ %.1f ms", median(ours), median(theirs))
	return []row{r}, nil
}

// perNode is in milliseconds.
func perNode(d time.Duration, nodes int) float64 {
	return float64(d.Microseconds()) / 1000 / float64(nodes)
}
