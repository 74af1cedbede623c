package startercmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sys/unix"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/workercmd"
)

// checkPools looks, for every pool, at its program and access here and for a
// worker that serves it.
func (a *app) checkPools(ctx context.Context, c client.Client, path string) []check {
	file, err := a.readPools(path)
	if err != nil {
		return []check{{"pools", checkError, "the pools file is not valid: " + err.Error(), "see the faults above"}}
	}
	state, err := a.state()
	if err != nil {
		return []check{{"pools", checkError, err.Error(), "give --state-dir a writable folder"}}
	}
	var checks []check
	for _, p := range file.Pools {
		checks = append(checks, checkProvider(ctx, p, machine{home: activities.WorkerHome(state)})...)
		checks = append(checks, checkServed(ctx, c, p))
	}
	return checks
}

// checkProvider asks the pool's adapter what it needs on this machine.
func checkProvider(ctx context.Context, p contract.Pool, m machine) []check {
	name := "pool " + p.ID
	var checks []check
	if p.Command != nil && len(p.Command.Argv) > 0 {
		found, err := m.LookPath(p.Command.Argv[0])
		if err != nil {
			return []check{{name, checkError, err.Error(), "install it, or correct `command` in the pools file"}}
		}
		checks = append(checks, check{name, checkOK, found, ""})
	}
	for _, variable := range p.Env {
		if _, ok := m.Getenv(variable); !ok {
			checks = append(checks, check{name, checkWarning, variable + " is not set here", "set it in the environment of the worker that serves the pool"})
		}
	}
	adapter, err := workercmd.Providers().Lookup(p.Provider)
	if err != nil {
		return append(checks, check{name, checkError, err.Error(), "correct `provider` in the pools file"})
	}
	for _, n := range provider.Check(ctx, adapter, p, m) {
		if c := (check{name, string(n.State), n.Detail, n.Remedy}); !slices.Contains(checks, c) {
			checks = append(checks, c)
		}
	}
	return checks
}

func checkServed(ctx context.Context, c client.Client, p contract.Pool) check {
	name := "pool " + p.ID
	if c == nil {
		return check{name, checkWarning, string(p.Provider) + ": no server to ask for workers", "see the line of the server"}
	}
	described, err := c.DescribeTaskQueue(ctx, contract.PoolQueue(p.ID), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil || len(described.GetPollers()) == 0 {
		return check{name, checkError, string(p.Provider) + ": no worker serves it", "start one with `worker --pools FILE`"}
	}
	return check{name, checkOK, string(p.Provider) + ", served", ""}
}

// machine is this machine, for provider.Check.
type machine struct{ home string }

var _ provider.Machine = machine{}

func (m machine) environment() ([]string, error) {
	userHome, err := os.UserHomeDir()
	if err != nil {
		userHome = ""
	}
	return process.Environment{Host: os.Environ(), HostHome: userHome, Home: m.home, Temp: m.temp()}.Build()
}

func (m machine) temp() string { return filepath.Join(m.home, "tmp") }

// LookPath finds a program as a launch would.
func (m machine) LookPath(program string) (string, error) {
	return process.LookPath(program, os.TempDir(), os.Environ())
}

// versionTime bounds a program that is only to tell its version.
const versionTime = 2 * time.Minute

// Output runs a program as a launch would: in the sandbox, with the private home.
func (m machine) Output(ctx context.Context, argv ...string) (string, error) {
	if err := os.MkdirAll(m.temp(), 0o700); err != nil {
		return "", fmt.Errorf("make home of workers: %w", err)
	}
	env, err := m.environment()
	if err != nil {
		return "", err
	}
	spec := process.Spec{Argv: argv, Dir: m.home, Env: env, Mark: "doctor", Absolute: versionTime}
	if m.Confined() {
		spec.Sandbox = &process.Sandbox{Writable: []string{m.home}}
	}
	result, err := process.Run(ctx, spec)
	if err != nil {
		return "", err
	}
	if !result.Succeeded() {
		return "", fmt.Errorf("%s: %s", result, strings.Join(result.LastStderrLines, "; "))
	}
	return result.StdoutTail, nil
}

// Getenv reads this process's environment.
func (machine) Getenv(name string) (string, bool) { return os.LookupEnv(name) }

// Exists reports whether something is there.
func (machine) Exists(path string) bool { _, err := os.Stat(path); return err == nil }

// Writable reports whether files can be made in a folder.
func (machine) Writable(folder string) bool { return unix.Access(folder, unix.W_OK|unix.X_OK) == nil }

// Home is the private home of workers.
func (m machine) Home() string { return m.home }

// Confined reports whether there is a sandbox.
func (machine) Confined() bool { _, err := process.SandboxAvailable(); return err == nil }
