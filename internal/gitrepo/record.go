package gitrepo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A slot names a worktree of a run: of an attempt, or a throw-away one.
type slot struct {
	run, node string
	number    int
	throwaway string // set instead of node and number
}

func (a Attempt) slot() slot { return slot{run: a.Run, node: a.Node, number: a.Number} }

// elems are the path elements of the slot, for trees and records alike.
func (k slot) elems() []string {
	if k.throwaway != "" {
		return []string{k.run, k.throwaway}
	}
	return []string{k.run, k.node, "a" + strconv.Itoa(k.number)}
}

func (s *Store) treePath(k slot) string {
	root := worktreesDir
	if k.throwaway != "" {
		root = throwawayDir
	}
	return s.path(append([]string{root}, k.elems()...)...)
}

func (s *Store) recordPath(k slot) string {
	root := worktreesDir
	if k.throwaway != "" {
		root = throwawayDir
	}
	return s.path(append([]string{recordsDir, root}, k.elems()...)...) + ".json"
}

// A record is what we know of a worktree. It lies outside of the tree and of the mirror, where no
// worker writes; git is told GIT_DIR and GIT_WORK_TREE from it and discovers nothing.
type record struct {
	Mirror string   `json:"mirror"` // folder of the mirror
	Admin  string   `json:"admin"`  // worktrees/<id> in the mirror
	Tree   string   `json:"tree"`
	Run    string   `json:"run"`
	Node   string   `json:"node,omitempty"`
	Number int      `json:"number,omitempty"`
	Name   string   `json:"name,omitempty"` // of a throw-away worktree
	Base   string   `json:"base"`
	Sparse []string `json:"sparse,omitempty"`
	Links  []string `json:"links,omitempty"`
	// Submodules are those that were checked out, by path, with a digest of what was there then.
	Submodules map[string]string `json:"submodules,omitempty"`
	Ready      bool              `json:"ready"` // false: the making of the tree was not finished, no worker was in it
	Owner      owner             `json:"owner"`
	Handed     *handOver         `json:"handed,omitempty"` // set: the tree is no longer as the worker left it
}

func readRecord(path string) (record, bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read worktree record: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, false, fmt.Errorf("read worktree record %s: %w", path, err)
	}
	return r, true, nil
}

func writeRecord(path string, r record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = writeFileAtomic(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write worktree record: %w", err)
	}
	return nil
}

// writeFileAtomic writes aside and renames, so that a killed writer leaves the old content or the new.
func writeFileAtomic(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
