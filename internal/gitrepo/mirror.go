package gitrepo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A Mirror is this host's bare cache of a hub. It is safe for use by many goroutines.
type Mirror struct {
	store   *Store
	hub     Hub
	options Options
	dir     string
	format  objectFormat
	state   *mirrorState
}

// mirrorState is shared by all Mirror values over one folder in a process.
type mirrorState struct {
	meta    *fileLock // refs, config and worktree metadata of the mirror
	landing *fileLock
	swap    chan struct{} // held while a landing looks at the hub and changes it

	mu    sync.Mutex
	known map[string]bool // commits that are in the mirror with all they reach
	runs  map[string]*runCache
	noted map[string]bool // runs whose note is written
}

func mirrorID(hub Hub) string {
	sum := sha256.Sum256([]byte(hub.Canonical))
	return hex.EncodeToString(sum[:8])
}

func (s *Store) mirrorState(id string) *mirrorState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.mirrors[id]
	if st == nil {
		st = &mirrorState{
			meta:    newFileLock(s.path(mirrorsDir, id+".lock")),
			landing: newFileLock(s.path(mirrorsDir, id+".landing.lock")),
			swap:    make(chan struct{}, 1),
			known:   map[string]bool{},
			runs:    map[string]*runCache{},
			noted:   map[string]bool{},
		}
		s.mirrors[id] = st
	}
	return st
}

// Mirror returns the mirror of the hub, making it first where it is missing. A mirror is complete
// or absent: it is cloned aside and renamed. Two hubs never share one.
func (s *Store) Mirror(ctx context.Context, hub Hub, options Options) (*Mirror, error) {
	if hub.Canonical == "" || (hub.URL == "") == (hub.GitDir == "") {
		return nil, fmt.Errorf("open mirror: %w", ErrNotRepository)
	}
	if hub.Path != "" && within(hub.Path, s.settings.StateDir) && !hub.Bare {
		return nil, fmt.Errorf("open mirror of %s: the state folder %s lies inside it", hub.Canonical, s.settings.StateDir)
	}
	id := mirrorID(hub)
	m := &Mirror{store: s, hub: hub, options: options, dir: s.path(mirrorsDir, id+".git"), state: s.mirrorState(id)}
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("open mirror of %s: %w", hub.Canonical, err)
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(m.dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		if err := m.clone(ctx); err != nil {
			return nil, fmt.Errorf("make mirror of %s: %w", hub.Canonical, err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("open mirror of %s: %w", hub.Canonical, err)
	}
	if m.format, err = readFormat(m.dir); err != nil {
		return nil, fmt.Errorf("open mirror of %s: %w", hub.Canonical, err)
	}
	return m, nil
}

// Hub is the repository that the mirror caches.
func (m *Mirror) Hub() Hub { return m.hub }

// Dir is the bare repository of the mirror, for sandboxes that have to allow reading it.
func (m *Mirror) Dir() string { return m.dir }

func within(parent, child string) bool {
	rel, err := filepath.Rel(parent, child)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (m *Mirror) clone(ctx context.Context) error {
	if err := checkComplete(m.hub.GitDir); err != nil {
		return err
	}
	// A clone that was killed left its folder; nobody else can be at it, we hold the mirror's lock.
	old, _ := filepath.Glob(m.dir + ".new-*")
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove unfinished clone: %w", err)
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(m.dir), filepath.Base(m.dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	_, err = m.store.git.run(ctx, cloneCommand(m.hub.remote(), tmp, m.options))
	if err != nil {
		if classify(err.Error()) == nil && !interrupted(err) {
			err = kindOr(err, ErrUnreachable)
		}
		return err
	}
	if err := checkComplete(tmp); err != nil {
		return err
	}
	refs, err := listRefs(tmp, func(string) bool { return true })
	if err != nil {
		return err
	}
	head, err := readRef(tmp, "HEAD")
	if err != nil {
		return err
	}
	if len(refs) == 0 && head == "" {
		return ErrEmptyRepository
	}
	if err := reduceConfig(filepath.Join(tmp, "config"), m.configCopy()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(tmp, "worktrees"), 0o777); err != nil {
		return err
	}
	return os.Rename(tmp, m.dir)
}

func cloneCommand(remote, dir string, options Options) command {
	return command{
		args:    []string{"clone", "--bare", "--quiet", "--template=", "--", remote, dir},
		network: true,
		options: options,
	}
}

// checkComplete refuses a repository on disk in which objects are missing by design.
func checkComplete(gitDir string) error {
	if gitDir == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(gitDir, "shallow")); err == nil {
		return fmt.Errorf("%w: run `git fetch --unshallow` in it first", ErrIncompleteHub)
	}
	if promisor, _ := filepath.Glob(filepath.Join(gitDir, "objects", "pack", "*.promisor")); len(promisor) > 0 {
		return fmt.Errorf("%w: run `git fetch --refetch --no-filter` in it first", ErrIncompleteHub)
	}
	return nil
}

// reduceConfig keeps of a fresh clone's configuration what describes the repository and the file
// system. No remote stays: a worker finds nothing to push to.
func reduceConfig(path, copy string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reduce configuration: %w", err)
	}
	var kept strings.Builder
	keep := false
	for line := range strings.Lines(string(text)) {
		if section := strings.TrimSpace(line); strings.HasPrefix(section, "[") {
			keep = section == "[core]" || section == "[extensions]"
		}
		if keep {
			kept.WriteString(line)
		}
	}
	kept.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	if err := errors.Join(writeFileAtomic(copy, []byte(kept.String())), writeFileAtomic(path, []byte(kept.String()))); err != nil {
		return fmt.Errorf("reduce configuration: %w", err)
	}
	return nil
}

// configCopy is where the configuration that we gave the mirror is kept, outside of it.
func (m *Mirror) configCopy() string { return strings.TrimSuffix(m.dir, ".git") + ".config" }

// guardConfig puts the mirror's configuration back where something changed it, and says so. It runs
// before git reads the configuration after a worker ran: a filter in it would be a command.
func (m *Mirror) guardConfig() (tampered bool, err error) {
	want, err := os.ReadFile(m.configCopy())
	if err != nil {
		return false, fmt.Errorf("guard configuration: %w", err)
	}
	path := filepath.Join(m.dir, "config")
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, want) {
		return false, nil
	}
	if err := writeFileAtomic(path, want); err != nil {
		return true, fmt.Errorf("guard configuration: %w", err)
	}
	m.store.settings.Log.Warn("put the configuration of a mirror back", "mirror", m.dir)
	return true, nil
}

func readFormat(gitDir string) (objectFormat, error) {
	text, err := os.ReadFile(filepath.Join(gitDir, "config"))
	if err != nil {
		return "", fmt.Errorf("read object format: %w", err)
	}
	for line := range strings.Lines(strings.ToLower(string(text))) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.TrimSpace(key) == "objectformat" && strings.TrimSpace(value) == string(formatSHA256) {
			return formatSHA256, nil
		}
	}
	return formatSHA1, nil
}

// notesDir holds a file for each run that ever used the mirror, so that gc knows whether it still does.
func notesDir(mirrorDir string) string { return strings.TrimSuffix(mirrorDir, ".git") + ".runs" }

func (m *Mirror) noteRun(run string) error {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	if m.state.noted[run] {
		return nil
	}
	if err := writeFileAtomic(filepath.Join(notesDir(m.dir), run), nil); err != nil {
		return fmt.Errorf("note run %s: %w", run, err)
	}
	m.state.noted[run] = true
	return nil
}

// run runs a git command on the mirror itself.
func (m *Mirror) run(ctx context.Context, c command) (result, error) {
	c.gitDir = m.dir
	c.options = m.options
	if c.dir == "" {
		c.dir = m.dir
	}
	return m.store.git.run(ctx, c)
}

// markKnown records commits that are complete in the mirror.
func (m *Mirror) markKnown(oids ...string) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	for _, oid := range oids {
		m.state.known[oid] = true
	}
}

// has says whether a commit is in the mirror. Nothing is ever removed from a mirror's objects but
// by gc, which takes the lock and forgets.
func (m *Mirror) has(ctx context.Context, oid string) (bool, error) {
	m.state.mu.Lock()
	known := m.state.known[oid]
	m.state.mu.Unlock()
	if known {
		return true, nil
	}
	res, err := m.run(ctx, command{args: []string{"cat-file", "-e", oid + "^{commit}"}, ok: []int{1, 128}})
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", oid, err)
	}
	if res.code == 0 {
		m.markKnown(oid)
	}
	return res.code == 0, nil
}

// ensure brings a commit of the hub that ref names, or named, into the mirror.
func (m *Mirror) ensure(ctx context.Context, oid, ref string) error {
	present, err := m.has(ctx, oid)
	if err != nil || present {
		return err
	}
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// By id: the ref may have moved on meanwhile. Protocol 2 serves any object.
	if _, err := m.run(ctx, m.fetchCommand(oid)); err != nil {
		if interrupted(err) {
			return err
		}
		if _, second := m.run(ctx, m.fetchCommand(ref)); second != nil {
			return fmt.Errorf("fetch %s of %s: %w", ref, m.hub.Canonical, err)
		}
	}
	m.markKnown(oid)
	return nil
}

func (m *Mirror) fetchCommand(refspecs ...string) command {
	return fetchObjects(m.hub.remote(), refspecs...)
}

// fetchObjects brings what the refs or ids reach; nothing of the mirror names it. It comes as a pack
// whatever its size, since a pack's objects appear at once: unpacked, a commit is there before its
// trees, and has would call it present to a merge beside the fetch, and for good after a kill.
func fetchObjects(remote string, refspecs ...string) command {
	return command{
		args: append([]string{"-c", "protocol.version=2", "-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags",
			"--no-write-fetch-head", "--no-auto-maintenance", "--end-of-options", remote}, refspecs...),
		network: true,
	}
}
