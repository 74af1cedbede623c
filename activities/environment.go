package activities

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mendflow/internal/process"
)

// home is a private home of the host's programs: one for workers, another for
// what we check with, so that a worker cannot poison a cached result.
func (h *Host) home(checks bool) string {
	if checks {
		return filepath.Join(h.StateDir, "home", "check")
	}
	return WorkerHome(h.StateDir)
}

// WorkerHome is the private home of workers in a state folder, where programs
// keep their log-ins and sessions.
func WorkerHome(stateDir string) string { return filepath.Join(stateDir, "home", "worker") }

// environment is what a program sees: an allow-list, the names that the plan or
// the pool passes through, and what is set here.
func (h *Host) environment(names []string, temp string, checks bool, set map[string]string) ([]string, error) {
	userHome, err := os.UserHomeDir()
	if err != nil {
		userHome = "" // tool chains installed there are then found by PATH alone
	}
	return process.Environment{
		Host: h.Environ(), HostHome: userHome, Home: h.home(checks), Temp: temp, Pass: names, Set: set,
	}.Build()
}

// sandbox confines a program to its tree, its temporary folder and its private
// home; nil where this host has no sandbox.
func (h *Host) sandbox(checks bool, writable ...string) *process.Sandbox {
	if !h.Confine {
		return nil
	}
	return &process.Sandbox{Writable: append([]string{h.home(checks)}, writable...)}
}

// folders expands the writable folders of a pool; a missing one is an error, since
// the sandbox can only allow what is there.
func folders(names []string) ([]string, error) {
	var paths []string
	for _, name := range names {
		path := name
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("expand writable folder %s: %w", name, err)
			}
			path = filepath.Join(home, rest)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("allow writable folder %s: %w: make it, or take it out of the pool's `writable`", name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
