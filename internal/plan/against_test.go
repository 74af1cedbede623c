package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const repoPlan = `version: 1
findings:
  - {id: F-1, title: t, severity: high, files: [{path: a.go}, {path: gone.go}]}
  - {id: F-2, title: t, severity: high, files: [{path: away.go}]}
  - {id: F-3, title: t, severity: high, files: [{path: new.go}]}
nodes:
  - {id: A, findings: [F-1], write: [a.go, a_test.go, lib], read: [docs/missing.md], verify: [[go, test, -run=X, ./a_test.go]]}
  - {id: B, findings: [F-2], write: [b.go]}
  - {id: C, findings: [F-3], write: ["app/[id]/p.tsx", draft.go], verify: [node a_test.go, "sh -c 'cat tools/x.sh'"]}
  - {id: D, findings: [F-4], write: [d.go], depends_on: [A], verify: [[node, a_test.go]]}
`

func repoFaults(t *testing.T, text string, facts *Facts) []string {
	t.Helper()
	faults := Locate(ValidateAgainst(parse(t, text), facts), "plan.yaml", []byte(text))
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func repoText() string {
	return repoPlan[:len("version: 1\nfindings:\n")] + "  - {id: F-4, title: t, severity: high, files: [{path: a.go}]}\n" + repoPlan[len("version: 1\nfindings:\n"):]
}

func TestNamedPathsAreWhatTheRepositoryIsAskedFor(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"a.go", "a_test.go", "app/[id]/p.tsx", "away.go", "b.go", "d.go", "docs/missing.md", "draft.go", "gone.go", "lib", "new.go", "tools/x.sh",
	}, NamedPaths(parse(t, repoText())))
}

func TestValidateAgainstTheRepository(t *testing.T) {
	t.Parallel()
	facts := &Facts{
		Sizes:     map[string]int64{"a.go": 1, "app/[id]/p.tsx": 1},
		Folders:   []string{"lib"},
		Untracked: []string{"new.go", "draft.go"},
	}
	require.Equal(t, []string{
		"plan.yaml:1:1: gate.commands: the plan names no gate commands and none could be discovered at the base; write gate commands, or commands: none to run without a gate",
		"plan.yaml:4:48: warning: findings[1].files: finding F-1 names files that do not exist at the base: gone.go",
		"plan.yaml:5:48: warning: findings[2].files: finding F-2 is dropped, none of its files exists at the base: away.go; a file that the repair makes belongs into the node's write scope, not here",
		"plan.yaml:6:48: findings[3].files: finding F-3 names files that exist only untracked in your checkout: new.go; commit them, or start with --include-uncommitted",
		`plan.yaml:8:55: warning: nodes[0].write[2]: "lib" is a folder: the glob matches nothing in it; write "lib/**"`,
		"plan.yaml:8:68: warning: nodes[0].read[0]: docs/missing.md does not exist at the base",
	}, repoFaults(t, repoText(), facts))
}

func TestVerifyThatNamesASiblingsFileIsWarnedAbout(t *testing.T) {
	t.Parallel()
	facts := &Facts{
		Sizes:              map[string]int64{"a.go": 1, "app/[id]/p.tsx": 1, "gone.go": 1, "away.go": 1, "docs/missing.md": 1},
		Untracked:          []string{"new.go", "draft.go"},
		IncludeUncommitted: true,
		Gate:               []Command{{Argv: []string{"node", "a_test.go"}}},
	}
	require.Equal(t, []string{
		`plan.yaml:10:38: warning: nodes[2].write[0]: "app/[id]/p.tsx" names an existing file, but as a glob it does not match it; write "app/\\[id\\]/p.tsx"`,
		"plan.yaml:10:76: warning: nodes[2].verify[0]: 2 nodes verify with a command that runs everything (node a_test.go), so that each fails on the others' faults: C, D; verify only what the node repairs; the whole belongs to the gate",
		"plan.yaml:10:76: warning: nodes[2].verify[0]: a_test.go does not exist at the base and only A, for which C does not wait, may make it; verify something else, or let C depend on A",
	}, repoFaults(t, repoText(), facts), "A makes the file itself, and D waits for A")
}

func TestEverythingMissingIsAnError(t *testing.T) {
	t.Parallel()
	got := repoFaults(t, minimalPlan+"gate: {commands: none}\n", &Facts{})
	require.Equal(t, []string{
		"plan.yaml:2:11: findings: nothing is left to do: 1 dropped_missing_files (F-1: its files do not exist at the base: a/b.go)",
		"plan.yaml:2:55: warning: findings[0].files: finding F-1 is dropped, none of its files exists at the base: a/b.go; a file that the repair makes belongs into the node's write scope, not here",
	}, got)
}

func TestFilesAreFoundInWhicheverNormalFormGitKnowsThem(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9.go", "cafe\u0301.go"
	for _, written := range []string{composed, decomposed} {
		p := parse(t, "version: 1\nfindings: [{id: F, title: t, severity: low, files: [{path: "+written+"}]}]\ngate: {commands: none}\n")
		require.Equal(t, written, p.Findings[0].Files[0].Path, "git knows a file by its bytes")
		require.Equal(t, []string{decomposed, composed}, NamedPaths(p))
		for _, known := range []string{composed, decomposed} {
			facts := &Facts{Sizes: map[string]int64{known: 9000}}
			require.Empty(t, ValidateAgainst(p, facts))
			require.Len(t, Select(p, facts).Nodes, 1)
			require.True(t, InScope(p.Nodes[0].Write, known, false))
			require.Equal(t, promptTokens+workTokens+3000+(descriptionTail+1)/bytesPerToken, Skeleton(p, Select(p, facts), facts.Sizes)[0].Tokens)
		}
	}
}
