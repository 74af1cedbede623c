package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LookPath returns the path of the program that [Run] would execute for name in
// folder dir with environment env: it looks in the PATH of env, not in that of
// this process, and skips relative entries. The error is a [StartError].
func LookPath(name, dir string, env []string) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &StartError{Program: name, Err: fmt.Errorf("run in %s: %w", dir, ErrNoFolder)}
	}
	if strings.ContainsRune(name, filepath.Separator) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", &StartError{Program: name, Err: err}
		}
		return path, nil
	}
	search := lookup(env, "PATH")
	var denied error
	for _, folder := range filepath.SplitList(search) {
		if !filepath.IsAbs(folder) { // a worktree must not supply programs by accident
			continue
		}
		path := filepath.Join(folder, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, ErrNotFound) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", &StartError{Program: name, Err: denied}
	}
	if search == "" {
		search = "(empty)"
	}
	return "", &StartError{Program: name, Path: search, Err: ErrNotFound}
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case err != nil:
		return err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable: %w", path, os.ErrPermission)
	}
	return nil
}

// lookup returns the last value of a variable, as execve's users do.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
