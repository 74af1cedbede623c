package testkit

import (
	"fmt"
	"slices"
	"strings"
)

// takenBack checks the commits that take others back: each names commits of the
// run that landed before it, none twice, and nothing of what they landed is in the
// tree of the truth.
func (s Scene) takenBack(h History) []string {
	var broken []string
	var before, gone []string
	byHash := map[string]Commit{}
	for _, c := range h.Commits {
		for _, oid := range c.Reverts {
			switch {
			case !slices.Contains(before, oid):
				broken = append(broken, fmt.Sprintf("commit %s takes back %s, which did not land before it", c.Hash, oid))
			case slices.Contains(gone, oid):
				broken = append(broken, fmt.Sprintf("commit %s takes back %s, which was taken back before", c.Hash, oid))
			}
			gone = append(gone, oid)
		}
		before, byHash[c.Hash] = append(before, c.Hash), c
	}
	if len(gone) == 0 {
		return broken
	}
	out, err := s.Repo.TryGit("grep", "-h", "-o", "-a", "-e", "^mark [^ ]*", h.truth)
	if err != nil && !strings.Contains(err.Error(), "exit status 1:") { // 1: nothing matches
		return append(broken, err.Error())
	}
	for line := range strings.Lines(out) {
		for _, oid := range gone {
			c := byHash[oid]
			if c.Node != "" && strings.HasPrefix(line, fmt.Sprintf("mark %s/%s/a%s/", s.Run, c.Node, c.Attempt)) {
				broken = append(broken, fmt.Sprintf("%q is on the truth, and its commit %s was taken back", strings.TrimSpace(line), oid))
			}
		}
	}
	return broken
}
