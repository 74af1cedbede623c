package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lockWait is the pause between two looks at a lock that somebody alive may hold.
const lockWait = 20 * time.Millisecond

// waitHubLock is called after a ref of ours in the hub was found locked. Locks of refs/mendflow/**
// and of our branch are ours: one without a live owner is removed after the grace time, which covers
// owners on other hosts.
func (m *Mirror) waitHubLock(ctx context.Context, names ...string) error {
	for _, name := range names {
		if m.hub.URL == "" && (strings.HasPrefix(name, refRoot) || strings.HasPrefix(name, branchPrefix)) {
			if _, err := m.store.reap(m.hub.GitDir, filepath.Join(m.hub.GitDir, filepath.FromSlash(name)+".lock")); err != nil {
				return err
			}
		}
	}
	return pause(ctx, lockWait)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reap removes a lock file that a killed git left in a repository, when it is older than the grace
// time and no live git process works there. It says whether the lock is gone.
func (s *Store) reap(gitDir, lock string) (bool, error) {
	info, err := os.Lstat(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at lock: %w", err)
	}
	age := time.Since(info.ModTime())
	if age < s.settings.LockGrace || gitAliveIn(gitDir) {
		return false, nil
	}
	if err := os.Remove(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove stale lock: %w", err)
	}
	s.settings.Log.Warn("removed a stale git lock", slog.String("lock", lock), slog.Int64("age_ms", age.Milliseconds()))
	return true, nil
}

// gitAliveIn looks for a git process of this host that has the folder as its GIT_DIR or works below it.
func gitAliveIn(gitDir string) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		comm, err := os.ReadFile(filepath.Join(proc, "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "git") {
			continue
		}
		if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && within(gitDir, cwd) {
			return true
		}
		env, err := os.ReadFile(filepath.Join(proc, "environ"))
		if err != nil {
			continue
		}
		for kv := range strings.SplitSeq(string(env), "\x00") {
			if dir, ok := strings.CutPrefix(kv, "GIT_DIR="); ok && within(gitDir, dir) {
				return true
			}
		}
	}
	return false
}

// reapMirror removes stale locks of the mirror's own files and refs. Callers hold the mirror's lock.
func (m *Mirror) reapMirror() error {
	names := []string{"config.lock", "packed-refs.lock", "shallow.lock", "HEAD.lock"}
	locks := make([]string, 0, len(names))
	for _, n := range names {
		locks = append(locks, filepath.Join(m.dir, n))
	}
	err := filepath.WalkDir(filepath.Join(m.dir, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".lock") {
			locks = append(locks, p)
		}
		return nil
	})
	for _, lock := range locks {
		_, reapErr := m.store.reap(m.dir, lock)
		err = errors.Join(err, reapErr)
	}
	return err
}

// writeMeta runs a git command that writes refs or configuration of the mirror, under its lock; a
// lock file in the way is waited for and, when it is stale, removed.
func (m *Mirror) writeMeta(ctx context.Context, c command) (result, error) {
	unlock, err := m.state.meta.lock(ctx)
	if err != nil {
		return result{}, err
	}
	defer unlock()
	for try := 1; ; try++ {
		res, err := m.run(ctx, c)
		if err == nil || !errors.Is(err, ErrLocked) || try == refTries {
			return res, err
		}
		if err := errors.Join(m.reapMirror(), pause(ctx, lockWait)); err != nil {
			return res, err
		}
	}
}
