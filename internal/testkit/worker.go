package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Host is a host worker as a process, with its state folder.
type Host struct {
	*Process
	State string   // state folder; the artifact store lies in it unless Artifacts says otherwise
	args  []string // the program first
	env   []string
}

// HostOptions say how a host worker runs. Address, State and Pools are required.
type HostOptions struct {
	Address   string
	State     string
	Pools     string // pools file
	Artifacts string // empty: in the state folder
	Name      string // identity of the host; empty: made once in the state folder
	Env       []string
	Args      []string // further ones
	In        []string // what starts the program elsewhere, such as in a network of its own; empty: nothing
}

// StartHost starts a host worker and returns when it polls.
func StartHost(o HostOptions) (*Host, error) {
	h := &Host{State: o.State, env: o.Env}
	h.args = append(slices.Clone(o.In), Program("worker"), "--address", o.Address, "--state-dir", o.State, "--pools", o.Pools, "--verbose")
	if !slices.Contains(o.Args, "--drain-grace") {
		h.args = append(h.args, "--drain-grace", "0s") // a test that stops a host has what it wanted
	}
	h.args = append(h.args, o.Args...)
	if o.Artifacts != "" {
		h.args = append(h.args, "--artifacts", o.Artifacts)
	}
	if o.Name != "" {
		h.args = append(h.args, "--host-name", o.Name)
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, err
	}
	return h, h.launch()
}

// Restart starts a host that has ended again, as the same host.
func (h *Host) Restart() error { return h.launch() }

// Log is the path of the host's log.
func (h *Host) Log() string { return filepath.Join(h.State, "worker.log") }

func (h *Host) launch() error {
	cmd := exec.Command(h.args[0], h.args[1:]...)
	cmd.Env = append(cleanEnviron(), h.env...)
	var err error
	if h.Process, err = start("worker", h.Log(), cmd); err != nil {
		return err
	}
	err = h.await(func(line []byte) bool { return strings.HasPrefix(string(line), "worker ready: ") })
	if err != nil {
		h.Kill()
	}
	return err
}

// cleanEnviron is the environment of the tests without settings of a user's
// own server or runs, which a test must never touch.
func cleanEnviron() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "MENDFLOW_") {
			env = append(env, v)
		}
	}
	return env
}
