package plan

import "golang.org/x/text/unicode/norm"

// Estimation constants. They are on the generous side: an estimate that is too
// small sends a node to a pool that must refuse it.
const (
	promptTokens    = 1500   // instructions that every prompt carries
	bytesPerToken   = 3      // source code; prose is closer to 4
	unknownFile     = 2000   // a file whose size nobody looked up
	mostTokens      = 25_000 // of one file: beyond it agents read excerpts
	workTokens      = 4000   // reading around and editing, per finding
	commandTokens   = 500    // output of one verify command
	descriptionTail = 60     // bytes that a finding's fixed words take
)

// EstimateTokens estimates what a node's prompt and files take of a model's
// context. A declared estimate wins. sizes are bytes per path; a file that is not
// in it counts as one of middling size.
func EstimateTokens(n Node, findings []Finding, sizes map[string]int64) int {
	if n.EstimateTokens > 0 {
		return n.EstimateTokens
	}
	text := len(n.Instructions)
	tokens := promptTokens + len(n.Verify)*commandTokens
	counted := map[string]bool{}
	file := func(path string) {
		key := norm.NFC.String(path)
		if counted[key] {
			return
		}
		counted[key] = true
		size, known := sizeOf(sizes, path)
		if !known {
			tokens += unknownFile
			return
		}
		tokens += int(min(size/bytesPerToken, mostTokens))
	}
	for _, f := range findings {
		text += descriptionTail + len(f.Title) + len(f.Summary)
		for _, e := range f.Evidence {
			text += len(e)
		}
		tokens += workTokens
		for _, l := range f.Files {
			file(l.Path)
		}
	}
	for _, globs := range [][]string{n.Write, n.Read} {
		for _, path := range literalPaths(globs) {
			if _, known := sizeOf(sizes, path); known { // a literal that does not exist is a file to be made
				file(path)
			}
		}
	}
	return tokens + text/bytesPerToken
}

// literalPaths returns the paths that globs name without wildcards.
func literalPaths(globs []string) []string {
	var paths []string
	for _, text := range globs {
		compiled, err := compileGlob(text, false)
		if err != nil {
			continue
		}
		for _, g := range compiled {
			if g.literal {
				paths = append(paths, g.path())
			}
		}
	}
	return paths
}

// path is the path that a literal glob names.
func (g glob) path() string {
	path := ""
	for i, p := range g.parts {
		if i > 0 {
			path += "/"
		}
		path += p.text
	}
	return path
}
