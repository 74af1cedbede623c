// Package forgeserver stands in for GitHub and GitLab in tests: the few calls that
// a publication makes, and git over HTTP on real repositories. It answers as the
// services document, and fails as a test says: it can do a thing and lose the
// answer, refuse for a limit, break like a gateway, or say nothing at all.
package forgeserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Token is the one that the server takes.
const Token = "forge-token-7d1f0c2e9b"

// Project is the project that the server has.
const Project = "acme/shop"

// Calls that can fail.
const (
	OpFind = "find" // list pull requests
	OpOpen = "open" // open one
	OpPush = "push" // git push
	OpRefs = "refs" // git ls-remote, and the first half of a push
)

// How a call fails.
const (
	Lose      = "lose"       // do it, then close the connection without an answer
	Merge     = "merge"      // open: do it, merge it, delete the branch, then close the connection
	Drop      = "drop"       // close the connection at once
	Hang      = "hang"       // say nothing until the caller goes away
	HangAfter = "hang-after" // do it, then say nothing until the caller goes away
	Garbage   = "garbage"    // do it, answer with half an object
	Bad502    = "502"        // like a gateway, with nothing done
	After502  = "502-after"  // do it, then answer like a gateway
	Limit429  = "429"        // too many requests, Retry-After: 1
	Secondary = "secondary"  // GitHub's secondary limit: 403, Retry-After: 1
	Forbid    = "403"        // no permission
	Invalid   = "422"        // validation failed
)

// Fault is how the next call of a kind fails.
type Fault struct{ Op, How string }

// Request is a pull request that was opened.
type Request struct {
	Number           int
	Head, Into       string
	Title, Body      string
	Draft            bool
	State            string // open | merged | closed
	HeadSHA          string
	SourceBranchGone bool
}

// Server is the stand-in. Its project's repository is a bare one on disk.
type Server struct {
	URL  string
	Repo string // folder of the bare repository
	// Reached is called when a call arrives, before anything is done; nil: nothing.
	Reached func(op string)

	t    testing.TB
	root string

	mu       sync.Mutex
	faults   []Fault
	requests []*Request
	calls    map[string]int
}

// New starts a server whose project is a bare copy of a repository; it ends with the test.
func New(t testing.TB, source string) *Server {
	t.Helper()
	s := &Server{t: t, root: t.TempDir(), calls: map[string]int{}}
	s.Repo = filepath.Join(s.root, Project+".git")
	require.NoError(t, os.MkdirAll(filepath.Dir(s.Repo), 0o755))
	s.git(t, s.root, "clone", "-q", "--bare", source, s.Repo)
	s.git(t, s.Repo, "config", "http.receivepack", "true")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/repos/"+Project+"/pulls", s.api(OpFind, bearer, s.findGitHub))
	mux.HandleFunc("POST /api/v3/repos/"+Project+"/pulls", s.api(OpOpen, bearer, s.openGitHub))
	mux.HandleFunc("GET /api/v4/projects/{project}/merge_requests", s.api(OpFind, private, s.findGitLab))
	mux.HandleFunc("POST /api/v4/projects/{project}/merge_requests", s.api(OpOpen, private, s.openGitLab))
	mux.HandleFunc("/"+Project+".git/", s.serveGit)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Remote is the project's address for git.
func (s *Server) Remote() string { return s.URL + "/" + Project + ".git" }

// GitHub and GitLab are the base URLs of the two APIs.
func (s *Server) GitHub() string { return s.URL + "/api/v3" }

// GitLab is the base URL of the API of GitLab.
func (s *Server) GitLab() string { return s.URL + "/api/v4" }

// Fail lets calls fail, each fault once, in this order per kind of call.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Add puts a request there that somebody else opened.
func (s *Server) Add(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Number = len(s.requests) + 1
	s.requests = append(s.requests, &r)
}

// Requests lists what was opened.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Request
	for _, r := range s.requests {
		all = append(all, *r)
	}
	return all
}

// Calls counts the calls of a kind that arrived.
func (s *Server) Calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// Left lists faults that no call has met.
func (s *Server) Left() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

// Branches lists the project's branches and their commits.
func (s *Server) Branches(t testing.TB) map[string]string {
	t.Helper()
	branches := map[string]string{}
	for line := range strings.Lines(s.git(t, s.Repo, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")) {
		name, oid, _ := strings.Cut(strings.TrimSpace(line), " ")
		branches[name] = oid
	}
	return branches
}

func (s *Server) git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := s.tryGit(dir, args...)
	require.NoError(t, err)
	return out
}

func (s *Server) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Forge", "GIT_AUTHOR_EMAIL=forge@example.com", "GIT_COMMITTER_NAME=Forge", "GIT_COMMITTER_EMAIL=forge@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// fault counts a call and takes the next fault of its kind.
func (s *Server) fault(op string) string {
	if s.Reached != nil {
		s.Reached(op)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[op]++
	for i, f := range s.faults {
		if f.Op == op {
			s.faults = slices.Delete(s.faults, i, i+1)
			return f.How
		}
	}
	return ""
}

func bearer(r *http.Request) bool  { return r.Header.Get("Authorization") == "Bearer "+Token }
func private(r *http.Request) bool { return r.Header.Get("Private-Token") == Token }

// api wraps a call: who may, and how it fails.
func (s *Server) api(op string, may func(*http.Request) bool, do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !may(r) {
			answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		s.fail(w, r, s.fault(op), do)
	}
}

// fail answers a call as a fault says.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, how string, do http.HandlerFunc) {
	if how == Hang {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its caller went away
	}
	switch how {
	case Lose, Merge, HangAfter, Garbage, After502:
		rec := httptest.NewRecorder()
		do(rec, r)
		if how == Merge {
			s.mergeLast()
		}
		after(w, r, how, rec)
	case Drop:
		hangUp()
	case Hang:
		<-r.Context().Done()
	case Bad502:
		gateway(w)
	case Limit429:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, map[string]any{"message": "slow down"})
	case Secondary:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusForbidden, map[string]any{
			"message":           "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
			"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
		})
	case Forbid:
		answer(w, http.StatusForbidden, map[string]any{"message": "Resource not accessible by personal access token"})
	case Invalid:
		answer(w, http.StatusUnprocessableEntity, map[string]any{
			"message": "Validation Failed", "errors": []map[string]any{{"resource": "PullRequest", "field": "base", "code": "invalid"}},
		})
	default:
		do(w, r)
	}
}

// after spoils the answer of a call that was done.
func after(w http.ResponseWriter, r *http.Request, how string, rec *httptest.ResponseRecorder) {
	switch how {
	case HangAfter:
		<-r.Context().Done()
	case Garbage:
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	case After502:
		gateway(w)
	default:
		hangUp()
	}
}

// hangUp ends the connection without an answer.
func hangUp() { panic(http.ErrAbortHandler) }

func gateway(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte("<html><body><h1>502 Bad Gateway</h1></body></html>"))
}

func answer(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// serveGit is git's own server side, with a password for pushes.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	service := r.URL.Query().Get("service")
	push := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || service == "git-receive-pack"
	if _, password, _ := r.BasicAuth(); push && password != Token {
		w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	exec, err := exec.LookPath("git")
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	backend := &cgi.Handler{
		Path: exec, Args: []string{"http-backend"}, Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
	}
	op := ""
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		op = OpRefs
	case push:
		op = OpPush
	}
	if op == "" {
		backend.ServeHTTP(w, r)
		return
	}
	s.fail(w, r, s.fault(op), backend.ServeHTTP)
}
