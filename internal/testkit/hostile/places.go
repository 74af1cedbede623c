package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func init() {
	register(map[string]misdeed{
		"replaces-git":     (*villain).replacesGit,
		"nested-command":   (*villain).nestedCommand,
		"nested-clone":     (*villain).nestedClone,
		"commits":          (*villain).commits,
		"switches-branch":  (*villain).switchesBranch,
		"deletes-worktree": (*villain).deletesWorktree,
		"chmods-worktree":  (*villain).chmodsWorktree,
		"edits-hub":        (*villain).editsHub,
		"edits-mirror":     (*villain).editsMirror,
		"edits-record":     (*villain).editsRecord,
		"edits-sibling":    (*villain).editsSibling,
		"works-elsewhere":  (*villain).worksElsewhere,
	})
}

// git runs git as a worker does, in a folder.
func (v *villain) git(dir string, args ...string) error {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=W", "GIT_AUTHOR_EMAIL=w@example.com",
		"GIT_COMMITTER_NAME=W", "GIT_COMMITTER_EMAIL=w@example.com")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// trap makes a repository that runs a command for whoever looks at it.
func (v *villain) trap(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := v.git(dir, "init", "-q"); err != nil {
		return err
	}
	if err := v.git(dir, "commit", "-q", "--allow-empty", "-m", "Trap"); err != nil {
		return err
	}
	hook := filepath.Join(dir, ".git", "hooks", "post-index-change")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+v.proof()+"\n"), 0o755); err != nil {
		return err
	}
	for key, value := range map[string]string{
		"core.fsmonitor": v.proof(), "core.sshCommand": v.proof(), "core.editor": v.proof(), "diff.external": v.proof(),
		"filter.x.clean": v.proof(), "filter.x.smudge": v.proof(), "core.hooksPath": filepath.Dir(hook),
	} {
		if err := v.git(dir, "config", key, value); err != nil {
			return err
		}
	}
	return nil
}

// replacesGit puts a repository of its own in the place of the tree's.
func (v *villain) replacesGit() (int, error) {
	if err := os.Remove(v.in(".git")); err != nil {
		return 0, err
	}
	if err := v.trap(v.tree); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) nestedCommand() (int, error) {
	if err := v.trap(v.in(v.node + "/inner")); err != nil {
		return 0, err
	}
	if err := v.write(v.node+"/inner/file.txt", "inside\n"); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) nestedClone() (int, error) {
	if err := v.git(v.tree, "clone", "-q", v.hub, v.in(v.node+"/copy")); err != nil {
		return 0, err
	}
	return 0, v.honest()
}

func (v *villain) commits() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	v.try("detach", v.git(v.tree, "checkout", "-q", "--detach"))
	v.try("add", v.git(v.tree, "add", "-A"))
	v.try("commit", v.git(v.tree, "commit", "-q", "-m", "By the worker"))
	return 0, nil
}

func (v *villain) switchesBranch() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	v.try("make a branch", v.git(v.tree, "checkout", "-q", "-b", "theirs"))
	v.try("move main", v.git(v.tree, "update-ref", "refs/heads/main", "HEAD^"))
	return 0, nil
}

func (v *villain) deletesWorktree() (int, error) {
	v.try("delete the worktree", os.RemoveAll(v.tree))
	return 0, nil
}

// chmodsWorktree takes every permission away, folders last.
func (v *villain) chmodsWorktree() (int, error) {
	if err := v.honest(); err != nil {
		return 0, err
	}
	var paths []string
	err := filepath.WalkDir(v.tree, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range slices.Backward(paths) {
		if err == nil {
			err = os.Chmod(path, 0)
		}
	}
	return 0, err
}

func (v *villain) editsHub() (int, error) {
	v.overwrite(filepath.Join(v.hub, "README.md"))
	v.overwrite(filepath.Join(v.hub, ".git", "config"))
	v.overwrite(filepath.Join(v.hub, ".git", "hooks", "post-update"))
	v.try("commit in the hub", v.git(v.hub, "commit", "-q", "--allow-empty", "-m", "By the worker"))
	return 0, v.honest()
}

func (v *villain) editsMirror() (int, error) {
	for _, config := range below(filepath.Join(v.state, "mirrors"), "config") {
		v.overwrite(config)
		v.overwrite(filepath.Join(filepath.Dir(config), "hooks", "reference-transaction"))
	}
	return 0, v.honest()
}

// editsRecord forges what the host keeps about the attempt.
func (v *villain) editsRecord() (int, error) {
	v.overwrite(filepath.Join(filepath.Dir(filepath.Dir(v.result)), "record.json"))
	for _, record := range below(filepath.Join(v.state, "records"), "a1.json") {
		v.overwrite(record)
	}
	return 0, v.honest()
}

// editsSibling writes into the trees of the other nodes.
func (v *villain) editsSibling() (int, error) {
	for _, file := range below(filepath.Dir(filepath.Dir(v.tree)), "README.md") {
		if filepath.Dir(file) != v.tree {
			v.overwrite(file)
		}
	}
	return 0, v.honest()
}

// worksElsewhere does its work in the user's checkout.
func (v *villain) worksElsewhere() (int, error) {
	v.overwrite(filepath.Join(v.hub, v.node, "work.txt"))
	return 0, nil
}
