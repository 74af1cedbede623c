package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// addOwn adds what the worker committed or staged itself and an ignore rule hides from status.
func (c *collector) addOwn(ctx context.Context) error {
	w := c.w
	var paths []string
	if c.work.Head != w.rec.Base {
		res, err := w.run(ctx, w.command("rev-list", "--reverse", "--end-of-options", w.rec.Base+".."+c.work.Head))
		if err != nil {
			return err
		}
		c.work.Commits = strings.Fields(res.text())
		res, err = w.run(ctx, w.command("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=all",
			"--diff-filter=AMT", "--end-of-options", w.rec.Base, c.work.Head))
		if err != nil {
			return err
		}
		paths = append(paths, splitNUL(res.stdout)...)
	}
	if staged, err := w.workerStaged(); err != nil {
		return err
	} else if staged {
		cmd := w.command("diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=all",
			"--diff-filter=AMT", "--end-of-options", w.rec.Base)
		cmd.index = w.workerIndex()
		cmd.ok = []int{128} // an index that a worker broke holds nothing that the tree does not
		res, err := w.run(ctx, cmd)
		if err != nil {
			return err
		}
		paths = append(paths, splitNUL(res.stdout)...)
	}
	tracked, err := c.trackedAmong(ctx, paths)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if !tracked[p] && !c.exempt(p) && !c.inNested(p) {
			if err := c.appendNew(p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// trackedAmong says which of the paths are in the base: status has judged those already.
func (c *collector) trackedAmong(ctx context.Context, paths []string) (map[string]bool, error) {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return c.seen[p] })
	tracked := map[string]bool{}
	if len(paths) == 0 {
		return tracked, nil
	}
	cmd := c.w.command("ls-files", "-z", "--cached")
	res, err := c.w.run(ctx, cmd)
	if err != nil {
		return nil, err
	}
	for _, p := range splitNUL(res.stdout) {
		tracked[p] = true
	}
	return tracked, nil
}

func (c *collector) inNested(path string) bool {
	return slices.ContainsFunc(c.work.Nested, func(n string) bool { return path == n || strings.HasPrefix(path, n+"/") })
}

// workerStaged says that the index which the worker's git uses is no longer the copy that it was given.
func (w *Worktree) workerStaged() (bool, error) {
	theirs, err := os.ReadFile(w.workerIndex())
	if err != nil {
		return false, nil //nolint:nilerr // a removed index stages nothing
	}
	ours, err := os.ReadFile(w.index())
	if err != nil {
		return false, fmt.Errorf("read index: %w", err)
	}
	return !bytes.Equal(theirs, ours), nil
}
