package provider

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mendflow/internal/contract"
	"mendflow/internal/strictyaml"
)

// About describes the program of an adapter.
type About struct {
	// Agent says that the program is an agent, which must deliver a result; a
	// plain command may just exit 0.
	Agent bool
	// Attended says that nothing is launched: somebody claims nodes and works on them.
	Attended bool
	// Speaks is whose limit texts the program prints, in the classifier's words.
	Speaks string
	// Program is the name to look for in PATH; empty: the pool names it itself, or there is none.
	Program string
	// Tested is the version that the adapter was tested with; empty: none in particular.
	Tested string
	// Keys are variables that hold a key; one of them in the pool's `env` replaces a log-in.
	Keys []string
	// Login is a file below the program's home that a log-in leaves; empty: there is no log-in.
	Login string
	// HomeOption is the option that names the program's home, and Home where it is in the private home by default.
	HomeOption, Home string
	// PoolHomes gives each pool a home of its own below Home.
	PoolHomes bool
	// Options are what a pool's `options` may hold.
	Options []Option
}

// Option is a key of a pool's `options`.
type Option struct {
	Name string
	Help string
	// Own says that the option names or loosens what belongs to a host: the worker
	// that serves the pool decides it, whatever a run says.
	Own bool
	// Check refuses values; nil accepts all.
	Check func(value string) error
}

// Names of options that several adapters share.
const (
	OptionProgram = "program"
	OptionSteps   = "steps"
	OptionBaseURL = "base_url"
	OptionKey     = "key"
)

// DefaultSteps is how many model steps a launch may take unless its pool says otherwise.
const DefaultSteps = 200

// maxSteps is far beyond any useful session.
const maxSteps = 10000

// ProgramOption names another program than the default.
func ProgramOption() Option {
	return Option{Name: OptionProgram, Help: "path or name of the program", Own: true}
}

// StepsOption caps the model steps of a launch.
func StepsOption() Option {
	return Option{Name: OptionSteps, Help: "cap on model steps per launch", Check: func(value string) error {
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > maxSteps {
			return fmt.Errorf("%q is not a number from 1 to %d", value, maxSteps)
		}
		return nil
	}}
}

// BaseURLOption sends requests elsewhere.
func BaseURLOption() Option {
	return Option{Name: OptionBaseURL, Help: "address of the API", Check: func(value string) error {
		u, err := url.Parse(value)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("%q is not an http or https address", value)
		case u.User != nil:
			return fmt.Errorf("it holds a user or a password: name a variable in `env` instead")
		}
		return nil
	}}
}

// KeyOption names the variable that holds the key.
func KeyOption() Option {
	return Option{Name: OptionKey, Help: "name of the variable that holds the key; list it in `env` too"}
}

// OneOf accepts a few values.
func OneOf(values ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(values, value) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(values, ", "))
	}
}

// Folder accepts paths that begin with / or ~/.
func Folder(value string) error {
	if !filepath.IsAbs(value) && !strings.HasPrefix(value, "~/") {
		return fmt.Errorf("folder %q is relative: begin with / or ~/", value)
	}
	return nil
}

// CheckOptions returns what is wrong with a pool's options, one text for each,
// in the order of their names.
func CheckOptions(about About, pool contract.Pool) []string {
	var faults []string
	names := make([]string, 0, len(about.Options))
	for _, o := range about.Options {
		names = append(names, o.Name)
	}
	for name, value := range pool.Options {
		at := slices.Index(names, name)
		if at < 0 {
			remedy := fmt.Sprintf("provider %s knows %s", pool.Provider, strings.Join(names, ", "))
			if len(names) == 0 {
				remedy = fmt.Sprintf("provider %s knows none", pool.Provider)
			}
			if near, ok := strictyaml.Nearest(name, names); ok {
				remedy = strictyaml.DidYouMean(near)
			}
			faults = append(faults, fmt.Sprintf("pool %s: unknown option %q: %s", pool.ID, name, remedy))
			continue
		}
		if check := about.Options[at].Check; check != nil {
			if err := check(value); err != nil {
				faults = append(faults, fmt.Sprintf("pool %s: option %s: %v", pool.ID, name, err))
			}
		}
	}
	if key := pool.Options[OptionKey]; key != "" && !slices.Contains(pool.Env, key) {
		faults = append(faults, fmt.Sprintf("pool %s: option %s names %s, which is not in `env`: add it there", pool.ID, OptionKey, key))
	}
	slices.Sort(faults)
	return faults
}

// ProgramOf is the program of a pool: the option's, else the default.
func (a About) ProgramOf(pool contract.Pool) string {
	if program := pool.Options[OptionProgram]; program != "" {
		return Expand(program)
	}
	return a.Program
}

// OwnOptions are the names of the options that the worker alone decides.
func (a About) OwnOptions() []string {
	var own []string
	for _, o := range a.Options {
		if o.Own {
			own = append(own, o.Name)
		}
	}
	return own
}

// Key is the variable that holds the pool's key: the option's, else the first
// known one that the pool passes; empty means that a log-in is used.
func (a About) Key(pool contract.Pool) string {
	if key := pool.Options[OptionKey]; key != "" {
		return key
	}
	for _, key := range a.Keys {
		if slices.Contains(pool.Env, key) {
			return key
		}
	}
	return ""
}

// HomeOf is the program's own home, where it keeps its log-in and its sessions.
func (a About) HomeOf(pool contract.Pool, home string) string {
	if own := pool.Options[a.HomeOption]; a.HomeOption != "" && own != "" {
		return Expand(own)
	}
	if a.PoolHomes {
		return filepath.Join(home, a.Home, pool.ID)
	}
	return filepath.Join(home, a.Home)
}

// Steps is the cap on model steps of a launch.
func Steps(pool contract.Pool) int {
	if n, err := strconv.Atoi(pool.Options[OptionSteps]); err == nil && n > 0 {
		return n
	}
	return DefaultSteps
}

// Expand replaces a leading ~/ by the user's home.
func Expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// Uncertain is the usage of a launch that did not tell: a pool that is declared
// free is charged nothing, any other is uncertain.
func Uncertain(pool contract.Pool) contract.Usage { return contract.Usage{Known: pool.Cost.Free()} }

// Since is what a session used between two totals. Without knowing the first it
// is uncertain, unless the session began with this launch.
func Since(req Request, total contract.Usage) contract.Usage {
	switch {
	case !total.Known || req.Session != "" && !req.Before.Known:
		return Uncertain(req.Pool)
	case req.Session == "":
		return total
	}
	return contract.Usage{
		InputTokens:  max(0, total.InputTokens-req.Before.InputTokens),
		OutputTokens: max(0, total.OutputTokens-req.Before.OutputTokens),
		USDMicros:    max(0, total.USDMicros-req.Before.USDMicros),
		Known:        true,
	}
}
