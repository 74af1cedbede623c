package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"mendflow/internal/contract"
)

// scale compares runs of 200 and of 20 nodes by what a node takes between the
// start of the first drive and the last report of the last, so that neither
// gains from sharing the cost of opening and closing.
func scale(ctx context.Context, s *stage) ([]row, error) {
	const short, long = 20, 200
	seed, err := s.ready(1000, editing(4))
	if err != nil {
		return nil, err
	}
	defer s.down()
	r := row{figure: "per node at 200 nodes ÷ at 20", floor: 1.15, goal: 1}
	var shorts, longs []float64
	for range s.rounds {
		few, err := s.implementing(ctx, seed, short)
		if err != nil {
			return nil, err
		}
		many, err := s.implementing(ctx, seed, long)
		if err != nil {
			return nil, err
		}
		shorts, longs, r.samples = append(shorts, few), append(longs, many), append(r.samples, many/few)
		fmt.Fprintf(s.progress, "  at 20 nodes %.1f ms a node, at 200 %.1f ms\n", few, many)
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("%.1f ms ÷ %.1f ms", median(longs), median(shorts))
	return []row{r}, nil
}

// ready makes the seed repository and brings the stage up.
func (s *stage) ready(files int, p pool, env ...string) (seed string, err error) {
	seed = filepath.Join(s.dir, "seed")
	if err := makeRepository(seed, files); err != nil {
		return "", err
	}
	return seed, s.up(p, env...)
}

// implementing runs a plan and returns the milliseconds per node of its implementing time.
func (s *stage) implementing(ctx context.Context, seed string, nodes int) (float64, error) {
	run, _, err := s.green(ctx, seed, independent(nodes))
	if err != nil {
		return 0, err
	}
	var first, last *historypb.HistoryEvent
	err = s.events(ctx, contract.RemediationID(run), func(e *historypb.HistoryEvent) {
		switch {
		case first == nil && e.GetEventType() == enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
			first = e
		case e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == contract.SignalReport:
			last = e
		}
	})
	if err != nil {
		return 0, err
	}
	if first == nil || last == nil {
		return 0, fmt.Errorf("read history of %s: no drive started or none reported", run)
	}
	return perNode(last.GetEventTime().AsTime().Sub(first.GetEventTime().AsTime()), nodes), nil
}

// events hands over the events of a workflow, oldest first.
func (s *stage) events(ctx context.Context, workflow string, take func(*historypb.HistoryEvent)) error {
	history := s.client.Server().GetWorkflowHistory(ctx, workflow, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return fmt.Errorf("read history of %s: %w", workflow, err)
		}
		take(event)
	}
	return nil
}

func makespan(ctx context.Context, s *stage) ([]row, error) {
	const nodes, slots = 50, 8
	ideal := float64((nodes + slots - 1) / slots) // seconds: full waves of one second each
	return s.against(ctx, ideal, slots, independent(nodes), row{
		figure: "makespan ÷ ideal, 1 s workers, 50 nodes, 8 slots", floor: 1.25, goal: 1.1,
	})
}

func chains(ctx context.Context, s *stage) ([]row, error) {
	lengths := []int{3, 5, 7, 10}
	return s.against(ctx, 10, len(lengths), chained(lengths...), row{
		figure: "makespan ÷ critical path, four chains of " + strings.Trim(fmt.Sprint(lengths), "[]") + " nodes, 1 s workers", floor: 1.2, goal: 1.05,
	})
}

// against compares whole runs, with opening and report, to a number of seconds.
func (s *stage) against(ctx context.Context, seconds float64, slots int, p plan, r row) ([]row, error) {
	seed, err := s.ready(1000, sleeping(slots, "1"))
	if err != nil {
		return nil, err
	}
	defer s.down()
	var took []float64
	for range s.rounds {
		_, o, err := s.green(ctx, seed, p)
		if err != nil {
			return nil, err
		}
		took = append(took, o.elapsed().Seconds())
		r.samples = append(r.samples, o.elapsed().Seconds()/seconds)
		fmt.Fprintf(s.progress, "  %.2f s of %.0f s\n", o.elapsed().Seconds(), seconds)
	}
	r.value = median(r.samples)
	r.detail = fmt.Sprintf("%.2f s ÷ %.0f s", median(took), seconds)
	return []row{r}, nil
}
