package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// processorTime is what a process has used so far: itself, and the children
// that it has waited for.
type processorTime struct{ own, children time.Duration }

func (p processorTime) since(before processorTime) processorTime {
	return processorTime{p.own - before.own, p.children - before.children}
}

// processorTimeOf reads it from the kernel (proc_pid_stat(5), in hundredths of a second).
func processorTimeOf(pid int) (processorTime, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processorTime{}, fmt.Errorf("read processor time: %w", err)
	}
	// The command stands in parentheses and may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first = 11 // utime, stime, cutime, cstime
	if len(fields) < first+4 {
		return processorTime{}, fmt.Errorf("read processor time: %q", stat)
	}
	var ticks [4]time.Duration
	for i := range ticks {
		n, err := strconv.ParseInt(string(fields[first+i]), 10, 64)
		if err != nil {
			return processorTime{}, fmt.Errorf("read processor time: %w", err)
		}
		ticks[i] = time.Duration(n) * 10 * time.Millisecond
	}
	return processorTime{ticks[0] + ticks[1], ticks[2] + ticks[3]}, nil
}

// childrenTime is what this program's own ended children have used.
func childrenTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
