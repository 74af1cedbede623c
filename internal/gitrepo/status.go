package gitrepo

import (
	"bytes"
	"strings"
)

// statusCommand compares our own index, which holds the base, with the files: what the worker did to
// its index or HEAD plays no part. It reads no nested repository and writes nothing.
func (w *Worktree) statusCommand() command {
	return w.command("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching",
		"--no-renames", "--no-ahead-behind", "--ignore-submodules=all")
}

// A statusEntry is one record of status --porcelain=v2 -z.
type statusEntry struct {
	kind             byte // '1' tracked, '?' untracked, '!' ignored
	change           byte // of a tracked path: M, T, D; '.' when file and index agree
	oldMode, newMode string
	blob             string
	path             string // of an untracked or ignored folder: ends in a slash
}

func parseStatus(out []byte) []statusEntry {
	var entries []statusEntry
	for record := range bytes.SplitSeq(out, []byte{0}) {
		if len(record) < 3 {
			continue
		}
		switch record[0] {
		case '?', '!':
			entries = append(entries, statusEntry{kind: record[0], path: string(record[2:])})
		case '1':
			// 1 XY sub mH mI mW hH hI path
			f := strings.SplitN(string(record), " ", 9)
			if len(f) == 9 && len(f[1]) == 2 && f[8] != "" {
				entries = append(entries, statusEntry{kind: '1', change: f[1][1], oldMode: f[4], newMode: f[5], blob: f[7], path: f[8]})
			}
		}
	}
	return entries
}

func splitNUL(out []byte) []string {
	var parts []string
	for p := range bytes.SplitSeq(out, []byte{0}) {
		if len(p) > 0 {
			parts = append(parts, string(p))
		}
	}
	return parts
}
