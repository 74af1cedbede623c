package gitrepo

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ReadFile returns a file of a commit in the mirror; fs.ErrNotExist when it has none by that path.
func (m *Mirror) ReadFile(ctx context.Context, commit, path string) ([]byte, error) {
	if err := checkRev(commit); err != nil {
		return nil, err
	}
	entries, err := m.listTree(ctx, commit, path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Path == path && e.Kind != "commit" {
			blobs, err := m.readBlobs(ctx, []string{e.OID})
			if err != nil {
				return nil, fmt.Errorf("read %s of %s: %w", path, commit, err)
			}
			return blobs[e.OID], nil
		}
	}
	return nil, fmt.Errorf("read %s of %s: %w", path, commit, fs.ErrNotExist)
}

// A TreeEntry is a file of a commit.
type TreeEntry struct {
	Path string
	Mode string // six octal digits
	Kind string // blob, or commit for a submodule
	OID  string
	Size int64 // of a blob
}

// ListFiles lists the files of a commit in the mirror, by path; below the given paths when there are any.
func (m *Mirror) ListFiles(ctx context.Context, commit string, paths ...string) ([]TreeEntry, error) {
	if err := checkRev(commit); err != nil {
		return nil, err
	}
	return m.listTree(ctx, commit, paths...)
}

func checkRev(rev string) error {
	if !isOID(rev) {
		return fmt.Errorf("use revision %q: %w", rev, ErrBaseUnknown)
	}
	return nil
}

func (m *Mirror) listTree(ctx context.Context, commit string, paths ...string) ([]TreeEntry, error) {
	args := append([]string{"--literal-pathspecs", "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--"}, paths...)
	res, err := m.run(ctx, command{args: args})
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", commit, err)
	}
	entries, err := parseTree(res.stdout)
	if err != nil {
		return nil, fmt.Errorf("list files of %s: %w", commit, err)
	}
	return entries, nil
}

// parseTree reads the output of ls-tree -l.
func parseTree(out []byte) ([]TreeEntry, error) {
	var entries []TreeEntry
	for _, record := range splitNUL(out) {
		// mode SP kind SP oid SP size TAB path
		head, path, ok := strings.Cut(record, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 4 {
			return nil, fmt.Errorf("unexpected answer %q", record)
		}
		size, _ := strconv.ParseInt(f[3], 10, 64) // "-" for a submodule
		entries = append(entries, TreeEntry{Path: path, Mode: f[0], Kind: f[1], OID: f[2], Size: size})
	}
	return entries, nil
}

// ChangedPaths lists what differs between two commits or trees of the mirror, by path.
func (m *Mirror) ChangedPaths(ctx context.Context, from, to string) ([]string, error) {
	if from == to {
		return nil, nil
	}
	res, err := m.run(ctx, command{args: []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", from, to}})
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	return splitNUL(res.stdout), nil
}

// Diff is the patch between two commits or trees of the mirror, as git apply takes it; of the given
// paths when there are any. External diff programs and text conversions are never run.
func (m *Mirror) Diff(ctx context.Context, from, to string, paths ...string) ([]byte, error) {
	args := []string{"--literal-pathspecs", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--ignore-submodules=all",
		"--end-of-options", from, to, "--"}
	res, err := m.run(ctx, command{args: append(args, paths...)})
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	return res.stdout, nil
}
