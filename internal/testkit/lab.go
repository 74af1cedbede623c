package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/config"
)

// codecVariable names the key file of the payload codec to the programs.
const codecVariable = "MENDFLOW_CODEC_KEYS_FILE"

// Lab is a server, one host that serves scripted pools, and a user's client.
type Lab struct {
	Dir     string
	Server  *Server
	Host    *Host
	Client  *Client
	Control Control
	Pools   string // pools file of host and runs
}

// LabOptions say what a lab is made of. The zero value is usable.
type LabOptions struct {
	Durable bool     // the server keeps its database in a file
	Pools   []Pool   // empty: one pool `scripted`
	Env     []string // of the host worker
	Args    []string // of the host worker
	// CodecKeys is the key file of the payload codec, for host and client; empty: nothing is encrypted.
	CodecKeys string
}

// NewLab brings a lab up in a temporary folder; it ends with the test.
func NewLab(t testing.TB, o LabOptions) *Lab {
	t.Helper()
	lab, err := OpenLab(t.TempDir(), o)
	t.Cleanup(func() {
		require.NoError(t, lab.Close())
		lab.attachLogs(t)
	})
	require.NoError(t, err)
	return lab
}

// OpenLab brings a lab up in a folder; the caller closes it, also after an
// error. The state folder is where programs with XDG_STATE_HOME=dir/state look.
func OpenLab(dir string, o LabOptions) (*Lab, error) {
	l := &Lab{Dir: dir}
	if err := CheckBuilt(); err != nil {
		return l, err
	}
	if len(o.Pools) == 0 {
		o.Pools = []Pool{{ID: "scripted"}}
	}
	var err error
	if l.Control, err = NewControl(filepath.Join(dir, "control")); err != nil {
		return l, err
	}
	l.Pools = filepath.Join(dir, "pools.yaml")
	if err := WritePools(l.Pools, l.Control, o.Pools...); err != nil {
		return l, err
	}
	if l.Server, err = StartServer(dir, o.Durable); err != nil {
		return l, err
	}
	env := o.Env
	if o.CodecKeys != "" {
		env = append(slices.Clone(env), codecVariable+"="+o.CodecKeys)
	}
	l.Host, err = StartHost(HostOptions{Address: l.Server.Address, State: filepath.Join(dir, "state", "mendflow"), Pools: l.Pools, Env: env, Args: o.Args})
	if err != nil {
		return l, err
	}
	l.Client, err = newClient(config.Connection{Address: l.Server.Address, CodecKeys: o.CodecKeys}, l.Host.State)
	return l, err
}

// Close ends what the lab started: the host first, which ends its attempts.
func (l *Lab) Close() error {
	if l.Client != nil {
		l.Client.Close()
	}
	var err error
	if l.Host != nil && l.Host.Alive() {
		err = l.Host.Stop()
	}
	if l.Server != nil && l.Server.Alive() {
		if stopErr := l.Server.Stop(); err == nil && stopErr != nil {
			err = fmt.Errorf("stop server: %w", stopErr)
		}
	}
	return err
}

func (l *Lab) attachLogs(t testing.TB) {
	if l.Server != nil {
		attachLog(t, l.Server.Log())
	}
	if l.Host != nil {
		attachLog(t, l.Host.Log())
	}
}

// Case is a user's repository and plan, ready to start as a run.
type Case struct {
	Run    string
	Dir    string
	Repo   *Repo
	Plan   Plan
	Path   string // plan file
	Before Checkout
}

// RunID is a run id made of the test's name. The process table is one for all
// labs, so a run's id must be unique in the machine, and short tests run again
// and again: the id of this process is part of it.
func RunID(t testing.TB) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.TrimPrefix(t.Name(), "Test"))
	return fmt.Sprintf("%s-%d", word[:min(len(word), 50)], os.Getpid())
}

// NewCase makes a repository for a plan; see [RunID].
func NewCase(t testing.TB, run string, p Plan) *Case {
	t.Helper()
	dir := t.TempDir()
	c := &Case{Run: run, Dir: dir, Plan: p}
	c.Repo = NewRepo(t, filepath.Join(dir, "repo"), p.Files())
	c.Path = p.Write(t, filepath.Join(dir, "plan.yaml"))
	c.Before = c.Repo.Checkout(t)
	return c
}

// Start starts the case's run.
func (l *Lab) Start(t testing.TB, c *Case, more ...string) {
	t.Helper()
	l.Client.Start(t, c.Run, c.Repo.URL, c.Path, l.Pools, more...)
}

// Scene is the case's run in this lab, for [CheckInvariants].
func (l *Lab) Scene(c *Case) Scene {
	return Scene{Run: c.Run, Client: l.Client, Control: l.Control, Repo: c.Repo, Before: c.Before, States: []string{l.Host.State}}
}

// Worktrees lists what is left of a run's worktrees on the host.
func (l *Lab) Worktrees(run string) []string {
	var left []string
	for _, folder := range []string{"worktrees", "records", "throwaway"} {
		entries, err := os.ReadDir(filepath.Join(l.Host.State, folder, run))
		if err != nil {
			continue // it was never made, or is gone
		}
		for _, e := range entries {
			left = append(left, filepath.Join(folder, run, e.Name()))
		}
	}
	return left
}
