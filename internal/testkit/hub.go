package testkit

import (
	"net"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ServeHTTP serves a bare copy of the repository at dir over http by git's own
// backend, or over https with the certificate of the returned server.
func (r *Repo) ServeHTTP(t testing.TB, dir string, tls bool) (*Repo, *httptest.Server) {
	t.Helper()
	hub := r.Bare(t, dir)
	hub.Git(t, "config", "http.receivepack", "true")
	exec := hub.Git(t, "--exec-path")
	server := httptest.NewUnstartedServer(&cgi.Handler{
		Path: filepath.Join(exec, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		// The backend takes the version of the protocol from here.
		InheritEnv: []string{"HTTP_GIT_PROTOCOL"},
	})
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	hub.URL = server.URL + "/" + filepath.Base(dir)
	return hub, server
}

// ServeGit serves a bare copy of the repository at dir by git's daemon at an
// address of this machine, to anybody and for writing.
func (r *Repo) ServeGit(t testing.TB, dir, ip string, in ...string) *Repo {
	t.Helper()
	hub := r.Bare(t, dir)
	port := freePort(t)
	// Not by `git daemon`, which starts the daemon as a child that outlives its own end.
	home, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	args := append([]string{}, in...)
	args = append(args, filepath.Join(strings.TrimSpace(string(home)), "git-daemon"), "--export-all", "--enable=receive-pack", "--reuseaddr", "--verbose",
		"--listen="+ip, "--port="+port, "--base-path="+filepath.Dir(dir), filepath.Dir(dir))
	daemon, err := start("git daemon", filepath.Join(filepath.Dir(dir), "git-daemon.log"), exec.Command(args[0], args[1:]...))
	require.NoError(t, err)
	t.Cleanup(daemon.Kill)
	require.NoError(t, daemon.await(func(line []byte) bool { return strings.Contains(string(line), "Ready to rumble") }))
	hub.URL = "git://" + net.JoinHostPort(ip, port) + "/" + filepath.Base(dir)
	return hub
}

// freePort is a port that was free a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
