package gitrepo

import (
	"context"
	"fmt"
	"os"
)

// CheckoutTree makes the files of the tree those of a tree object, by writing what differs only, and
// puts HEAD on a commit. Ignored and untracked files stay. It restores the .git file.
func (w *Worktree) CheckoutTree(ctx context.Context, tree, head string) error {
	if err := w.writeDotGit(); err != nil {
		return err
	}
	if err := w.readTree(ctx, tree); err != nil {
		return err
	}
	if err := w.setHead(head); err != nil {
		return err
	}
	return w.publishIndex()
}

// DiscardChanges takes back what a verification changed: files are again those of the tree object,
// untracked ones are removed, ignored ones stay.
func (w *Worktree) DiscardChanges(ctx context.Context, tree string) error {
	if err := w.writeDotGit(); err != nil {
		return err
	}
	if err := w.readTree(ctx, tree); err != nil {
		return err
	}
	return w.clean(ctx, false)
}

// RemoveLeftovers deletes untracked paths that the commit does not hold, so that a verification sees
// what lands. Salvage comes before it. Nothing outside the tree is reached, through links either.
func (w *Worktree) RemoveLeftovers(work Work) error {
	root, err := os.OpenRoot(w.rec.Tree)
	if err != nil {
		return fmt.Errorf("remove leftovers: %w", err)
	}
	defer root.Close()
	for _, p := range work.Leftovers() {
		if err := root.RemoveAll(p); err != nil {
			return fmt.Errorf("remove leftovers: %w", err)
		}
	}
	return nil
}
