package testkit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// identify names a running process; Start is empty when it is gone.
func identify(pid int) Identity {
	_, start := stat(pid)
	return Identity{PID: pid, Start: start}
}

// alive reports whether a process still runs; a zombie does not.
func alive(id Identity) bool {
	state, start := stat(id.PID)
	return start != "" && start == id.Start && state != "Z" && state != "X"
}

// stat reads state and start time of a process (proc_pid_stat(5), fields 3 and 22).
func stat(pid int) (state, start string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	// The name stands in brackets and may hold anything, brackets too.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}

// Marked lists the living processes whose mark names the run on any host, as
// "pid command", and those that work in one of the folders.
func Marked(run string, folders ...string) []string {
	return processes(func(pid int) bool { return carries(pid, run) || worksIn(pid, folders) })
}

// Mentioning lists the living processes whose command line, environment or
// working folder names the folder, as "pid command".
func Mentioning(folder string) []string {
	return processes(func(pid int) bool {
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return strings.Contains(strings.Join([]string{cwd, commandLine(pid), string(environ)}, " "), folder)
	})
}

// processes lists the living processes but this one that are wanted.
func processes(wanted func(pid int) bool) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if state, _ := stat(pid); state == "" || state == "Z" || state == "X" {
			continue
		}
		if wanted(pid) {
			found = append(found, fmt.Sprintf("%d %s", pid, commandLine(pid)))
		}
	}
	return found
}

// carries reports whether the process's mark is HOST/RUN or HOST/RUN/….
func carries(pid int, run string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false // it ended, or is not ours
	}
	for _, v := range bytes.Split(environ, []byte{0}) {
		mark, ok := strings.CutPrefix(string(v), "MENDFLOW_MARK=")
		if parts := strings.Split(mark, "/"); ok && len(parts) > 1 && parts[1] == run {
			return true
		}
	}
	return false
}

func worksIn(pid int, folders []string) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	for _, folder := range folders {
		if cwd == folder || strings.HasPrefix(cwd, folder+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
}

// Supervisors lists the process ids of the run's supervisors: programs of ours
// that watch an attempt, a verification or a gate command.
func Supervisors(run string) []int {
	var pids []int
	for _, line := range Marked(run) {
		number, command, _ := strings.Cut(line, " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.Contains(command, " __supervise ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// KillPID kills a process that may have ended already.
func KillPID(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// MarkedIdentities are the living processes whose mark names the run.
func MarkedIdentities(run string) []Identity {
	var found []Identity
	for _, line := range Marked(run) {
		number, _, _ := strings.Cut(line, " ")
		if pid, err := strconv.Atoi(number); err == nil {
			found = append(found, identify(pid))
		}
	}
	return found
}

// Living are those of the processes that have not ended.
func Living(ids []Identity) []string {
	var living []string
	for _, id := range ids {
		if alive(id) {
			living = append(living, fmt.Sprintf("%d %s", id.PID, commandLine(id.PID)))
		}
	}
	return living
}

// Supervised are the programs that the run's supervisors launched.
func Supervised(run string) []int {
	supervisors := Supervisors(run)
	var programs []int
	for _, id := range MarkedIdentities(run) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil && slices.Contains(supervisors, parent) {
			programs = append(programs, id.PID)
		}
	}
	return programs
}
