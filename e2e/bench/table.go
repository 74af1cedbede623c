package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// table is the Markdown table of the figures.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| figure | value | floor | goal | verdict | rounds | from |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		verdict := "goal met"
		switch {
		case r.value > r.floor:
			verdict = "**floor missed**"
		case r.value > r.goal:
			verdict = "floor met"
		}
		samples := make([]string, len(r.samples))
		for i, s := range r.samples {
			samples[i] = number(s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", r.figure,
			amount(r.value, r.unit), amount(r.floor, r.unit), amount(r.goal, r.unit), verdict, strings.Join(samples, " "), r.detail)
	}
	return b.String()
}

func amount(v float64, unit string) string {
	if unit == "" {
		return number(v)
	}
	return number(v) + " " + unit
}

// number has as many digits as mean something.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

func median(samples []float64) float64 { return percentile(samples, 50) }

// percentile is the smallest sample that so many percent do not exceed; the
// median of an even number is the mean of the two in the middle.
func percentile(samples []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	if percent == 50 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[max(0, (n*percent+99)/100-1)]
}

// machine says on what was measured.
func machine() string {
	name := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s", runtime.NumCPU(), name)
}

// load is the machine's load average of the last minute.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
