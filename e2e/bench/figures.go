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
