package gitrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// adminID names a slot's metadata folder in the mirror: readable, lower case, without collisions.
func adminID(k slot) string {
	text := strings.Join(k.elems(), "/")
	if k.throwaway != "" {
		text = "throwaway/" + text
	}
	sum := sha256.Sum256([]byte(text))
	name := k.node
	if name == "" {
		name = k.throwaway
	}
	return fmt.Sprintf("%s-%d-%s", strings.ToLower(name), k.number, hex.EncodeToString(sum[:8]))
}

// index is our own index of the tree. The one that git finds in the metadata folder is a copy for
// the worker's commands; what a worker does to it does not reach us.
func (w *Worktree) index() string { return filepath.Join(w.rec.Admin, "mendflow-index") }

func (w *Worktree) workerIndex() string { return filepath.Join(w.rec.Admin, "index") }

func (w *Worktree) dotGit() string { return "gitdir: " + w.rec.Admin + "\n" }

// writeAdmin registers the tree in the mirror as `git worktree add --detach --no-checkout --lock`
// does (gitrepository-layout(5)), in one rename and without its three processes. Callers hold the
// mirror's lock.
func (w *Worktree) writeAdmin() error {
	root := filepath.Dir(w.rec.Admin)
	if err := os.MkdirAll(root, 0o777); err != nil {
		return err
	}
	// Not below worktrees/: git would list it.
	tmp, err := os.MkdirTemp(w.mirror.store.path(trashDir), "admin-")
	if err != nil {
		return err
	}
	if err := w.fillAdmin(tmp); err != nil {
		return errors.Join(fmt.Errorf("register worktree: %w", err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, w.rec.Admin); err != nil {
		return errors.Join(fmt.Errorf("register worktree: %w", err), os.RemoveAll(tmp))
	}
	return w.writeDotGit()
}

func (w *Worktree) fillAdmin(dir string) error {
	files := [][2]string{
		{"HEAD", w.rec.Base + "\n"},
		{"commondir", "../..\n"},
		{"gitdir", filepath.Join(w.rec.Tree, ".git") + "\n"},
		{"locked", w.lockReason() + "\n"},
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o600); err != nil {
			return err
		}
	}
	if len(w.rec.Sparse) == 0 {
		return nil
	}
	if err := os.Mkdir(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "info", "sparse-checkout"), []byte(strings.Join(w.rec.Sparse, "\n")+"\n"), 0o600)
}

// lockReason keeps git and people from removing the tree, and tells whose it is.
func (w *Worktree) lockReason() string {
	return fmt.Sprintf(lockMark+"%s %s", strings.Join(w.slot.elems(), "/"), w.mirror.store.owner)
}

// oursByReason says that a lock reason was written by this host.
func (s *Store) oursByReason(reason string) bool {
	return strings.HasPrefix(reason, lockMark) && slices.Contains(strings.Fields(reason), "host="+url.QueryEscape(s.settings.HostID))
}

// lockMark starts our lock reasons.
const lockMark = "mendflow "

// writeDotGit restores the .git file of the tree, whatever a worker put there.
func (w *Worktree) writeDotGit() error {
	path := filepath.Join(w.rec.Tree, ".git")
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		if err := removeTree(path); err != nil {
			return fmt.Errorf("restore .git: %w", err)
		}
	}
	if err := writeFileAtomic(path, []byte(w.dotGit())); err != nil {
		return fmt.Errorf("restore .git: %w", err)
	}
	return nil
}

// dropAdmin removes the metadata of exactly this tree; never the mirror's other worktrees, never by
// prune. Callers hold the mirror's lock. A folder that another host locked is not ours.
func (w *Worktree) dropAdmin() error {
	reason, err := os.ReadFile(filepath.Join(w.rec.Admin, "locked"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(w.rec.Admin); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	} else if err == nil && !w.mirror.store.oursByReason(string(reason)) {
		return fmt.Errorf("unregister worktree: it is locked: %s: %w", strings.TrimSpace(string(reason)), ErrLocked)
	}
	aside, err := os.MkdirTemp(w.mirror.store.path(trashDir), "admin-")
	if err != nil {
		return fmt.Errorf("unregister worktree: %w", err)
	}
	if err := os.Rename(w.rec.Admin, filepath.Join(aside, "a")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unregister worktree: %w", err)
	}
	if err := os.RemoveAll(aside); err != nil {
		return fmt.Errorf("unregister worktree: %w", err)
	}
	return nil
}

// publishIndex gives the worker's git a copy of our index.
func (w *Worktree) publishIndex() error {
	if err := os.Remove(w.workerIndex()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish index: %w", err)
	}
	return copyIndex(w.index(), w.workerIndex())
}

// copyIndex copies an index together with its time stamp: git compares it with those of the files
// to find edits that came within one clock tick of the checkout.
func copyIndex(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("copy index: %w", err)
	}
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	if err != nil {
		return fmt.Errorf("copy index: %w", err)
	}
	return nil
}

// link makes the plan's link folders: symbolic links to the ignored folders of the user's checkout.
func (w *Worktree) link() error {
	w.rec.Links = nil
	hub := w.mirror.hub
	if hub.Path == "" || hub.Bare {
		return nil
	}
	for _, name := range w.mirror.options.Link {
		rel := filepath.Clean(filepath.FromSlash(name))
		target := filepath.Join(hub.Path, rel)
		if !filepath.IsLocal(rel) || !isDir(target) {
			continue
		}
		at := filepath.Join(w.rec.Tree, rel)
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		if err := os.Symlink(target, at); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		w.rec.Links = append(w.rec.Links, filepath.ToSlash(rel))
	}
	return nil
}
