package gitrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Fingerprint is a digest of each part of a repository that a run must not change.
type Fingerprint struct {
	Head   string `json:"head"`
	Refs   string `json:"refs"`   // all but ours
	Index  string `json:"index"`  // its entries, not its time stamps
	Status string `json:"status"` // what is uncommitted, with content
	Config string `json:"config"`
	Hooks  string `json:"hooks"`
}

// Differs names the parts in which two fingerprints differ.
func (f Fingerprint) Differs(other Fingerprint) []string {
	var parts []string
	for _, p := range []struct{ name, a, b string }{
		{"head", f.Head, other.Head}, {"refs", f.Refs, other.Refs}, {"index", f.Index, other.Index},
		{"status", f.Status, other.Status}, {"config", f.Config, other.Config}, {"hooks", f.Hooks, other.Hooks},
	} {
		if p.a != p.b {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// HubFingerprint looks at a hub by path without changing it; a hub by URL has the zero fingerprint.
// Two of them around an attempt tell whether a worker (or the user) changed the checkout.
func (s *Store) HubFingerprint(ctx context.Context, hub Hub) (Fingerprint, error) {
	if hub.Path == "" {
		return Fingerprint{}, nil
	}
	f, err := s.fingerprint(ctx, hub)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint %s: %w", hub.Canonical, err)
	}
	return f, nil
}

func (s *Store) fingerprint(ctx context.Context, hub Hub) (Fingerprint, error) {
	var f Fingerprint
	head, err := os.ReadFile(filepath.Join(hub.TreeDir, "HEAD"))
	if err != nil {
		return f, err
	}
	f.Head = strings.TrimSpace(string(head))
	if f.Refs, err = foreignRefs(hub.GitDir); err != nil {
		return f, err
	}
	if f.Config, err = filesDigest(hub.GitDir, "config", "config.worktree", "info", "packed-refs.lock", "objects/info/alternates"); err != nil {
		return f, err
	}
	if f.Hooks, err = filesDigest(hub.GitDir, "hooks"); err != nil || hub.Bare {
		return f, err
	}
	checkout := command{dir: hub.Path, gitDir: hub.TreeDir, workTree: hub.Path}
	checkout.args = []string{"ls-files", "--stage", "-z"}
	res, err := s.git.run(ctx, checkout)
	if err != nil {
		return f, err
	}
	sum := sha256.Sum256(res.stdout)
	f.Index = hex.EncodeToString(sum[:])
	checkout.args = []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind", "--ignore-submodules=all"}
	if res, err = s.git.run(ctx, checkout); err != nil {
		return f, err
	}
	f.Status, err = contentDigest(hub.Path, parseStatus(res.stdout))
	return f, err
}

// foreignRefs is a digest of all refs but those that runs write.
func foreignRefs(gitDir string) (string, error) {
	refs, err := listRefs(gitDir, func(name string) bool {
		return !strings.HasPrefix(name, refRoot) && !strings.HasPrefix(name, branchPrefix)
	})
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range sortedKeys(refs) {
		fmt.Fprintf(sum, "%s %s\n", refs[name], name)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// filesDigest hashes files and folders with everything in them; absent ones count as empty.
func filesDigest(dir string, names ...string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			info, err := d.Info()
			if err != nil || !info.Mode().IsRegular() {
				fmt.Fprintf(sum, "%q other\n", rel)
				return nil //nolint:nilerr // it went away while we looked
			}
			content, err := os.ReadFile(p)
			fmt.Fprintf(sum, "%q %o %x\n", rel, info.Mode().Perm(), sha256.Sum256(content))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// MirrorFingerprint looks at what a worker has no business with in the mirror: configuration, hooks
// and the refs that are not ours. It is compared after each attempt and costs no process.
func (m *Mirror) MirrorFingerprint() (Fingerprint, error) {
	var f Fingerprint
	head, err := os.ReadFile(filepath.Join(m.dir, "HEAD"))
	if err == nil {
		f.Head = strings.TrimSpace(string(head))
		f.Refs, err = foreignRefs(m.dir)
	}
	if err == nil {
		f.Config, err = filesDigest(m.dir, "config", "config.worktree", "info", "objects/info/alternates")
	}
	if err == nil {
		f.Hooks, err = filesDigest(m.dir, "hooks")
	}
	if err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint mirror of %s: %w", m.hub.Canonical, err)
	}
	return f, nil
}
