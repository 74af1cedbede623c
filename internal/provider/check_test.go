package provider_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/provider"
	"mendflow/internal/provider/claude"
	"mendflow/internal/provider/codex"
	"mendflow/internal/provider/host"
	"mendflow/internal/provider/openai"
)

// machine is a machine with what a test puts on it.
type machine struct {
	programs map[string]string // what --version prints
	env      map[string]string
	files    []string
	locked   []string // of files: not writable
	open     bool     // without a sandbox
}

func (m machine) LookPath(program string) (string, error) {
	if _, ok := m.programs[program]; !ok {
		return "", errors.New("start " + program + ": program not found")
	}
	return "/bin/" + program, nil
}

func (m machine) Output(_ context.Context, argv ...string) (string, error) {
	out := m.programs[argv[0][len("/bin/"):]]
	if out == "broken" {
		return "", errors.New("exit status 1")
	}
	return out, nil
}

func (m machine) Getenv(name string) (string, bool) { v, ok := m.env[name]; return v, ok }
func (m machine) Exists(path string) bool           { return slices.Contains(m.files, path) }
func (m machine) Writable(path string) bool         { return !slices.Contains(m.locked, path) }
func (m machine) Home() string                      { return "/home/worker" }
func (m machine) Confined() bool                    { return !m.open }

func TestCheckTellsWhatAPoolLacksOnAMachine(t *testing.T) {
	t.Parallel()
	good := map[string]string{"claude": claude.Tested + " (Claude Code)", "codex": "codex-cli " + codex.Tested}
	key := map[string]string{"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x"}
	for _, c := range []struct {
		name    string
		adapter provider.Provider
		pool    contract.Pool
		machine machine
		want    []string // state and detail
	}{
		{"all there", claude.Provider{}, contract.Pool{Env: []string{"ANTHROPIC_API_KEY"}}, machine{programs: good, env: key},
			[]string{"ok /bin/claude, version " + claude.Tested, "ok key in ANTHROPIC_API_KEY"}},
		{"log-in", claude.Provider{}, contract.Pool{}, machine{programs: good, files: []string{"/home/worker/.claude/.credentials.json"}},
			[]string{"ok /bin/claude, version " + claude.Tested, "ok log-in in /home/worker/.claude/.credentials.json"}},
		{"locked folder, no sandbox", claude.Provider{}, contract.Pool{Env: []string{"ANTHROPIC_API_KEY"}, Writable: []string{"/x"}},
			machine{programs: good, env: key, files: []string{"/x"}, locked: []string{"/x"}, open: true},
			[]string{"ok /bin/claude, version " + claude.Tested, "ok key in ANTHROPIC_API_KEY", "error writable folder /x cannot be written to", "warning no sandbox holds it on this machine"}},
		{"a person", host.Provider{}, contract.Pool{}, machine{}, []string{"ok attended: nodes go there by `starter node claim`"}},
		{"no program", codex.Provider{}, contract.Pool{Env: []string{"OPENAI_API_KEY"}}, machine{env: key},
			[]string{"error start codex: program not found", "ok key in OPENAI_API_KEY"}},
		{"other version", codex.Provider{}, contract.Pool{Env: []string{"OPENAI_API_KEY"}}, machine{programs: map[string]string{"codex": "codex-cli 9.0.0"}, env: key},
			[]string{"warning /bin/codex has version 9.0.0", "ok key in OPENAI_API_KEY"}},
		{"no version", codex.Provider{}, contract.Pool{Env: []string{"OPENAI_API_KEY"}}, machine{programs: map[string]string{"codex": "?"}, env: key},
			[]string{"warning /bin/codex tells no version", "ok key in OPENAI_API_KEY"}},
		{"does not start", codex.Provider{}, contract.Pool{Env: []string{"OPENAI_API_KEY"}}, machine{programs: map[string]string{"codex": "broken"}, env: key},
			[]string{"error /bin/codex --version: exit status 1", "ok key in OPENAI_API_KEY"}},
		{"neither key nor log-in", codex.Provider{}, contract.Pool{}, machine{programs: good},
			[]string{"ok /bin/codex, version " + codex.Tested, "error there is neither a key nor a log-in (/home/worker/.codex/auth.json)"}},
		{"key not set", claude.Provider{}, contract.Pool{Env: []string{"ANTHROPIC_API_KEY"}}, machine{programs: good},
			[]string{"ok /bin/claude, version " + claude.Tested, "warning ANTHROPIC_API_KEY is not set here"}},
		{"own sandbox", codex.Provider{}, contract.Pool{Env: []string{"OPENAI_API_KEY"}, Options: map[string]string{"sandbox": "codex"}}, machine{programs: good, env: key},
			[]string{"ok /bin/codex, version " + codex.Tested, "ok key in OPENAI_API_KEY", "warning it runs in its own sandbox, not in Mendflow's"}},
		{"folder", claude.Provider{}, contract.Pool{Env: []string{"ANTHROPIC_API_KEY"}, Writable: []string{"/none"}}, machine{programs: good, env: key},
			[]string{"ok /bin/claude, version " + claude.Tested, "ok key in ANTHROPIC_API_KEY", "error writable folder /none is not there"}},
		{"no model", openai.Provider{}, contract.Pool{ID: "p", Options: map[string]string{"base_url": "http://127.0.0.1:1/v1"}}, machine{},
			[]string{"error build launch: pool p has no model: add `model:` to it"}},
		{"no key for the vendor", openai.Provider{}, contract.Pool{ID: "p", Model: "m"}, machine{}, []string{"error there is no key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, n := range provider.Check(t.Context(), c.adapter, c.pool, c.machine) {
				got = append(got, string(n.State)+" "+n.Detail)
				require.True(t, n.State == provider.StateOK || n.Remedy != "", n.Detail)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestOptionsAreCheckedByTheirProvider(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options map[string]string
		want    []string
	}{
		{map[string]string{"steps": "50", "base_url": "https://proxy.example/v1", "key": "OPENAI_API_KEY", "effort": "high", "home": "~/.codex", "sandbox": "mendflow"}, nil},
		{map[string]string{"step": "50"}, []string{`pool p: unknown option "step": did you mean "steps"?`}},
		{map[string]string{"zzz": "1", "steps": "many"}, []string{
			`pool p: option steps: "many" is not a number from 1 to 10000`,
			`pool p: unknown option "zzz": provider codex knows program, steps, base_url, key, home, sandbox, effort`,
		}},
		{map[string]string{"base_url": "ftp://x"}, []string{`pool p: option base_url: "ftp://x" is not an http or https address`}},
		{map[string]string{"base_url": "https://user:secret@x"}, []string{"pool p: option base_url: it holds a user or a password: name a variable in `env` instead"}},
		{map[string]string{"home": "codex"}, []string{`pool p: option home: folder "codex" is relative: begin with / or ~/`}},
		{map[string]string{"key": "OTHER"}, []string{"pool p: option key names OTHER, which is not in `env`: add it there"}},
		{map[string]string{"sandbox": "none"}, []string{`pool p: option sandbox: "none" is not one of mendflow, codex`}},
	} {
		pool := contract.Pool{ID: "p", Provider: contract.ProviderCodex, Env: []string{"OPENAI_API_KEY"}, Options: c.options}
		require.Equal(t, c.want, provider.CheckOptions(codex.Provider{}.About(), pool))
	}
}
