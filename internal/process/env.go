package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Environment builds the environment of a program from an allow-list. Nothing
// of the host's environment gets in that is not named here or in Pass.
type Environment struct {
	// Host is the environment to take values from, as os.Environ returns it.
	Host []string
	// HostHome is the home folder of the user that Mendflow runs as. Tool chains
	// installed there stay usable (read-only in a sandbox). Empty means unknown.
	HostHome string
	// Home is the program's private home folder, with the caches of its tools;
	// Temp its folder for temporary files. Both are required.
	Home, Temp string
	// Pass are names of host variables that the program gets if they are set: the
	// provider's key, proxies, a licence server.
	Pass []string
	// Set are variables with their values. They win over all others.
	Set map[string]string
}

// passed are host variables that every program gets: where tools are, and how
// to reach the network. Registries and proxies are the operator's settings; a
// login inside a proxy's URL is masked in output by its look (package redact).
var passed = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOTOOLCHAIN", "GOROOT",
	"JAVA_HOME", "DOTNET_ROOT", "ANDROID_HOME", "VOLTA_HOME", "NVM_DIR", "ASDF_DIR", "ASDF_DATA_DIR",
}

// toolHomes are the folders in a user's home where version managers keep tool
// chains, by the variable that names them.
var toolHomes = []struct{ name, folder string }{
	{"RUSTUP_HOME", ".rustup"},
	{"PYENV_ROOT", ".pyenv"},
	{"RBENV_ROOT", ".rbenv"},
}

// neverPassed says why a host variable may not be passed on whatever Pass says:
// access to the server, and variables that redirect git.
func neverPassed(name string) string {
	switch {
	case strings.HasPrefix(name, "TEMPORAL_"):
		return "it gives access to the Temporal server"
	case strings.HasPrefix(name, "GIT_"):
		return "it redirects git"
	case strings.HasPrefix(name, "MENDFLOW_"):
		return "it belongs to Mendflow itself"
	case strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_"):
		return "it changes which code programs load"
	}
	return ""
}

// CheckPass returns an error if a variable may not be passed to programs.
func CheckPass(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("pass variable %q: not a name", name)
	}
	if why := neverPassed(name); why != "" {
		return fmt.Errorf("pass variable %s: %s", name, why)
	}
	return nil
}

// Build returns the environment, sorted by name.
func (e Environment) Build() ([]string, error) {
	if !filepath.IsAbs(e.Home) || !filepath.IsAbs(e.Temp) {
		return nil, fmt.Errorf("build environment: home %q and temporary folder %q must be absolute", e.Home, e.Temp)
	}
	values := map[string]string{"LANG": "C.UTF-8"}
	for _, name := range e.Pass {
		if err := CheckPass(name); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Concat(passed, e.Pass) {
		if value := lookup(e.Host, name); value != "" {
			values[name] = value
		}
	}
	e.tools(values)
	values["HOME"], values["TMPDIR"] = e.Home, e.Temp
	values["TZ"] = "UTC" // programs print times without a zone
	for name, value := range e.Set {
		if strings.ContainsAny(name, "=\x00") || name == "" || strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("build environment: variable %q is not NAME=value", name)
		}
		values[name] = value
	}
	env := make([]string, 0, len(values))
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, nil
}

// tools makes what is installed in the host's home usable from the private one.
func (e Environment) tools(values map[string]string) {
	for _, t := range toolHomes {
		folder := lookup(e.Host, t.name)
		if folder == "" && e.HostHome != "" {
			folder = filepath.Join(e.HostHome, t.folder)
		}
		if info, err := os.Stat(folder); folder != "" && err == nil && info.IsDir() {
			values[t.name] = folder
		}
	}
	if downloads := e.goDownloads(); downloads != "" {
		proxy := lookup(e.Host, "GOPROXY")
		if proxy == "" {
			proxy = "https://proxy.golang.org,direct"
		}
		values["GOPROXY"] = "file://" + downloads + "," + proxy
	}
	// A cargo home holds both programs and a registry cache that is written to:
	// the private one, while PATH leads to the programs.
	values["CARGO_HOME"] = filepath.Join(e.Home, ".cargo")
}

// goDownloads is the part of the host's Go module cache that can serve as a
// module proxy, so that a private module cache is filled without the network.
func (e Environment) goDownloads() string {
	cache := lookup(e.Host, "GOMODCACHE")
	if cache == "" && e.HostHome != "" {
		cache = filepath.Join(e.HostHome, "go", "pkg", "mod")
	}
	downloads := filepath.Join(cache, "cache", "download")
	if info, err := os.Stat(downloads); !filepath.IsAbs(downloads) || err != nil || !info.IsDir() || strings.ContainsAny(downloads, ",|% ") {
		return ""
	}
	return downloads
}

// Inside returns the mark of the attempt that this process runs in, if any.
// Mendflow's own commands refuse to run there.
func Inside() (mark string, ok bool) {
	return os.LookupEnv(MarkVariable)
}
