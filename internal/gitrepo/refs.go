package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// zeroOID stands for "no value" in update-ref; git accepts it in any length of its object format.
func zeroOID(format objectFormat) string { return strings.Repeat("0", format.hexLen()) }

// symrefDepth is git's own limit.
const symrefDepth = 5

// readRef reads a ref of a repository on disk as git's files backend does: the loose file, then
// packed-refs, through symbolic refs. (git 2.39 has no other backend and refuses a repository that
// names one.) An absent ref is the empty string.
func readRef(gitDir, name string) (string, error) {
	for range symrefDepth {
		value, err := readRefValue(gitDir, name)
		if err != nil || value == "" {
			return "", err
		}
		target, symbolic := strings.CutPrefix(value, "ref:")
		if !symbolic {
			if !isOID(value) {
				return "", fmt.Errorf("read ref %s: not an object id", name)
			}
			return value, nil
		}
		name = strings.TrimSpace(target)
		if !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") {
			return "", fmt.Errorf("read ref: bad symbolic ref")
		}
	}
	return "", fmt.Errorf("read ref %s: too many symbolic refs", name)
}

// readRefValue is what a ref holds: an object id, "ref: <name>", or nothing.
func readRefValue(gitDir, name string) (string, error) {
	path := filepath.Join(gitDir, filepath.FromSlash(name))
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.ENOTDIR) {
			return "", fmt.Errorf("read ref %s: %w", name, err)
		}
		packed, err := readPackedRefs(gitDir)
		if err != nil || packed[name] != "" {
			return packed[name], err
		}
		// pack-refs writes the packed file before it deletes the loose one, so absent in both means
		// absent, unless the ref was made just now.
		if info, err := os.Lstat(path); err != nil || info.IsDir() {
			return "", nil //nolint:nilerr // absent
		}
	}
}

func readPackedRefs(gitDir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(gitDir, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read packed refs: %w", err)
	}
	return parsePackedRefs(text), nil
}

func parsePackedRefs(text []byte) map[string]string {
	refs := map[string]string{}
	for line := range bytes.Lines(text) {
		if line[0] == '#' || line[0] == '^' {
			continue
		}
		oid, name, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		if ok && isOID(oid) {
			refs[name] = oid
		}
	}
	return refs
}

// listRefs reads all refs of a repository on disk for which want is true.
func listRefs(gitDir string, want func(name string) bool) (map[string]string, error) {
	refs := map[string]string{}
	packed, err := readPackedRefs(gitDir)
	if err != nil {
		return nil, err
	}
	for name, oid := range packed {
		if want(name) {
			refs[name] = oid
		}
	}
	err = filepath.WalkDir(filepath.Join(gitDir, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, _ := filepath.Rel(gitDir, p)
		name := filepath.ToSlash(rel)
		if d.IsDir() || strings.HasSuffix(name, ".lock") || !want(name) {
			return nil
		}
		oid, err := readRef(gitDir, name)
		if err != nil || oid == "" {
			return err
		}
		refs[name] = oid
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list refs of %s: %w", gitDir, err)
	}
	return refs, nil
}

// A refUpdate is one compare-and-swap; an empty old means "must not exist", an empty new "delete".
type refUpdate struct{ name, old, new string }

// updateRefsScript is the input of update-ref --stdin -z: one transaction per argument, each
// independent of the later ones, since the command stops at the first that is refused.
func updateRefsScript(format objectFormat, transactions ...[]refUpdate) []byte {
	zero := zeroOID(format)
	var b bytes.Buffer
	for _, updates := range transactions {
		b.WriteString("start\x00")
		for _, u := range updates {
			old, new := u.old, u.new
			if old == "" {
				old = zero
			}
			if new == "" {
				new = zero
			}
			fmt.Fprintf(&b, "update %s\x00%s\x00%s\x00", u.name, new, old)
		}
		b.WriteString("prepare\x00commit\x00")
	}
	return b.Bytes()
}

// updateRefs runs the transactions in one process and returns how many were committed. An error
// means that the first was not committed, or that nobody knows.
func (s *Store) updateRefs(ctx context.Context, gitDir string, format objectFormat, transactions ...[]refUpdate) (int, error) {
	res, err := s.git.run(ctx, command{
		args:   []string{"update-ref", "--stdin", "-z"},
		dir:    gitDir,
		gitDir: gitDir,
		stdin:  bytes.NewReader(updateRefsScript(format, transactions...)),
	})
	done := bytes.Count(res.stdout, []byte("commit: ok\n"))
	if err != nil && done > 0 && exitCode(err) > 0 {
		return done, nil
	}
	if err != nil {
		return done, fmt.Errorf("update refs of %s: %w", gitDir, err)
	}
	return done, nil
}
