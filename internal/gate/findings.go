package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxIDs bounds the ids of one run. More than that cannot be compared in earnest, and then nothing is claimed.
const maxIDs = 10_000

// maxIDBytes bounds one id.
const maxIDBytes = 400

// position matches "file:line:col: message" and "file:line: message" at the start of a line.
var position = regexp.MustCompile(`^(?:vet: )?((?:[A-Za-z]:)?[^\s:][^:]*):\d+(?::\d+)?: (.*)$`)

// inner matches a position inside a message.
var inner = regexp.MustCompile(`(\.[A-Za-z0-9]+):\d+(?::\d+)?`)

// Findings reads the failure ids of `go build` and `go vet` (package comment).
// Root is the absolute path of the tree, dir the folder the command ran in, from the root.
//
// The compiler stops after ten errors of a package, and vet at the first package
// part that does not type-check: such a folder is blind, and for vet one id stands for it.
func Findings(output, root, dir string) Failures {
	var f Failures
	folder := ""
	for line := range strings.SplitSeq(output, "\n") {
		line = strings.TrimRight(line, " \r")
		m := position.FindStringSubmatch(line)
		switch {
		case line == "" || strings.ContainsAny(line[:1], "#\t "):
			// headers of packages and continuations of findings
		case strings.HasPrefix(line, "go: downloading ") || strings.HasPrefix(line, "exit status "):
		case strings.HasSuffix(line, "too many errors"):
			f.Blind = append(f.Blind, folder)
		case m == nil:
			f.IDs = append(f.IDs, inner.ReplaceAllString(line, "$1"))
		case strings.HasPrefix(line, "vet: "):
			folder = path.Dir(place(m[1], root, dir)) + "/"
			f.IDs = append(f.IDs, folder+": does not type-check")
			f.Blind = append(f.Blind, folder)
		default:
			file := place(m[1], root, dir)
			folder = path.Dir(file) + "/"
			f.IDs = append(f.IDs, file+": "+inner.ReplaceAllString(m[2], "$1"))
		}
	}
	f.IDs = numbered(f.IDs)
	return f.settle()
}

// place is a printed file as seen from the root of the tree.
func place(file, root, dir string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(root, "/")+"/"); ok && root != "" {
		return path.Clean(rest)
	}
	if path.IsAbs(file) {
		return file
	}
	return path.Join(dir, file)
}

// numbered tells repetitions of an id apart: "x", "x #2", "x #3".
func numbered(ids []string) []string {
	seen := map[string]int{}
	out := make([]string, len(ids))
	for i, id := range ids {
		seen[id]++
		if out[i] = id; seen[id] > 1 {
			out[i] = fmt.Sprintf("%s #%d", id, seen[id])
		}
	}
	return out
}

// settle bounds and sorts the ids; a failed run without any, or with too many, says nothing.
func (f Failures) settle() Failures {
	for i, id := range f.IDs {
		f.IDs[i] = shortID(strings.ToValidUTF8(id, "\uFFFD"))
	}
	slices.Sort(f.IDs)
	slices.Sort(f.Blind)
	f.IDs, f.Blind = slices.Compact(f.IDs), slices.Compact(f.Blind)
	if len(f.IDs) == 0 || len(f.IDs) > maxIDs {
		return Failures{}
	}
	f.Known = true
	return f
}

// shortID bounds an id and keeps ids apart that differ behind the cut.
func shortID(id string) string {
	if len(id) <= maxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clip(id, maxIDBytes-10) + " " + hex.EncodeToString(sum[:4])
}
