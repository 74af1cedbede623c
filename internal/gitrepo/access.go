package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// collectOpen collects what is in the tree. A worker may have taken permissions away: files that we
// cannot read would look deleted, so they are given back where anything is denied.
func (w *Worktree) collectOpen(ctx context.Context, c *collector) error {
	work := c.work
	err := c.gather(ctx)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	openUp(w.rec.Tree)
	c.work, c.seen = work, map[string]bool{}
	return c.gather(ctx)
}

// gather fills the work from git's status; fs.ErrPermission when something was denied.
func (c *collector) gather(ctx context.Context) error {
	res, err := c.w.run(ctx, c.w.statusCommand())
	if strings.Contains(res.stderr, "Permission denied") {
		return fs.ErrPermission
	}
	if err != nil {
		return err
	}
	for _, e := range parseStatus(res.stdout) {
		if err := c.add(e); err != nil {
			return err
		}
	}
	return nil
}

// openUp gives us back what we need to read and remove a tree of ours. What it cannot change is
// somebody else's, and the next look says so.
func openUp(tree string) {
	_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, _ error) error {
		if d == nil {
			return nil
		}
		need := fs.FileMode(0o600)
		switch {
		case d.IsDir():
			need = 0o700
		case !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&need != need {
			_ = os.Chmod(path, info.Mode().Perm()|need) // the next look tells whether it helped
		}
		return nil
	})
}
