package testkit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fleet is a server and several hosts, each with a state folder and served
// pools of its own, which share an artifact store; and a user's client.
type Fleet struct {
	Dir     string
	Server  *Server
	Hosts   []*Host
	Client  *Client
	Control Control
	Pools   string // pools file of runs: what all hosts can do together
}

// FleetOptions say what a fleet is made of. Hosts is required: the pools that each serves.
type FleetOptions struct {
	Hosts   [][]Pool
	Durable bool     // the server keeps its database in a file
	Env     []string // of the hosts
	Args    []string // of the hosts
	Dir     string   // empty: a temporary folder
}

// NewFleet brings a fleet up in a temporary folder; it ends with the test.
func NewFleet(t testing.TB, o FleetOptions) *Fleet {
	t.Helper()
	f := &Fleet{Dir: o.Dir}
	if f.Dir == "" {
		f.Dir = t.TempDir()
	}
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		f.attachLogs(t)
	})
	require.NoError(t, f.open(o))
	return f
}

func (f *Fleet) open(o FleetOptions) error {
	if err := CheckBuilt(); err != nil {
		return err
	}
	var err error
	if f.Control, err = NewControl(filepath.Join(f.Dir, "control")); err != nil {
		return err
	}
	f.Pools = filepath.Join(f.Dir, "pools.yaml")
	if err := WritePools(f.Pools, f.Control, together(o.Hosts)...); err != nil {
		return err
	}
	if f.Server, err = StartServer(f.Dir, o.Durable); err != nil {
		return err
	}
	for i, pools := range o.Hosts {
		host, err := f.startHost(fmt.Sprintf("host-%d", i+1), pools, o)
		if host != nil {
			f.Hosts = append(f.Hosts, host)
		}
		if err != nil {
			return err
		}
	}
	user := filepath.Join(f.Dir, "user")
	if f.Client, err = NewClient(f.Server.Address, user); err != nil {
		return err
	}
	f.Client.Artifacts = f.Artifacts()
	return os.MkdirAll(user, 0o700)
}

// Artifacts is the folder that all hosts share.
func (f *Fleet) Artifacts() string { return filepath.Join(f.Dir, "artifacts") }

func (f *Fleet) startHost(name string, pools []Pool, o FleetOptions) (*Host, error) {
	served := filepath.Join(f.Dir, name+".yaml")
	if err := WritePools(served, f.Control, pools...); err != nil {
		return nil, err
	}
	return StartHost(HostOptions{
		Address: f.Server.Address, Name: name, State: filepath.Join(f.Dir, name), Pools: served, Artifacts: f.Artifacts(), Env: o.Env, Args: o.Args,
	})
}

// together adds up what the hosts serve: a pool of two hosts has the slots of both.
func together(hosts [][]Pool) []Pool {
	sum := map[string]Pool{}
	for _, pools := range hosts {
		for _, p := range pools {
			p.Max = max(p.Max, 1) + sum[p.ID].Max
			sum[p.ID] = p
		}
	}
	var all []Pool
	for _, id := range slices.Sorted(maps.Keys(sum)) {
		all = append(all, sum[id])
	}
	return all
}

// Close ends the hosts, which end their attempts, and then the server.
func (f *Fleet) Close() error {
	if f.Client != nil {
		f.Client.Close()
	}
	var err error
	for _, h := range f.Hosts {
		if h.Process != nil && h.Alive() {
			if stopErr := h.Stop(); err == nil {
				err = stopErr
			}
		}
	}
	if f.Server != nil && f.Server.Process != nil && f.Server.Alive() {
		if stopErr := f.Server.Stop(); err == nil {
			err = stopErr
		}
	}
	return err
}

func (f *Fleet) attachLogs(t testing.TB) {
	if f.Server != nil {
		attachLog(t, f.Server.Log())
	}
	for _, h := range f.Hosts {
		attachLog(t, h.Log())
	}
}

// Start starts the case's run.
func (f *Fleet) Start(t testing.TB, c *Case, more ...string) {
	t.Helper()
	f.Client.Start(t, c.Run, c.Repo.URL, c.Path, f.Pools, more...)
}

// Scene is the case's run on the hosts that are still there, for [CheckInvariants].
func (f *Fleet) Scene(c *Case) Scene {
	s := Scene{Run: c.Run, Client: f.Client, Control: f.Control, Repo: c.Repo, Before: c.Before}
	for _, h := range f.Hosts {
		s.States = append(s.States, h.State)
	}
	return s
}

// Lose kills a host for good: its processes, and its state folder is moved away.
// It returns where that lies now, which nobody but the test can know.
func (f *Fleet) Lose(t testing.TB, h *Host) string {
	t.Helper()
	h.Kill()
	// Its supervisors end what it had started; afterwards nothing of it does anything any more.
	EventuallyNone(t, "processes of the lost host", func() []string { return Marked("-", h.State) })
	require.NoError(t, os.Rename(h.State, h.State+".lost"))
	f.Hosts = slices.DeleteFunc(f.Hosts, func(other *Host) bool { return other == h })
	return h.State + ".lost"
}

// At returns the host in whose state folder a tree lies; nil when it is none of them.
func (f *Fleet) At(tree string) *Host {
	for _, h := range f.Hosts {
		if strings.HasPrefix(tree, h.State+string(filepath.Separator)) {
			return h
		}
	}
	return nil
}
