package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCloseIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{action: merge, into: 'release/1.2'}":                                      "",
		"{action: push, remote: upstream, branch: fixes/x, token_env: FORGE_TOKEN}": "",
		"{action: pull-request, forge: gitlab, project: a/b/c, api: 'https://git.example.com/api/v4', remote: 'git@git.example.com:a/b/c.git', title: Fixes, draft: true}": "",
		"{action: merge, into: a..b}":                              `close.into: "a..b" is no branch`,
		"{action: merge, into: -x}":                                `close.into: "-x" is no branch`,
		"{action: merge, into: x.lock}":                            `close.into: "x.lock" is no branch`,
		"{action: push, branch: 'a b'}":                            `close.branch: "a b" is no branch`,
		"{action: pull-request, branch: main, into: main}":         "close.branch: it is the branch that the pull request is for",
		"{action: push, remote: '--upload-pack=x'}":                `close.remote: "--upload-pack=x" is no remote`,
		"{action: push, remote: 'https://u:secret@example.com/x'}": "close.remote: the URL holds a password",
		"{action: pull-request, project: x}":                       `close.project: "x" is no project`,
		"{action: pull-request, project: 'a/../b c'}":              `close.project: "a/../b c" is no project`,
		"{action: pull-request, api: 'ftp://x'}":                   "close.api: it is no http or https address",
		"{action: pull-request, token_env: TEMPORAL_API_KEY}":      "close.token_env: TEMPORAL_API_KEY is never passed through",
		"{action: merge, remote: origin}":                          "close.remote: the action merge does not use it; write action: push or pull-request, or leave it out",
		"{into: main}":                                             "close.into: the action none does not use it",
		"{action: push, draft: true}":                              "close.draft: the action push does not use it",
		"{action: pull-request, forge: gitea}":                     "close.forge: ",
	} {
		faults := faultTexts(minimalPlan + "close: " + text + "\n")
		if want == "" {
			p, found := Parse("plan.yaml", []byte(minimalPlan+"close: "+text+"\n"))
			require.NoError(t, found.Err(), text)
			require.NotNil(t, p)
			continue
		}
		found := false
		for _, f := range faults {
			found = found || strings.Contains(f, want)
		}
		require.True(t, found, "%s: %q has no %q", text, faults, want)
	}
}

func TestFoldedDuplicatesHaveADispositionOfTheirOwn(t *testing.T) {
	t.Parallel()
	p, faults := Parse("plan.yaml", []byte(`version: 1
findings:
  - {id: F-1, title: x, severity: high, files: [{path: a/b.go}], folded: [F-1b, F-1c]}
  - {id: F-2, title: y, severity: high, files: [{path: a/c.go}]}
`))
	require.NoError(t, faults.Err())
	require.Equal(t, []FindingDisposition{
		{Finding: "F-1", Disposition: DispositionPlanned},
		{Finding: "F-1b", Disposition: DispositionFolded, Cause: "F-1", Into: "F-1"},
		{Finding: "F-1c", Disposition: DispositionFolded, Cause: "F-1", Into: "F-1"},
		{Finding: "F-2", Disposition: DispositionPlanned},
	}, Select(p, nil).Findings)

	_, faults = Parse("plan.yaml", []byte(`version: 1
findings:
  - {id: F-1, title: x, severity: high, files: [{path: a/b.go}], folded: [f-2, "a b", F-3, F-3]}
  - {id: F-2, title: y, severity: high, files: [{path: a/c.go}]}
`))
	require.Len(t, faults.Errors(), 3)
}
