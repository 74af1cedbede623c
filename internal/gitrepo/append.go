package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// appendBoth resolves conflicts in which both sides only added lines to a file: ours, then theirs.
// Any other conflict stays one.
func (m *Mirror) appendBoth(ctx context.Context, req MergeRequest, conflict MergeResult) (MergeResult, error) {
	sides, err := m.conflictSides(ctx, req)
	if err != nil {
		return MergeResult{}, err
	}
	result := MergeResult{Tree: conflict.Tree}
	var edits []Change
	for _, path := range conflict.Conflicts {
		s := sides[path]
		text, ok, err := m.unionOf(ctx, s)
		if err != nil {
			return MergeResult{}, err
		}
		if !ok {
			result.Conflicts = append(result.Conflicts, path)
			continue
		}
		blob, err := writeObject(m.dir, m.format, "blob", text)
		if err != nil {
			return MergeResult{}, err
		}
		edits = append(edits, Change{Path: path, Kind: Modified, newMode: s[1].mode, blob: blob})
		result.Appended = append(result.Appended, path)
	}
	if len(result.Conflicts) > 0 {
		result.Appended = nil
		return result, nil
	}
	result.Tree, err = m.editTree(ctx, conflict.Tree, edits)
	result.Clean = err == nil
	return result, err
}

// A side is one of the three versions of a path: base, ours, theirs.
type side struct {
	mode, blob string
	text       []byte
}

// conflictSides reads the stages of the conflicting paths from merge-tree and their content.
func (m *Mirror) conflictSides(ctx context.Context, req MergeRequest) (map[string][3]side, error) {
	cmd := mergeTreeCommand(req.Truth, req.Commit.OID)
	cmd.args = slices.DeleteFunc(cmd.args, func(a string) bool { return a == "--name-only" })
	res, err := m.run(ctx, cmd)
	if err != nil {
		return nil, err
	}
	sides, err := parseStages(res.stdout)
	if err != nil {
		return nil, err
	}
	var blobs []string
	for _, s := range sides {
		for _, one := range s {
			if one.blob != "" {
				blobs = append(blobs, one.blob)
			}
		}
	}
	texts, err := m.readBlobs(ctx, blobs)
	if err != nil {
		return nil, err
	}
	for path, s := range sides {
		for i := range s {
			s[i].text = texts[s[i].blob]
		}
		sides[path] = s
	}
	return sides, nil
}

// parseStages reads the output of merge-tree: the tree, then a record per path and side of a conflict.
func parseStages(out []byte) (map[string][3]side, error) {
	records := splitNUL(out)
	if len(records) == 0 {
		return nil, errors.New("unexpected answer of merge-tree: it is empty")
	}
	sides := map[string][3]side{}
	for _, record := range records[1:] {
		// mode SP oid SP stage TAB path
		head, path, ok := strings.Cut(record, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 || len(f[2]) != 1 || f[2][0] < '1' || f[2][0] > '3' {
			return nil, fmt.Errorf("unexpected answer of merge-tree: %q", record)
		}
		s := sides[path]
		s[f[2][0]-'1'] = side{mode: f[0], blob: f[1]}
		sides[path] = s
	}
	return sides, nil
}

// unionOf merges two sides that only added to the base.
func (m *Mirror) unionOf(ctx context.Context, s [3]side) (text []byte, ok bool, err error) {
	regular := func(x side) bool { return strings.HasPrefix(x.mode, "100") && bytes.IndexByte(x.text, 0) < 0 }
	if !regular(s[1]) || !regular(s[2]) || s[0].blob != "" && !regular(s[0]) {
		return nil, false, nil
	}
	if !onlyAdds(s[0].text, s[1].text) || !onlyAdds(s[0].text, s[2].text) {
		return nil, false, nil
	}
	dir, err := os.MkdirTemp(m.store.path(trashDir), "union-")
	if err != nil {
		return nil, false, err
	}
	defer os.RemoveAll(dir)
	args := []string{"merge-file", "--union", "-p", "-q"}
	for _, i := range []int{1, 0, 2} {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, endLine(s[i].text), 0o600); err != nil {
			return nil, false, err
		}
		args = append(args, file)
	}
	res, err := m.run(ctx, command{args: args})
	return res.stdout, err == nil, err
}

// endLine ends a text that lacks its last newline, so that two additions do not become one line.
func endLine(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(slices.Clip(text), '\n')
}

// onlyAdds says that after is before with lines put in: every line of before is there, in order.
func onlyAdds(before, after []byte) bool {
	rest := slices.Collect(bytes.Lines(endLine(after)))
	for line := range bytes.Lines(endLine(before)) {
		i := slices.IndexFunc(rest, func(l []byte) bool { return bytes.Equal(l, line) })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// editTree writes a tree with some paths replaced, through an index of its own.
func (m *Mirror) editTree(ctx context.Context, tree string, edits []Change) (string, error) {
	dir, err := os.MkdirTemp(m.store.path(trashDir), "index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	index := filepath.Join(dir, "index")
	commands := append([]command{{args: []string{"read-tree", tree}}}, stageCommands(edits)...)
	for _, c := range commands {
		c.index = index
		if _, err := m.run(ctx, c); err != nil {
			return "", err
		}
	}
	res, err := m.run(ctx, command{args: []string{"write-tree"}, index: index})
	return res.text(), err
}
