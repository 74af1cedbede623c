package gitrepo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// A Remote is where the result of a run is pushed. Make one with Mirror.Remote.
type Remote struct {
	URL string // without user and password in http(s) URLs; safe to show
	// header is an Authorization header for the URL; it reaches git by its environment, never by argv.
	header string
}

// Host is the name of the remote's machine in lower case; empty for a path.
func (r Remote) Host() string {
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		return strings.ToLower(u.Hostname())
	}
	if m := scpParts.FindStringSubmatch(r.URL); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

// Project is the path of the remote on its host, without .git.
func (r Remote) Project() string {
	var path string
	if u, err := url.Parse(r.URL); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	} else if m := scpParts.FindStringSubmatch(r.URL); m != nil {
		path = m[2]
	} else {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

var (
	scpParts   = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9_.-]+):([^:\\].*)$`)
	remoteName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// Remote resolves where to push: a remote of the hub by name, a URL or a path. Empty is the hub
// itself when it is given by URL, else its remote origin. ErrNotRepository: there is no such remote.
func (m *Mirror) Remote(ctx context.Context, text string) (Remote, error) {
	where := text
	switch {
	case text == "" && m.hub.URL != "":
		where = m.hub.URL
	case m.hub.URL == "" && (text == "" || remoteName.MatchString(text)):
		if text == "" {
			text = "origin"
		}
		res, err := m.store.git.run(ctx, command{
			args: []string{"remote", "get-url", "--push", "--", text}, dir: m.hub.GitDir, gitDir: m.hub.GitDir, ok: []int{2, 128},
		})
		if err != nil {
			return Remote{}, fmt.Errorf("look up remote %s of %s: %w", text, m.hub.Canonical, err)
		}
		if res.code != 0 {
			return Remote{}, fmt.Errorf("look up remote %s of %s: it has none: %w", text, m.hub.Canonical, ErrNotRepository)
		}
		where, _, _ = strings.Cut(res.text(), "\n")
	}
	if strings.HasPrefix(where, "-") || strings.ContainsAny(where, "\x00\n") {
		return Remote{}, fmt.Errorf("look up remote: %w", ErrNotRepository)
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		if !strings.Contains(where, "://") && !scpLike.MatchString(where) && !filepath.IsAbs(where) {
			where = filepath.Join(m.hub.Path, where)
		}
		return Remote{URL: where}, nil
	}
	r := Remote{}
	if password, has := u.User.Password(); has {
		r.header = basic(u.User.Username(), password)
	}
	u.User = nil
	r.URL = u.String()
	return r, nil
}

// WithToken logs in to an http(s) remote with a token. Other remotes stay as they are: ssh and paths have their own ways.
func (r Remote) WithToken(user, token string) Remote {
	if token != "" && strings.HasPrefix(r.URL, "http") {
		r.header = basic(user, token)
	}
	return r
}

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func (r Remote) config() []string {
	if r.header == "" {
		return nil
	}
	return []string{"http." + r.URL + ".extraHeader=" + r.header}
}

// A PushStatus says what became of a pushed branch.
type PushStatus string

// What became of a pushed branch.
const (
	Pushed        PushStatus = "pushed"
	PushedAlready PushStatus = "already"  // the remote's branch contains the commit
	PushDiverged  PushStatus = "diverged" // the remote's branch holds something else: it is left alone
)

// ErrPushRefused says that a remote took the connection and refused the branch.
var ErrPushRefused = errors.New("the remote refuses the branch")

// PushBranch makes a branch of the remote point at a commit of the mirror. What is there is looked up
// first; only a branch that is missing, or behind, is written, and only if it is still so. With look
// nothing is written: the status is empty then when a push is needed.
func (m *Mirror) PushBranch(ctx context.Context, to Remote, branch, commit string, look bool) (PushStatus, error) {
	name := "refs/heads/" + branch
	tip, status, err := m.lookAtBranch(ctx, to, name, commit)
	if err != nil || status != "" || look {
		return status, err
	}
	push := command{
		args: []string{"push", "--porcelain", "--quiet", "--no-verify", "--no-follow-tags", "--force-with-lease=" + name + ":" + tip,
			"--end-of-options", to.URL, commit + ":" + name},
		network: true, config: to.config(),
	}
	m.store.hook(PointPushing)
	res, err := m.run(ctx, push)
	m.store.hook(PointPushed)
	if err == nil {
		return Pushed, nil
	}
	// A push whose answer got lost is sent again below git (libcurl) and then refused: the branch is
	// there already. What is there decides, not what the last answer said.
	if _, status, lookErr := m.lookAtBranch(ctx, to, name, commit); lookErr == nil && status != "" {
		return status, nil
	}
	if exitCode(err) == 1 && strings.Contains("\n"+string(res.stdout), "\n!\t") {
		err = fmt.Errorf("%w: %s: %w", ErrPushRefused, refusal(res.stdout), err)
	}
	return "", fmt.Errorf("push branch %s to %s: %w", branch, to.URL, err)
}

// lookAtBranch tells where a remote's branch is, and what that means for a push; an empty status
// asks for one.
func (m *Mirror) lookAtBranch(ctx context.Context, to Remote, name, commit string) (tip string, status PushStatus, err error) {
	res, err := m.run(ctx, command{
		args: []string{"ls-remote", "--quiet", "--refs", "--end-of-options", to.URL, name}, network: true, config: to.config(),
	})
	if err != nil {
		return "", "", fmt.Errorf("look up %s at %s: %w", name, to.URL, err)
	}
	refs := map[string]string{}
	parseRemote(res.stdout, refs)
	if tip = refs[name]; tip == "" {
		return "", "", nil
	}
	behind, ahead, err := m.relate(ctx, to, name, tip, commit)
	switch {
	case err != nil:
		return tip, "", err
	case ahead:
		return tip, PushedAlready, nil
	case !behind:
		return tip, PushDiverged, nil
	}
	return tip, "", nil
}

// refusal is what a push says of the ref that was refused.
func refusal(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if parts := strings.Split(strings.TrimSpace(line), "\t"); len(parts) == 3 && parts[0] == "!" {
			return parts[2]
		}
	}
	return "it does not say why"
}

// relate tells how a remote's branch stands to a commit: behind it, or containing it.
func (m *Mirror) relate(ctx context.Context, to Remote, name, tip, commit string) (behind, ahead bool, err error) {
	if tip == commit {
		return false, true, nil
	}
	present, err := m.has(ctx, tip)
	if err != nil {
		return false, false, err
	}
	if !present {
		fetch := fetchObjects(to.URL, name)
		fetch.config = to.config()
		unlock, err := m.state.meta.lock(ctx)
		if err != nil {
			return false, false, err
		}
		_, err = m.run(ctx, fetch)
		unlock()
		if err != nil {
			return false, false, fmt.Errorf("fetch %s of %s: %w", name, to.URL, err)
		}
	}
	if behind, err = m.ancestor(ctx, tip, commit); err != nil || behind {
		return behind, false, err
	}
	ahead, err = m.ancestor(ctx, commit, tip)
	return false, ahead, err
}

// ancestor says whether one commit is contained in another.
func (m *Mirror) ancestor(ctx context.Context, older, newer string) (bool, error) {
	res, err := m.run(ctx, command{args: []string{"merge-base", "--is-ancestor", older, newer}, ok: []int{1}})
	if err != nil {
		return false, fmt.Errorf("compare %s with %s: %w", older, newer, err)
	}
	return res.code == 0, nil
}

// BranchNamed returns the branch of the hub that a revision names; empty: it names none. The empty
// revision is the default branch, and empty where HEAD is detached.
func (m *Mirror) BranchNamed(ctx context.Context, rev string) (string, error) {
	name := rev
	if rev == "" || rev == "HEAD" {
		var err error
		if name, err = m.defaultBranch(ctx); err != nil || name == "" {
			return "", err
		}
	}
	name = strings.TrimPrefix(name, "refs/heads/")
	refs, err := m.hubRefs(ctx, "refs/heads/"+name)
	if err != nil {
		return "", err
	}
	if refs["refs/heads/"+name] == "" {
		return "", nil
	}
	return name, nil
}

func (m *Mirror) defaultBranch(ctx context.Context) (string, error) {
	if m.hub.URL != "" {
		res, err := m.run(ctx, command{args: []string{"ls-remote", "--quiet", "--symref", "--end-of-options", m.hub.URL, "HEAD"}, network: true})
		if err != nil {
			return "", fmt.Errorf("read default branch of %s: %w", m.hub.Canonical, err)
		}
		target, ok := strings.CutPrefix(res.text(), "ref: ")
		if !ok {
			return "", nil
		}
		name, _, _ := strings.Cut(target, "\t")
		return name, nil
	}
	value, err := readRefValue(m.hub.TreeDir, "HEAD")
	if err != nil {
		return "", fmt.Errorf("read default branch of %s: %w", m.hub.Canonical, err)
	}
	target, ok := strings.CutPrefix(value, "ref:")
	if !ok {
		return "", nil
	}
	return strings.TrimSpace(target), nil
}
