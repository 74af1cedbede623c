package provider

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mendflow/internal/contract"
)

// State is how a check came out.
type State string

// States of a check.
const (
	StateOK      State = "ok"
	StateWarning State = "warning"
	StateError   State = "error"
)

// Note is one thing that a check found.
type Note struct {
	State  State
	Detail string
	Remedy string // empty: there is nothing to do
}

// Machine is what a check looks at.
type Machine interface {
	// LookPath finds a program.
	LookPath(program string) (path string, err error)
	// Output runs a program, in the sandbox if there is one, and returns its stdout.
	Output(ctx context.Context, argv ...string) (string, error)
	// Getenv reads a variable of the worker's environment.
	Getenv(name string) (value string, ok bool)
	// Exists reports whether a file or folder is there.
	Exists(path string) bool
	// Writable reports whether files can be made in a folder that is there.
	Writable(folder string) bool
	// Home is the private home of workers.
	Home() string
	// Confined reports whether the host has a sandbox.
	Confined() bool
}

// Check looks, without a request that could cost anything, whether attempts of a
// pool can work on a machine: options, program, version, key or log-in, folders.
// There is at least one note.
func Check(ctx context.Context, adapter Provider, pool contract.Pool, m Machine) []Note {
	about := adapter.About()
	var notes []Note
	for _, fault := range CheckOptions(about, pool) {
		notes = append(notes, Note{StateError, fault, "correct the pools file"})
	}
	if about.Attended {
		return append(notes, Note{State: StateOK, Detail: "attended: nodes go there by `starter node claim`"})
	}
	notes = append(notes, checkProgram(ctx, about, pool, m)...)
	notes = append(notes, checkAccess(about, pool, m)...)
	return append(notes, checkLaunch(adapter, pool, m)...)
}

// version finds the version in what `--version` prints.
var version = regexp.MustCompile(`\d+\.\d+\.\d+[0-9A-Za-z.+-]*`)

func checkProgram(ctx context.Context, about About, pool contract.Pool, m Machine) []Note {
	program := about.ProgramOf(pool)
	if program == "" {
		return nil
	}
	path, err := m.LookPath(program)
	if err != nil {
		return []Note{{StateError, err.Error(), "install it, or name it in the pool's option `" + OptionProgram + "`"}}
	}
	out, err := m.Output(ctx, path, "--version")
	if err != nil {
		return []Note{{StateError, fmt.Sprintf("%s --version: %v", path, err), "run it by hand: it must start in the sandbox of this machine"}}
	}
	switch found := version.FindString(out); found {
	case about.Tested:
		return []Note{{State: StateOK, Detail: fmt.Sprintf("%s, version %s", path, found)}}
	case "":
		return []Note{{StateWarning, fmt.Sprintf("%s tells no version", path), "tested with version " + about.Tested}}
	default:
		return []Note{{StateWarning, fmt.Sprintf("%s has version %s", path, found), "tested with version " + about.Tested + ": look at the first attempts' logs"}}
	}
}

// checkAccess looks for a key, else for a log-in.
func checkAccess(about About, pool contract.Pool, m Machine) []Note {
	key := about.Key(pool)
	switch {
	case key != "":
		if value, ok := m.Getenv(key); !ok || value == "" {
			return []Note{{StateWarning, key + " is not set here", "set it in the environment of the worker that serves the pool"}}
		}
		return []Note{{State: StateOK, Detail: "key in " + key}}
	case pool.Options[OptionBaseURL] != "":
		return nil // a server of one's own may want none
	case about.Login != "":
		file := filepath.Join(about.HomeOf(pool, m.Home()), about.Login)
		if m.Exists(file) {
			return []Note{{State: StateOK, Detail: "log-in in " + file}}
		}
		return []Note{{StateError, "there is neither a key nor a log-in (" + file + ")",
			"list one of " + strings.Join(about.Keys, ", ") + " in the pool's `env`" + loginRemedy(about)}}
	case len(about.Keys) > 0:
		return []Note{{StateError, "there is no key", "list one of " + strings.Join(about.Keys, ", ") + " in the pool's `env`"}}
	}
	return nil
}

func loginRemedy(about About) string {
	if about.HomeOption == "" {
		return ""
	}
	return ", or log in by hand and name the folder in the option `" + about.HomeOption + "`"
}

// checkLaunch builds a launch and looks at what it needs.
func checkLaunch(adapter Provider, pool contract.Pool, m Machine) []Note {
	home := m.Home()
	built, err := adapter.Build(Request{
		Pool: pool, Node: "doctor", Prompt: "none", Home: home, Worktree: home, Folder: home, Confined: m.Confined(),
	})
	if err != nil {
		return []Note{{StateError, err.Error(), "correct the pools file"}}
	}
	var notes []Note
	for _, folder := range append(slices.Clone(pool.Writable), built.Writable...) {
		switch folder = Expand(folder); {
		case !m.Exists(folder) && !slices.Contains(built.Folders, folder):
			notes = append(notes, Note{StateError, "writable folder " + folder + " is not there", "make it, or take it out of the pools file"})
		case m.Exists(folder) && !m.Writable(folder):
			notes = append(notes, Note{StateError, "writable folder " + folder + " cannot be written to", "change its owner or mode, or run the worker as another user"})
		}
	}
	if !m.Confined() && !built.OwnSandbox {
		notes = append(notes, Note{StateWarning, "no sandbox holds it on this machine",
			"what it changes elsewhere is noticed afterwards only (friction `escaped`): use a Linux with Landlock"})
	}
	if built.OwnSandbox {
		notes = append(notes, Note{StateWarning, "it runs in its own sandbox, not in Mendflow's",
			"what it changes elsewhere is noticed afterwards only (friction `escaped`)"})
	}
	return notes
}
