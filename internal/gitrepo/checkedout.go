package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkedOut returns the working tree of a repository on disk whose HEAD is on the branch, empty when
// there is none.
func checkedOut(gitDir, branch string) (string, error) {
	heads := map[string]string{gitDir: filepath.Dir(gitDir)}
	entries, err := os.ReadDir(filepath.Join(gitDir, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read worktrees: %w", err)
	}
	for _, e := range entries {
		admin := filepath.Join(gitDir, "worktrees", e.Name())
		text, err := os.ReadFile(filepath.Join(admin, "gitdir"))
		if err == nil {
			heads[admin] = filepath.Dir(strings.TrimSpace(string(text)))
		}
	}
	for admin, tree := range heads {
		text, err := os.ReadFile(filepath.Join(admin, "HEAD"))
		if err == nil && strings.TrimSpace(string(text)) == "ref: "+branch {
			return tree, nil
		}
	}
	return "", nil
}
