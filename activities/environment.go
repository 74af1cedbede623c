package activities

import (
	"path/filepath"
)

// passed are the variables of the host that every program of a run gets: where
// programs and packages come from, never who we are. No TEMPORAL_*, no GIT_*,
// nothing that holds a secret by habit.
var passed = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GOPROXY", "GOPRIVATE", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "GOROOT",
	"NPM_CONFIG_REGISTRY", "npm_config_registry", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL", "RUSTUP_HOME",
	"JAVA_HOME",
}

// home is a private home of the host's programs: one for workers, another for
// what we check with, so that a worker cannot poison a cached result.
func (h *Host) home(checks bool) string {
	if checks {
		return filepath.Join(h.StateDir, "home", "check")
	}
	return filepath.Join(h.StateDir, "home", "worker")
}

// environment is what a program sees: an allow-list and the names that the plan or the pool passes through.
func (h *Host) environment(names []string, checks bool) []string {
	home := h.home(checks)
	env := []string{
		"HOME=" + home,
		"XDG_CACHE_HOME=" + filepath.Join(home, ".cache"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"TZ=UTC",
		"GIT_TERMINAL_PROMPT=0",
	}
	for _, list := range [][]string{passed, names} {
		for _, name := range list {
			if v, ok := h.Lookup(name); ok {
				env = append(env, name+"="+v)
			}
		}
	}
	return env
}

func oneLine(text string) string { return clip(foldSpace(text), 500) }
