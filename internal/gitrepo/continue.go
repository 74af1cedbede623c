package gitrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Continue hands a kept tree to a new attempt of the same node and opening: the tree keeps its path
// and base; record, lock and fence move to the new number, and the old attempt can neither use the
// tree nor land. It is idempotent.
func (m *Mirror) Continue(ctx context.Context, from, to Attempt) (*Worktree, Fence, error) {
	if err := errors.Join(from.check(), to.check()); err != nil {
		return nil, Fence{}, err
	}
	if from.Run != to.Run || from.Node != to.Node || from.Number >= to.Number {
		return nil, Fence{}, fmt.Errorf("continue %s as %s: %w", from, to, ErrInvalidName)
	}
	w, err := m.takeOver(ctx, from.slot(), to.slot())
	if err != nil {
		return nil, Fence{}, fmt.Errorf("continue %s as %s: %w", from, to, err)
	}
	fence, err := m.SetFence(ctx, to)
	return w, fence, err
}

func (m *Mirror) takeOver(ctx context.Context, from, to slot) (*Worktree, error) {
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	old, err := m.open(from)
	if errors.Is(err, ErrNoWorktree) {
		if w, err := m.open(to); err == nil && w.intact() {
			return w, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if !old.intact() {
		return nil, ErrNoWorktree
	}
	if err := old.takeBack(ctx); err != nil {
		return nil, err
	}
	w := &Worktree{mirror: m, slot: to, rec: old.rec}
	w.rec.Number, w.rec.Owner = to.number, m.store.owner
	if err := writeFileAtomic(filepath.Join(w.rec.Admin, "locked"), []byte(w.lockReason()+"\n")); err != nil {
		return nil, err
	}
	if err := writeRecord(m.store.recordPath(to), w.rec); err != nil {
		return nil, err
	}
	if err := os.Remove(m.store.recordPath(from)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return w, nil
}

// Facts identify what is in a tree, for a checkpoint: a tree that is continued must still match them.
type Facts struct {
	Head   string `json:"head"`
	Status string `json:"status"` // digest over every path that differs from the base, and its content
}

// Facts computes the facts of the tree as it is now. Ignored files play no part.
func (w *Worktree) Facts(ctx context.Context) (Facts, error) {
	f, err := w.facts(ctx)
	if err != nil {
		return Facts{}, fmt.Errorf("look at %s: %w", w.rec.Tree, err)
	}
	return f, nil
}

func (w *Worktree) facts(ctx context.Context) (Facts, error) {
	if !w.intact() {
		return Facts{}, ErrOutOfPlace
	}
	if _, err := w.mirror.guardConfig(); err != nil {
		return Facts{}, err
	}
	head, err := w.Head()
	if err != nil {
		return Facts{}, err
	}
	cmd := w.statusCommand()
	cmd.args = append(cmd.args, "--ignored=no")
	res, err := w.run(ctx, cmd)
	if err != nil {
		return Facts{}, err
	}
	digest, err := contentDigest(w.rec.Tree, parseStatus(res.stdout))
	return Facts{Head: head, Status: digest}, err
}

// contentDigest hashes status entries together with what the paths hold.
func contentDigest(tree string, entries []statusEntry) (string, error) {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	for _, e := range entries {
		if e.kind == '1' && e.change == '.' {
			continue
		}
		fmt.Fprintf(sum, "%c%c %s %q\n", e.kind, e.change, e.newMode, e.path)
		if err := hashFile(sum, root, strings.TrimSuffix(e.path, "/")); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func hashFile(sum io.Writer, root *os.Root, path string) error {
	info, err := root.Lstat(path)
	switch {
	case err != nil:
		fmt.Fprintln(sum, "absent")
		return nil //nolint:nilerr // a path that is gone is a fact like any other
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(path)
		fmt.Fprintf(sum, "link %q\n", target)
		return err
	case !info.Mode().IsRegular():
		fmt.Fprintln(sum, "other")
		return nil
	}
	content, err := readHead(root, path, info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	fmt.Fprintf(sum, "file %d %x\n", len(content), sha256.Sum256(content))
	return nil
}

// MatchFacts compares the tree with recorded facts and returns what differs: "tree" (it is gone),
// "head", "status", or nothing.
func (w *Worktree) MatchFacts(ctx context.Context, want Facts) (mismatch string, err error) {
	now, err := w.facts(ctx)
	switch {
	case errors.Is(err, ErrOutOfPlace):
		return "tree", nil
	case err != nil:
		return "", fmt.Errorf("look at %s: %w", w.rec.Tree, err)
	case now.Head != want.Head:
		return "head", nil
	case now.Status != want.Status:
		return "status", nil
	}
	return "", nil
}
