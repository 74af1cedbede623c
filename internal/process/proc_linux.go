package process

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is what the kernel tells about a process (proc_pid_stat(5)). The start
// time, in clock ticks since boot, tells a process from a later one with the
// same number.
type proc struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64
}

func (p proc) ended() bool { return p.state == 'Z' || p.state == 'X' }

// processes lists all processes that can be seen, by number.
func processes() []proc {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(-1) // what was read before an error is still true
	list := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b proc) int { return a.pid - b.pid })
	return list
}

func readProc(pid int) (proc, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The command stands in parentheses and may contain any byte.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return proc{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return proc{}, false
	}
	p := proc{pid: pid, state: fields[0][0]}
	p.parent, _ = strconv.Atoi(fields[1]) // the kernel writes numbers
	p.group, _ = strconv.Atoi(fields[2])
	p.session, _ = strconv.Atoi(fields[3])
	p.start, _ = strconv.ParseUint(fields[19], 10, 64)
	return p, true
}

// markOf is the mark in the environment of a process, "" if it has none or may
// not be asked.
func markOf(pid int) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	return lookup(strings.Split(string(env), "\x00"), MarkVariable)
}

// commandOf is the command line of a process, for people.
func commandOf(pid int) string {
	const limit = 200
	folder := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(folder + "/cmdline")
	if err != nil || len(line) == 0 {
		line, _ = os.ReadFile(folder + "/comm") // a process that is ending has no command line
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// descendants are the processes that the seeds are, or that descend from them,
// seeds included.
func descendants(all []proc, seed func(proc) bool) []proc {
	member := map[int]bool{}
	for _, p := range all {
		if seed(p) {
			member[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !member[p.pid] && member[p.parent] {
				member[p.pid] = true
				grown = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p proc) bool { return !member[p.pid] })
}

// send signals a process, if it is still the one that was seen.
func (p proc) send(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return
	}
	same, ok := readProc(p.pid)
	if !ok || same.start != p.start {
		if err == nil {
			_ = unix.Close(fd)
		}
		return
	}
	if err != nil { // kernels before 5.3
		_ = unix.Kill(p.pid, sig)
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	_ = unix.Close(fd)
}

// leftOf describes processes for a result.
func leftOf(list []proc) []LeftProcess {
	var left []LeftProcess
	for _, p := range list {
		left = append(left, LeftProcess{PID: p.pid, Command: commandOf(p.pid)})
	}
	return left
}
