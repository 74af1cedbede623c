package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// row is one figure as measured; small is good.
type row struct {
	figure      string
	unit        string // empty: a ratio
	value       float64
	floor, goal float64
	samples     []float64
	detail      string // what the value was made of
}

// measurement gives one figure or a few that come from the same runs.
type measurement struct {
	name  string
	about string
	run   func(context.Context, *stage) ([]row, error)
}

func measurements() []measurement {
	return []measurement{
		{"small", "overhead per node against the yardstick, 1 000 files", smallRepository},
		{"large", "overhead per node against the yardstick, 20 000 files", largeRepository},
		{"scale", "time per node of a long run against a short one", scale},
		{"makespan", "makespan against the ideal, workers of one second", makespan},
		{"chains", "makespan against the critical path of four chains", chains},
		{"landing", "merge, object transfer and transaction, 100 000 files against 1 000", landing},
		{"processes", "git processes per node", processes},
		{"history", "history per node over all workflows of a run", history},
		{"cancel", "cancel to worker told", cancelling},
		{"retry", "worker killed to its node retried", retrying},
		{"restart", "server killed and restarted to first progress", restarting},
	}
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

// choose returns the named measurements in the order of the table; all without a name.
func choose(list string) ([]measurement, error) {
	if list == "" {
		return measurements(), nil
	}
	wanted := strings.Split(list, ",")
	var chosen []measurement
	for _, m := range measurements() {
		if slices.Contains(wanted, m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) != len(wanted) {
		return nil, fmt.Errorf("choose figures: one of %q is not known", wanted)
	}
	return chosen, nil
}
