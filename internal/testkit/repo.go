package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Repo is a git repository of a test's user.
type Repo struct {
	Dir string // working tree; of a bare repository the repository itself
	URL string // what a plan is started on; a path unless the test says otherwise
}

// NewRepo makes a repository at dir with the files, all in one commit on main.
func NewRepo(t testing.TB, dir string, files map[string]string) *Repo {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	r := &Repo{Dir: dir, URL: dir}
	r.Git(t, "init", "-q", "-b", "main")
	r.Git(t, "add", "-A")
	r.Git(t, "commit", "-q", "--allow-empty", "-m", "Base")
	return r
}

// Bare makes a bare copy of the repository at dir, known by a file:// URL.
func (r *Repo) Bare(t testing.TB, dir string) *Repo {
	t.Helper()
	r.Git(t, "clone", "-q", "--bare", r.Dir, dir)
	return &Repo{Dir: dir, URL: "file://" + dir}
}

// Git runs git in the repository and returns its output without the last newline.
func (r *Repo) Git(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.TryGit(args...)
	require.NoError(t, err)
	return out
}

// TryGit is Git with an error.
func (r *Repo) TryGit(args ...string) (string, error) { return git(r.Dir, args...) }

// git runs git in a folder as a user whose configuration is fixed.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnviron(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=User", "GIT_AUTHOR_EMAIL=user@example.com",
		"GIT_COMMITTER_NAME=User", "GIT_COMMITTER_EMAIL=user@example.com")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errOut.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// gitDir is the repository of a working tree, or the folder itself when it is bare.
func (r *Repo) gitDir() string {
	if info, err := os.Stat(filepath.Join(r.Dir, ".git")); err == nil && info.IsDir() {
		return filepath.Join(r.Dir, ".git")
	}
	return r.Dir
}

// Checkout is what a run may not change of a user's repository: path to digest.
type Checkout map[string]string

// Checkout records the working tree (content and modes), and of the repository
// everything but objects and Mendflow's own refs: index, HEAD, config, hooks,
// other refs, and whatever else a git command would leave behind.
func (r *Repo) Checkout(t testing.TB) Checkout {
	t.Helper()
	c := Checkout{}
	gitDir := r.gitDir()
	if gitDir != r.Dir {
		c.add(t, r.Dir, "tree", func(rel string) bool { return rel == ".git" })
	}
	c.add(t, gitDir, "git", func(rel string) bool {
		switch rel {
		case "objects", "packed-refs", "refs", "logs":
			return true
		}
		return false
	})
	for _, line := range strings.Split(r.Git(t, "for-each-ref", "--format=%(refname) %(objectname) %(symref)"), "\n") {
		name, rest, _ := strings.Cut(line, " ")
		if name != "" && !ownRef(name) {
			c["ref/"+name] = rest
		}
	}
	return c
}

// ownRef reports whether a ref is one that a run may make.
func ownRef(name string) bool {
	return strings.HasPrefix(name, "refs/mendflow/") || strings.HasPrefix(name, "refs/heads/mendflow/")
}

func (c Checkout) add(t testing.TB, root, prefix string, skip func(rel string) bool) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		if skip(rel) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		digest, err := digest(path, entry)
		c[prefix+"/"+rel] = digest
		return err
	})
	require.NoError(t, err)
}

// digest tells a file's kind, mode and content.
func digest(path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	switch {
	case entry.IsDir():
		return info.Mode().String(), nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return "-> " + target, err
	case !info.Mode().IsRegular():
		return info.Mode().String(), nil
	}
	data, err := os.ReadFile(path)
	sum := sha256.Sum256(data)
	return info.Mode().String() + " " + hex.EncodeToString(sum[:]), err
}

// Check fails the test with every difference to a later look.
func (c Checkout) Check(t testing.TB, now Checkout) {
	t.Helper()
	for _, difference := range c.differences(now) {
		t.Errorf("the user's repository changed: %s", difference)
	}
}

func (c Checkout) differences(now Checkout) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		switch after, ok := now[name]; {
		case !ok:
			found = append(found, name+" is gone")
		case after != c[name]:
			found = append(found, fmt.Sprintf("%s was %s, is %s", name, c[name], after))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := c[name]; !ok {
			found = append(found, name+" is new")
		}
	}
	return found
}
