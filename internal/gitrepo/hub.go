package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Hub is the repository that the user named. Exactly one of Path and URL is set.
type Hub struct {
	// Canonical identifies the hub: the real path of the main repository, or the URL without
	// credentials, query and trailing slash.
	Canonical string
	Path      string // top of the working tree, or the bare repository; symlinks resolved
	GitDir    string // with Path: the common git folder
	TreeDir   string // with Path: the git folder of this working tree; differs from GitDir in a linked one
	Bare      bool   // with Path: there is no working tree
	URL       string // what git is given; never holds a password
}

func (h Hub) remote() string {
	if h.URL != "" {
		return h.URL
	}
	return h.GitDir
}

// scpLike is git's short form of ssh URLs, user@host:path.
var scpLike = regexp.MustCompile(`^([A-Za-z0-9_.-]+@)?[A-Za-z0-9_.-]+:[^:\\]`)

// ResolveHub tells what repository the text names. A path must be the top of a repository; a URL
// is file, ssh, http(s), git or scp-like. A URL with a password is refused: it would travel through
// argv and records (use ssh or git.credential_helper).
func ResolveHub(ctx context.Context, repo string) (Hub, error) {
	if repo == "" || strings.HasPrefix(repo, "-") || strings.ContainsAny(repo, "\x00\n") {
		return Hub{}, fmt.Errorf("resolve repository %q: %w", repo, ErrNotRepository)
	}
	if strings.Contains(repo, "://") {
		return resolveURL(repo)
	}
	if _, err := os.Stat(repo); err != nil && scpLike.MatchString(repo) {
		return Hub{Canonical: strings.TrimSuffix(repo, "/"), URL: repo}, nil
	}
	return resolvePath(ctx, repo)
}

func resolveURL(repo string) (Hub, error) {
	u, err := url.Parse(repo)
	if err != nil {
		return Hub{}, fmt.Errorf("resolve repository: not a URL: %w", ErrNotRepository)
	}
	switch u.Scheme {
	case "file", "ssh", "http", "https", "git", "git+ssh", "ssh+git":
	default:
		return Hub{}, fmt.Errorf("resolve repository %s: scheme %q is not supported: %w", u.Redacted(), u.Scheme, ErrNotRepository)
	}
	if _, has := u.User.Password(); has {
		return Hub{}, fmt.Errorf("resolve repository %s: it holds a password; use ssh or git.credential_helper: %w", u.Redacted(), ErrNotRepository)
	}
	plain := *u
	plain.User, plain.RawQuery, plain.Fragment = nil, "", ""
	canonical := strings.TrimRight(plain.String(), "/")
	if u.Scheme == "file" {
		if real, err := filepath.EvalSymlinks(u.Path); err == nil {
			canonical = "file://" + real
		}
	}
	return Hub{Canonical: canonical, URL: repo}, nil
}

func resolvePath(ctx context.Context, repo string) (Hub, error) {
	real, err := filepath.Abs(repo)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return Hub{}, fmt.Errorf("resolve repository %s: %w: %w", repo, ErrNotRepository, err)
	}
	if filepath.Base(real) == ".git" {
		real = filepath.Dir(real)
	}
	git := newRunner(real, slog.New(slog.DiscardHandler))
	// The one place where git discovers: it checks the ownership, and nothing has run here yet.
	res, err := git.run(ctx, command{dir: real, args: []string{"rev-parse", "--path-format=absolute",
		"--is-bare-repository", "--git-common-dir", "--absolute-git-dir"}})
	if err != nil {
		if errors.Is(err, ErrDubiousOwnership) {
			return Hub{}, fmt.Errorf("resolve repository %s: %w", real, err)
		}
		return Hub{}, fmt.Errorf("resolve repository %s: %w", real, kindOr(err, insideOr(real)))
	}
	lines := strings.Split(res.text(), "\n")
	if len(lines) != 3 {
		return Hub{}, fmt.Errorf("resolve repository %s: %w", real, ErrNotRepository)
	}
	hub := Hub{Path: real, Bare: lines[0] == "true"}
	if hub.GitDir, err = filepath.EvalSymlinks(lines[1]); err != nil {
		return Hub{}, fmt.Errorf("resolve repository %s: %w", real, err)
	}
	hub.TreeDir = lines[2]
	if hub.Bare && hub.GitDir != real {
		return Hub{}, fmt.Errorf("resolve repository %s: %w", real, ErrInsideRepository)
	}
	hub.Canonical = hub.GitDir
	if filepath.Base(hub.GitDir) == ".git" {
		hub.Canonical = filepath.Dir(hub.GitDir)
	}
	return hub, nil
}

// insideOr tells a folder below a repository from one that has none; the ceiling of the first
// look-up kept git from climbing.
func insideOr(dir string) error {
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		if _, err := os.Lstat(filepath.Join(parent, ".git")); err == nil {
			return ErrInsideRepository
		}
		if parent == filepath.Dir(parent) {
			return ErrNotRepository
		}
	}
}

// kindOr joins an error with the kind that it stands for, unless it already says so.
func kindOr(err, kind error) error {
	if errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}
