package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A GarbageClass says what kind of thing was left behind.
type GarbageClass string

const (
	GarbageWorktree   GarbageClass = "worktree"   // of a closed run; salvaged before it is removed
	GarbageThrowaway  GarbageClass = "throwaway"  // gate and baseline trees of a closed run
	GarbageIdle       GarbageClass = "idle"       // parked for recycling
	GarbageTrash      GarbageClass = "trash"      // released and not yet deleted
	GarbageQuarantine GarbageClass = "quarantine" // put aside because nobody knew whose it was
	GarbageMirror     GarbageClass = "mirror"     // of a hub that closed runs alone used
)

// Garbage is one thing that Sweep can remove.
type Garbage struct {
	Class   GarbageClass
	Run     string // of worktree and throwaway
	Path    string
	Bytes   int64
	ModTime time.Time

	slot slot
}

// Garbage lists what is left on this host, by class and path: trees of runs for which closed is
// true, everything idle, in the trash or in quarantine, and mirrors that no other run uses.
func (s *Store) Garbage(ctx context.Context, closed func(run string) bool) ([]Garbage, error) {
	var found []Garbage
	trees, err := s.garbageTrees(closed)
	if err != nil {
		return nil, fmt.Errorf("list garbage: %w", err)
	}
	found = append(found, trees...)
	for class, pattern := range map[GarbageClass]string{
		GarbageIdle: idleDir + "/*/*", GarbageTrash: trashDir + "/*", GarbageQuarantine: quarantineDir + "/*", GarbageMirror: mirrorsDir + "/*.git",
	} {
		paths, err := filepath.Glob(s.path(filepath.FromSlash(pattern)))
		if err != nil {
			return nil, fmt.Errorf("list garbage: %w", err)
		}
		for _, p := range paths {
			if class == GarbageMirror && !unusedMirror(p, closed) || class == GarbageTrash && inUse(p) {
				continue
			}
			found = append(found, Garbage{Class: class, Path: p})
		}
	}
	for i := range found {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		found[i].Bytes, found[i].ModTime = diskUse(found[i].Path)
	}
	slices.SortFunc(found, func(a, b Garbage) int {
		return strings.Compare(string(a.Class)+a.Path, string(b.Class)+b.Path)
	})
	return found, nil
}

// garbageTrees finds the trees of closed runs by their records.
func (s *Store) garbageTrees(closed func(run string) bool) ([]Garbage, error) {
	var found []Garbage
	err := filepath.WalkDir(s.path(recordsDir), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".json" {
			return err
		}
		rec, ok, err := readRecord(p)
		if err != nil || !ok || !closed(rec.Run) {
			return err
		}
		g := Garbage{Class: GarbageWorktree, Run: rec.Run, Path: rec.Tree, slot: slot{run: rec.Run, node: rec.Node, number: rec.Number, throwaway: rec.Name}}
		if rec.Name != "" {
			g.Class = GarbageThrowaway
		}
		found = append(found, g)
		return nil
	})
	return found, err
}

// unusedMirror: no worktree hangs off it, and every run that it was used for is closed.
func unusedMirror(dir string, closed func(run string) bool) bool {
	runs, err := os.ReadDir(notesDir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return emptyDir(filepath.Join(dir, "worktrees")) && !slices.ContainsFunc(runs, func(e fs.DirEntry) bool { return !closed(e.Name()) })
}

// trashAge is the age from which a temporary folder that is no released tree has no user any more.
const trashAge = time.Hour

func inUse(path string) bool {
	if strings.HasPrefix(filepath.Base(path), "tree-") {
		return false
	}
	info, err := os.Lstat(path)
	return err != nil || time.Since(info.ModTime()) < trashAge
}

func emptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return err != nil || len(entries) == 0
}

func diskUse(path string) (bytes int64, latest time.Time) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // an estimate; what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
			if info.ModTime().After(latest) {
				latest = info.ModTime()
			}
		}
		return nil
	})
	return bytes, latest
}

// Sweep removes listed garbage and returns what could not be removed. A worktree is salvaged first,
// with its ignored files left out; what cannot be salvaged stays.
func (s *Store) Sweep(ctx context.Context, items []Garbage, when time.Time) (left []Garbage, err error) {
	var problems []error
	for _, g := range items {
		if err := s.sweepOne(ctx, g, when); err != nil {
			left = append(left, g)
			problems = append(problems, fmt.Errorf("sweep %s %s: %w", g.Class, g.Path, err))
		}
	}
	return left, errors.Join(problems...)
}

func (s *Store) sweepOne(ctx context.Context, g Garbage, when time.Time) error {
	switch g.Class {
	case GarbageWorktree, GarbageThrowaway:
		return s.sweepTree(ctx, g, when)
	case GarbageMirror:
		return s.sweepMirror(ctx, g)
	case GarbageSalvage:
		return s.sweepSalvage(ctx, g)
	case GarbageIdle:
		return s.removeAside(g.Path)
	case GarbageTrash, GarbageQuarantine:
		return removeTree(g.Path)
	}
	return fmt.Errorf("unknown class %q", g.Class)
}

// removeAside deletes a folder that a worker may take up at any moment: whoever renames it first has it.
func (s *Store) removeAside(path string) error {
	aside, err := os.MkdirTemp(s.path(trashDir), "tree-")
	if err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(aside, "t")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, os.Remove(aside))
	}
	return removeTree(aside)
}

func (s *Store) sweepTree(ctx context.Context, g Garbage, when time.Time) error {
	rec, ok, err := readRecord(s.recordPath(g.slot))
	if err != nil || !ok {
		return err
	}
	m := &Mirror{store: s, dir: rec.Mirror, state: s.mirrorState(strings.TrimSuffix(filepath.Base(rec.Mirror), ".git"))}
	if m.format, err = readFormat(m.dir); err != nil {
		return err
	}
	w := &Worktree{mirror: m, slot: g.slot, rec: rec}
	if w.intact() {
		if _, err := w.Salvage(ctx, Scope{}, when); err != nil {
			return err
		}
	}
	return w.Release(ctx, ReleaseOptions{})
}

func (s *Store) sweepMirror(ctx context.Context, g Garbage) error {
	state := s.mirrorState(strings.TrimSuffix(filepath.Base(g.Path), ".git"))
	unlock, err := state.meta.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !emptyDir(filepath.Join(g.Path, "worktrees")) {
		return fmt.Errorf("a worktree hangs off it: %w", ErrLocked)
	}
	salvage, err := listRefs(g.Path, func(name string) bool { return strings.HasPrefix(name, salvagePrefix) })
	if err != nil {
		return err
	}
	if len(salvage) > 0 {
		return fmt.Errorf("it holds %d salvage refs: drop their runs first: %w", len(salvage), ErrLocked)
	}
	state.mu.Lock()
	clear(state.known)
	clear(state.runs)
	clear(state.noted)
	state.mu.Unlock()
	return errors.Join(removeTree(g.Path), removeTree(notesDir(g.Path)))
}

// RunRefs lists the refs of a run in the hub and the mirror's salvage refs, by name.
func (m *Mirror) RunRefs(ctx context.Context, run string) (hub, mirror []string, err error) {
	if err := checkName("run", run); err != nil {
		return nil, nil, err
	}
	ours := runRefs(run)
	theirs, err := m.hubRefsMatching(ctx, run)
	if err != nil {
		return nil, nil, fmt.Errorf("list refs of %s: %w", run, err)
	}
	local, err := listRefs(m.dir, ours)
	return sortedKeys(theirs), sortedKeys(local), err
}

func runRefs(run string) func(string) bool {
	return func(name string) bool {
		return name == TruthRef(run) || name == MergedRef(run) || strings.HasPrefix(name, fencePrefix+run+"/") || strings.HasPrefix(name, salvagePrefix+run+"/")
	}
}

func (m *Mirror) hubRefsMatching(ctx context.Context, run string) (map[string]string, error) {
	if m.hub.URL == "" {
		return listRefs(m.hub.GitDir, runRefs(run))
	}
	return m.hubRefs(ctx, TruthRef(run), MergedRef(run), fencePrefix+run+"/*", salvagePrefix+run+"/*")
}

// DropRun deletes the refs of a closed run, in the hub and in the mirror: fences always, the truth
// and salvage refs when they are asked for. The branch stays: it is the user's now.
func (m *Mirror) DropRun(ctx context.Context, run string, truth, salvage bool) error {
	if err := checkName("run", run); err != nil {
		return err
	}
	gone := func(refs map[string]string) []refUpdate {
		var updates []refUpdate
		for _, name := range sortedKeys(refs) {
			switch {
			case name == TruthRef(run) && !truth, strings.HasPrefix(name, salvagePrefix) && !salvage:
			default:
				updates = append(updates, refUpdate{name, refs[name], ""})
			}
		}
		return updates
	}
	theirs, err := m.hubRefsMatching(ctx, run)
	if err != nil {
		return fmt.Errorf("drop run %s: %w", run, err)
	}
	if updates := gone(theirs); len(updates) > 0 {
		if _, err := m.update(ctx, transfer{}, updates, nil); err != nil {
			return fmt.Errorf("drop run %s: %w", run, err)
		}
	}
	local, err := listRefs(m.dir, runRefs(run))
	if err != nil {
		return fmt.Errorf("drop run %s: %w", run, err)
	}
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return fmt.Errorf("drop run %s: %w", run, err)
	}
	defer unlock()
	if updates := gone(local); len(updates) > 0 {
		if _, err := m.store.updateRefs(ctx, m.dir, m.format, updates); err != nil {
			return fmt.Errorf("drop run %s: %w", run, err)
		}
	}
	return nil
}

// DiskFloor is the free space of the state folder in bytes under which nothing new is started, unless
// the operator says otherwise.
const DiskFloor = 1 << 30

// CheckSpace returns ErrDiskFull, with figures and the remedy, when fewer bytes than floor are free.
func (s *Store) CheckSpace(floor uint64) error {
	free, err := s.DiskFree()
	if err != nil {
		return err
	}
	if free < floor {
		return fmt.Errorf("only %d MiB are free in %s, and nothing is started below %d MiB: free some space, or run `starter gc` there: %w",
			free>>20, s.settings.StateDir, floor>>20, ErrDiskFull)
	}
	return nil
}

// DiskFree is the number of bytes that this process may still write to the state folder.
func (s *Store) DiskFree() (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.settings.StateDir, &st); err != nil {
		return 0, fmt.Errorf("read free space: %w", err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
