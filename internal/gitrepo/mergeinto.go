package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kill points of a publication.
const (
	PointPushing = "before-publish-push"
	PointPushed  = "after-publish-push"
	PointMerging = "before-publish-merge"
	PointMovedTo = "after-publish-merge" // the branch is moved, a checkout of it is not yet
)

// mergedPrefix names what a branch was before a run was merged into it. The ref is made in the
// transaction that moves the branch, so that a repetition knows that it happened.
const mergedPrefix = refRoot + "merged/"

// MergedRef is the mark of a run that was merged: where the branch was before.
func MergedRef(run string) string { return mergedPrefix + run }

// A MergeIntoRequest merges the result of a run into a branch of the hub.
type MergeIntoRequest struct {
	Run     string
	Branch  string // without refs/heads/
	Head    string // the run's result
	Message string // of the merge commit, where one is needed
	When    time.Time
	Look    bool // only say whether it is merged
}

// A MergeIntoResult says what became of it. Exactly one of Merged and Refused is set, unless only looked.
type MergeIntoResult struct {
	Merged  bool
	Commit  string // with Merged: where the branch is
	Refused string // why people have to do it
	Note    string // with Merged: what is left to do, e.g. with a checkout of the branch
}

// MergeInto merges by compare-and-swap, and is idempotent. A branch that is checked out takes its
// working tree along, if that has no changes; otherwise the merge is refused.
func (m *Mirror) MergeInto(ctx context.Context, req MergeIntoRequest) (MergeIntoResult, error) {
	if err := checkName("run", req.Run); err != nil {
		return MergeIntoResult{}, err
	}
	name := "refs/heads/" + req.Branch
	var last error
	for range refTries {
		res, err := m.tryMergeInto(ctx, req, name)
		if err == nil {
			return res, nil
		}
		if last = err; !retryable(err) || ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrLocked) {
			if err := m.waitHubLock(ctx, name, MergedRef(req.Run)); err != nil {
				break
			}
		}
	}
	if errors.Is(last, errRefused) && ctx.Err() == nil {
		return MergeIntoResult{Refused: fmt.Sprintf("the repository refuses to move %s: %s", req.Branch, oneText(last))}, nil
	}
	return MergeIntoResult{}, fmt.Errorf("merge %s into %s: %w", req.Run, req.Branch, last)
}

func oneText(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func (m *Mirror) tryMergeInto(ctx context.Context, req MergeIntoRequest, name string) (MergeIntoResult, error) {
	refs, err := m.hubRefs(ctx, name, MergedRef(req.Run))
	if err != nil {
		return MergeIntoResult{}, err
	}
	tip, before := refs[name], refs[MergedRef(req.Run)]
	if tip == "" {
		return MergeIntoResult{Refused: fmt.Sprintf("the repository has no branch %s", req.Branch)}, nil
	}
	if err := m.ensure(ctx, tip, name); err != nil {
		return MergeIntoResult{}, err
	}
	contained, err := m.ancestor(ctx, req.Head, tip)
	if err != nil {
		return MergeIntoResult{}, err
	}
	at, err := m.checkoutOf(name)
	if err != nil {
		return MergeIntoResult{}, err
	}
	if before != "" && contained {
		return MergeIntoResult{Merged: true, Commit: tip, Note: m.bringUp(ctx, at, before, tip, req.Look)}, nil
	}
	if contained || req.Look {
		return MergeIntoResult{Merged: contained, Commit: tip}, nil
	}
	next, conflicts, err := m.mergedWith(ctx, tip, req)
	switch {
	case err != nil:
		return MergeIntoResult{}, err
	case len(conflicts) > 0:
		return MergeIntoResult{Refused: fmt.Sprintf("%s has moved and conflicts in %s", req.Branch, someOf(conflicts))}, nil
	}
	objects := transfer{tips: []string{next}, known: []string{tip}}
	if at.tree != "" {
		if why, err := m.mayBringUp(ctx, at, objects, tip, next); err != nil || why != "" {
			return MergeIntoResult{Refused: why}, err
		}
	}
	m.store.hook(PointMerging)
	updates := []refUpdate{{name, tip, next}, {MergedRef(req.Run), before, tip}}
	if _, err := m.update(ctx, objects, updates, nil); err != nil {
		return MergeIntoResult{}, err
	}
	m.store.hook(PointMovedTo)
	return MergeIntoResult{Merged: true, Commit: next, Note: m.bringUp(ctx, at, tip, next, false)}, nil
}

// someOf names the first few of many paths.
func someOf(paths []string) string {
	const most = 5
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

// mergedWith is the commit that the branch becomes: the run's own where the branch did not move, else a merge.
func (m *Mirror) mergedWith(ctx context.Context, tip string, req MergeIntoRequest) (next string, conflicts []string, err error) {
	forward, err := m.ancestor(ctx, tip, req.Head)
	if err != nil || forward {
		return req.Head, nil, err
	}
	merged, err := m.mergeTree(ctx, tip, req.Head)
	if err != nil {
		return "", nil, err
	}
	if !merged.Clean {
		return "", merged.Conflicts, nil
	}
	next, err = m.writeCommit(ctx, merged.Tree, []string{tip, req.Head}, strings.TrimSpace(req.Message)+"\n", req.When)
	return next, nil, err
}

// checkout is a working tree that has a branch checked out; the zero value is none.
type checkout struct{ tree, gitDir string }

// checkoutOf finds the working tree of a hub by path that has a branch checked out.
func (m *Mirror) checkoutOf(branch string) (checkout, error) {
	if m.hub.URL != "" {
		return checkout{}, nil
	}
	if !m.hub.Bare {
		if value, err := readRefValue(m.hub.GitDir, "HEAD"); err == nil && value == "ref: "+branch {
			return checkout{tree: filepath.Dir(m.hub.GitDir), gitDir: m.hub.GitDir}, nil
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.hub.GitDir, "worktrees"))
	if err != nil && !os.IsNotExist(err) {
		return checkout{}, fmt.Errorf("read worktrees: %w", err)
	}
	for _, e := range entries {
		admin := filepath.Join(m.hub.GitDir, "worktrees", e.Name())
		value, err := readRefValue(admin, "HEAD")
		text, readErr := os.ReadFile(filepath.Join(admin, "gitdir"))
		if err != nil || readErr != nil || value != "ref: "+branch {
			continue
		}
		if tree := filepath.Dir(strings.TrimSpace(string(text))); exists(tree) {
			return checkout{tree: tree, gitDir: admin}, nil
		}
	}
	return checkout{}, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// in describes a git command in the checkout.
func (c checkout) in(args ...string) command {
	return command{args: args, dir: c.tree, gitDir: c.gitDir, workTree: c.tree}
}

// underWay are the files of a git operation that a user has not finished.
var underWay = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}

// mayBringUp says why the checkout cannot take the merge; empty: it can.
func (m *Mirror) mayBringUp(ctx context.Context, at checkout, objects transfer, from, to string) (string, error) {
	for _, file := range underWay {
		if exists(filepath.Join(at.gitDir, file)) {
			return fmt.Sprintf("the branch is checked out at %s, where a git operation is under way (%s)", at.tree, file), nil
		}
	}
	if lock := filepath.Join(at.gitDir, "index.lock"); exists(lock) { // somebody is at it: again later
		return "", fmt.Errorf("use index of %s: %s: %w", at.tree, lock, ErrLocked)
	}
	res, err := m.store.git.run(ctx, at.in("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty"))
	if err != nil {
		return "", err
	}
	if len(res.stdout) > 0 {
		return fmt.Sprintf("the branch is checked out at %s, which has uncommitted changes", at.tree), nil
	}
	if err := m.sendObjects(ctx, objects); err != nil {
		return "", err
	}
	switch err := m.readInto(ctx, at, from, to, true); {
	case interrupted(err):
		return "", err
	case err != nil:
		return fmt.Sprintf("the branch is checked out at %s, which cannot take the merge: %s", at.tree, oneText(err)), nil
	}
	return "", nil
}

// readInto moves index and working tree of a checkout from one commit to another. Git refuses to
// overwrite what is not committed.
func (m *Mirror) readInto(ctx context.Context, at checkout, from, to string, dry bool) error {
	refresh := at.in("update-index", "-q", "--refresh")
	refresh.ok = []int{1}
	if _, err := m.store.git.run(ctx, refresh); err != nil {
		return err
	}
	args := []string{"read-tree", "-m", "-u"}
	if dry {
		args = append(args, "-n")
	}
	_, err := m.store.git.run(ctx, at.in(append(args, from, to)...))
	return err
}

// bringUp lets a checkout follow its branch, and says what is left to do. A merge whose process died
// in between is found by its index, which is still that of before.
func (m *Mirror) bringUp(ctx context.Context, at checkout, from, to string, look bool) string {
	if at.tree == "" || look {
		return ""
	}
	index := at.in("diff-index", "--cached", "--quiet", "--ignore-submodules", to)
	index.ok = []int{1}
	if res, err := m.store.git.run(ctx, index); err == nil && res.code == 0 {
		return ""
	}
	index.args[len(index.args)-1] = from
	res, err := m.store.git.run(ctx, index)
	if err == nil && res.code == 0 {
		err = m.readInto(ctx, at, from, to, false)
	} else if err == nil {
		err = errors.New("its index is neither that of before nor that of after")
	}
	if err != nil {
		return fmt.Sprintf("%s has the branch checked out and could not follow (%s): look at `git -C %s status`", at.tree, oneText(err), at.tree)
	}
	return ""
}
