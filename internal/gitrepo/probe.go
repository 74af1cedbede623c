package gitrepo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Probe checks that the hub accepts what a run writes: refs below refs/mendflow, two of them in one
// atomic change with expected old values, and objects. It leaves nothing behind.
func (m *Mirror) Probe(ctx context.Context) error {
	if err := m.probe(ctx); err != nil {
		return fmt.Errorf("probe %s: %w", m.hub.Canonical, err)
	}
	return nil
}

func (m *Mirror) probe(ctx context.Context) error {
	if m.hub.URL == "" {
		// Discovery once more: it is git's check of the ownership, which an explicit GIT_DIR skips.
		if _, err := resolvePath(ctx, m.hub.Path); err != nil {
			return err
		}
		if err := unix.Access(filepath.Join(m.hub.GitDir, "objects"), unix.W_OK); err != nil {
			return fmt.Errorf("write objects: %w: %w", ErrHubRefuses, err)
		}
	}
	commit, err := m.anyCommit()
	if err != nil {
		return err
	}
	name := probePrefix + rand.Text()
	made := []refUpdate{{name + "/a", "", commit}, {name + "/b", "", commit}}
	gone := []refUpdate{{name + "/a", commit, ""}, {name + "/b", commit, ""}}
	if _, err := m.update(ctx, transfer{}, made, nil); err != nil {
		if interrupted(err) || errors.Is(err, ErrUnreachable) {
			return err
		}
		return fmt.Errorf("make two refs at once: %w: %w", ErrHubRefuses, err)
	}
	if _, err := m.update(context.WithoutCancel(ctx), transfer{}, gone, nil); err != nil {
		return fmt.Errorf("delete two refs at once: %w: %w", ErrHubRefuses, err)
	}
	return nil
}

// anyCommit is a commit that hub and mirror share.
func (m *Mirror) anyCommit() (string, error) {
	if head, err := readRef(m.dir, "HEAD"); err == nil && head != "" && m.hub.URL != "" {
		return head, nil
	}
	dir := m.dir
	if m.hub.URL == "" {
		dir = m.hub.GitDir
	}
	for _, prefix := range []string{"refs/heads/", "refs/"} {
		refs, err := listRefs(dir, func(name string) bool { return len(name) > len(prefix) && name[:len(prefix)] == prefix })
		if err != nil {
			return "", err
		}
		for _, name := range sortedKeys(refs) {
			return refs[name], nil
		}
	}
	if head, err := readRef(dir, "HEAD"); err == nil && head != "" {
		return head, nil
	}
	return "", ErrEmptyRepository
}
