package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"mendflow/internal/contract"
)

// footprintNodes is the size of the runs whose processes and events are counted.
const footprintNodes = 50

// staggered workers end one at a time, so that no two of them share a message.
func staggered() pool { return sleeping(4, "0.$((i * 37 % 60 + 20))") }

// processes counts every git process of a run, those that git starts itself
// too: a shim turns on git's own trace, of which each process writes one file.
func processes(ctx context.Context, s *stage) ([]row, error) {
	real, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	trace, bin := filepath.Join(s.dir, "trace"), filepath.Join(s.dir, "shim")
	for _, dir := range []string{trace, bin} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	shim := fmt.Sprintf("#!/bin/sh\nGIT_TRACE2_EVENT='%s' exec '%s' \"$@\"\n", trace, real)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(shim), 0o700); err != nil {
		return nil, err
	}
	seed, err := s.ready(1000, staggered(), "PATH="+bin+":"+os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	defer s.down()
	r := row{figure: "git processes per node", floor: 20, goal: 12}
	for range s.rounds {
		if _, _, err := s.green(ctx, seed, independent(footprintNodes)); err != nil {
			return nil, err
		}
		names, total, err := takeTraces(trace)
		if err != nil {
			return nil, err
		}
		r.samples = append(r.samples, float64(total)/footprintNodes)
		r.detail = names
		fmt.Fprintf(s.progress, "  %d processes: %s\n", total, names)
	}
	r.value = median(r.samples)
	return []row{r}, nil
}

// takeTraces counts the processes by command and removes their traces.
func takeTraces(dir string) (names string, total int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", 0, err
	}
	counts := map[string]int{}
	for _, e := range entries {
		name, err := tracedCommand(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", 0, err
		}
		counts[name]++
		total++
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return "", 0, err
		}
	}
	sorted := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if c := counts[b] - counts[a]; c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range sorted {
		parts = append(parts, fmt.Sprintf("%s %s", name, number(float64(counts[name])/footprintNodes)))
	}
	return strings.Join(parts, ", "), total, nil
}

// tracedCommand reads which git command wrote a trace.
func tracedCommand(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Event, Name string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Event == "cmd_name" {
			return event.Name, nil
		}
	}
	return "other", lines.Err()
}

// history adds up the histories of all workflows of a run, those of the brokers
// included, as the server counts them.
func history(ctx context.Context, s *stage) ([]row, error) {
	events := row{figure: "history per node over all workflows of the run", unit: "events", floor: 60, goal: 40}
	size := row{figure: "the same in bytes", unit: "KB", floor: 15, goal: 8}
	for round := range s.rounds {
		// A broker outlives runs: each round has a server of its own.
		own := &stage{options: s.options, dir: filepath.Join(s.dir, fmt.Sprint(round))}
		if err := os.Mkdir(own.dir, 0o700); err != nil {
			return nil, err
		}
		sums, err := own.histories(ctx)
		if err != nil {
			return nil, err
		}
		total := sums.total()
		events.samples = append(events.samples, float64(total.events)/footprintNodes)
		size.samples = append(size.samples, float64(total.bytes)/1000/footprintNodes)
		events.detail, size.detail = sums.text()
		fmt.Fprintf(s.progress, "  events: %s; KB: %s\n", events.detail, size.detail)
	}
	events.value, size.value = median(events.samples), median(size.samples)
	return []row{events, size}, nil
}

func (s *stage) histories(ctx context.Context) (historySums, error) {
	seed, err := s.ready(1000, staggered())
	if err != nil {
		return nil, err
	}
	defer s.down()
	run, _, err := s.green(ctx, seed, independent(footprintNodes))
	if err != nil {
		return nil, err
	}
	sums := historySums{}
	return sums, s.walk(ctx, sums, contract.RemediationID(run), contract.BrokerID("shell"))
}

type historySum struct{ events, bytes int64 }

// historySums are by type of workflow.
type historySums map[string]historySum

func (h historySums) total() historySum {
	var t historySum
	for _, s := range h {
		t.events += s.events
		t.bytes += s.bytes
	}
	return t
}

// text says how much of a node's history each type of workflow has.
func (h historySums) text() (events, kilobytes string) {
	var e, k []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		e = append(e, name+" "+number(float64(h[name].events)/footprintNodes))
		k = append(k, name+" "+number(float64(h[name].bytes)/1000/footprintNodes))
	}
	return strings.Join(e, ", "), strings.Join(k, ", ")
}

// walk adds workflows and, in turn, the children that they started.
func (s *stage) walk(ctx context.Context, sums historySums, workflows ...string) error {
	for _, id := range workflows {
		described, err := s.client.Server().DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return fmt.Errorf("describe %s: %w", id, err)
		}
		info := described.GetWorkflowExecutionInfo()
		name := info.GetType().GetName()
		sum := sums[name]
		sum.events += info.GetHistoryLength()
		sum.bytes += info.GetHistorySizeBytes()
		sums[name] = sum
		var children []string
		err = s.events(ctx, id, func(e *historypb.HistoryEvent) {
			if child := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); child != nil {
				children = append(children, child.GetWorkflowId())
			}
		})
		if err != nil {
			return err
		}
		if err := s.walk(ctx, sums, children...); err != nil {
			return err
		}
	}
	return nil
}
