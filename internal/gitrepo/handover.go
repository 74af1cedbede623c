package gitrepo

import (
	"context"
	"fmt"
)

// A handOver is what a worker left, recorded before anything else changes its tree.
type handOver struct {
	Commit Commit `json:"commit,omitzero"` // of the work, without a tree when it is not to land; zero: nothing was left
	Work   Work   `json:"work"`
}

// HandOver records that the tree belongs to the verification from here on: it is checked out anew and
// commands run in it, so that its files say nothing any more about the worker. Collect, Commit and
// Salvage answer from the record then, also after a crash. What the commit leaves out must have been
// salvaged before. The .git file is ours again. Handing over twice keeps the first record.
func (w *Worktree) HandOver(work Work, commit Commit) error {
	if w.rec.Handed == nil {
		work.Scratch, work.Nested = nil, nil
		w.rec.Handed = &handOver{Commit: commit, Work: work}
		if err := writeRecord(w.mirror.store.recordPath(w.slot), w.rec); err != nil {
			return fmt.Errorf("hand over %s: %w", w.rec.Tree, err)
		}
	}
	if err := w.writeDotGit(); err != nil { // last: what it writes aside must not look like an edit
		return fmt.Errorf("hand over %s: %w", w.rec.Tree, err)
	}
	return nil
}

// HandedOver reports whether the tree is no longer as the worker left it.
func (w *Worktree) HandedOver() bool { return w.rec.Handed != nil }

// treeish names the tree that the worker left.
func (h *handOver) treeish(base string) string {
	if h.Commit.OID != "" {
		return h.Commit.OID
	}
	return base
}

// salvageHanded keeps a tree that was handed over: the work from its commit, and what lies untracked
// in the tree. A salvage that was taken before the hand-over is complete and stays.
func (w *Worktree) salvageHanded(ctx context.Context, scope Scope) (tree string, err error) {
	c, done, err := w.newCollector(salvageScope(scope), true)
	if err != nil {
		return "", err
	}
	defer done()
	res, err := w.run(ctx, w.statusCommand())
	if err != nil {
		return "", err
	}
	for _, e := range parseStatus(res.stdout) {
		if e.kind == '1' {
			continue // a file of the checkout that verification changed
		}
		if err := c.add(e); err != nil {
			return "", err
		}
	}
	index, drop, err := w.temporaryIndex()
	if err != nil {
		return "", err
	}
	defer drop()
	read := w.command("read-tree", w.rec.Handed.treeish(w.rec.Base))
	read.index = index
	if _, err := w.run(ctx, read); err != nil {
		return "", err
	}
	return w.stage(ctx, index, c.work.Changes)
}

// takeBack makes the tree again what the worker left, for another attempt to go on with: the files
// are those of its commit, index and HEAD are on the base.
func (w *Worktree) takeBack(ctx context.Context) error {
	handed := w.rec.Handed
	if handed == nil {
		return nil
	}
	if err := w.DiscardChanges(ctx, handed.treeish(w.rec.Base)); err != nil {
		return err
	}
	if err := w.setHead(w.rec.Base); err != nil {
		return err
	}
	if _, err := w.run(ctx, w.command("read-tree", w.rec.Base)); err != nil {
		return fmt.Errorf("put the index back: %w", err)
	}
	if err := w.publishIndex(); err != nil {
		return err
	}
	w.rec.Handed = nil
	return nil
}

// keptSalvage is the salvage that an attempt has already.
func (w *Worktree) keptSalvage() (Salvage, error) {
	ref := SalvageRef(w.slot.run, w.slot.node, w.slot.number)
	oid, err := readRef(w.mirror.dir, ref)
	if err != nil || oid == "" {
		return Salvage{}, err
	}
	return Salvage{Ref: ref, Commit: oid}, nil
}
