package activities

import (
	"strings"

	"mendflow/internal/plan"
)

// sparsePatterns are what a sparse checkout holds: what the node may write and
// read, and the files of its findings. None, the whole tree, for a node that may
// write everywhere and for globs that git does not know.
func sparsePatterns(n plan.Node, findings []plan.Finding) []string {
	if len(n.Write) == 0 {
		return nil
	}
	var patterns []string
	for _, globs := range [][]string{n.Write, n.Read} {
		for _, glob := range globs {
			if strings.ContainsAny(glob, "{}") {
				return nil
			}
			patterns = append(patterns, "/"+glob)
		}
	}
	for _, f := range findings {
		for _, file := range f.Files {
			patterns = append(patterns, "/"+sparseLiteral.Replace(file.Path))
		}
	}
	return patterns
}

// sparseLiteral keeps the characters of a path from being a pattern.
var sparseLiteral = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
