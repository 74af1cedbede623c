package gitrepo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Snapshot is the user's uncommitted state as a commit in the mirror.
type Snapshot struct {
	Commit   string   // HEAD itself when nothing is uncommitted
	Paths    []string // what differs from HEAD, by path
	Excluded []string // environment files and keys, which are never taken
}

// ErrUnmerged: the user's checkout is in the middle of a merge.
var ErrUnmerged = errors.New("the checkout has unresolved conflicts")

// Snapshot makes a base commit of the user's tracked and untracked files (ignored ones and secrets
// excepted) on top of HEAD. Index, tree and objects of the hub are not touched: an index of our own
// is used and objects are written to the mirror; OpenTruth brings them to the hub.
func (m *Mirror) Snapshot(ctx context.Context, when time.Time) (Snapshot, error) {
	s, err := m.snapshot(ctx, when)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", m.hub.Canonical, err)
	}
	return s, nil
}

func (m *Mirror) snapshot(ctx context.Context, when time.Time) (Snapshot, error) {
	if m.hub.Path == "" || m.hub.Bare {
		return Snapshot{}, fmt.Errorf("it has no working tree: %w", ErrNotRepository)
	}
	head, err := m.ResolveBase(ctx, "")
	if err != nil {
		return Snapshot{}, err
	}
	dir, err := os.MkdirTemp(m.store.path(trashDir), "index-")
	if err != nil {
		return Snapshot{}, err
	}
	defer os.RemoveAll(dir)
	index := filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(m.hub.TreeDir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, err
	}
	res, err := m.store.git.run(ctx, m.checkoutStatus(index))
	if err != nil {
		return Snapshot{}, err
	}
	var snap Snapshot
	var changes []Change
	for record := range strings.SplitSeq(string(res.stdout), "\x00") {
		if strings.HasPrefix(record, "u ") {
			return Snapshot{}, ErrUnmerged
		}
	}
	for _, e := range parseStatus(res.stdout) {
		if nested := strings.HasSuffix(e.path, "/") || e.oldMode == modeGitlink; nested {
			continue
		}
		if e.kind == '?' && secret(strings.ToLower(path.Base(e.path))) {
			snap.Excluded = append(snap.Excluded, e.path)
			continue
		}
		snap.Paths = append(snap.Paths, e.path)
		if e.change != '.' {
			changes = append(changes, m.checkoutChange(e))
		}
	}
	slices.Sort(snap.Paths)
	if len(snap.Paths) == 0 {
		snap.Commit = head
		return snap, nil
	}
	tree, err := m.snapshotTree(ctx, index, changes)
	if err != nil {
		return Snapshot{}, err
	}
	if snap.Commit, err = m.writeCommit(ctx, tree, []string{head}, "Uncommitted changes of the checkout", when); err != nil {
		return Snapshot{}, err
	}
	if err := m.fetchStaged(ctx, snap.Commit, head); err != nil {
		return Snapshot{}, err
	}
	m.markKnown(snap.Commit)
	return snap, nil
}

// fetchStaged brings what the user staged, and what is thus in the hub's objects already, to the mirror.
func (m *Mirror) fetchStaged(ctx context.Context, commit, head string) error {
	from := m.packCommand(transfer{tips: []string{commit}, known: []string{head}})
	from.env = m.bothObjects()
	return m.store.git.pipe(ctx, from, func(head []byte) (command, bool) {
		count := int(binary.BigEndian.Uint32(head[8:]))
		return unpackCommand(m.dir, count), count > 0
	}, packHead)
}

// bothObjects lets a command write to the mirror's objects and read the hub's as well.
func (m *Mirror) bothObjects() []string {
	return []string{
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(m.dir, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(m.hub.GitDir, "objects"),
	}
}

func (m *Mirror) checkoutChange(e statusEntry) Change {
	info, err := os.Lstat(filepath.Join(m.hub.Path, filepath.FromSlash(e.path)))
	if err != nil || !plainFile(info) {
		return Change{Path: e.path, Kind: Deleted, oldBlob: e.blob}
	}
	return Change{Path: e.path, Kind: Modified}
}

// checkoutStatus lists what is uncommitted in the user's checkout: it writes nothing and enters no
// nested repository.
func (m *Mirror) checkoutStatus(index string) command {
	return command{
		args: []string{"status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind",
			"--ignore-submodules=all"},
		dir: m.hub.Path, gitDir: m.hub.TreeDir, workTree: m.hub.Path, index: index, options: m.options,
	}
}

func (m *Mirror) snapshotTree(ctx context.Context, index string, changes []Change) (string, error) {
	res := result{}
	for _, c := range append(stageCommands(changes), command{args: []string{"write-tree"}}) {
		c.dir, c.gitDir, c.workTree, c.index = m.hub.Path, m.hub.TreeDir, m.hub.Path, index
		c.env, c.options = m.bothObjects(), m.options
		var err error
		if res, err = m.store.git.run(ctx, c); err != nil {
			return "", err
		}
	}
	return res.text(), nil
}

// UncommittedTargets returns those of the paths that the base does not have and the user's checkout
// does: a run would not see them. A hub without a working tree has none.
func (m *Mirror) UncommittedTargets(ctx context.Context, base string, paths []string) ([]string, error) {
	if m.hub.Path == "" || m.hub.Bare || len(paths) == 0 {
		return nil, nil
	}
	var inside []string
	for _, p := range paths {
		if clean := path.Clean(filepath.ToSlash(p)); filepath.IsLocal(clean) {
			inside = append(inside, clean)
		}
	}
	entries, err := m.ListFiles(ctx, base, inside...)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, e := range entries {
		for p := e.Path; p != "."; p = path.Dir(p) {
			known[p] = true
		}
	}
	var missing []string
	for _, p := range inside {
		if _, err := os.Lstat(filepath.Join(m.hub.Path, p)); err == nil && !known[p] {
			missing = append(missing, p)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), nil
}
