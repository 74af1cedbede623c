package gitrepo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRestoreTruthTakesTheRunsOwnLandingsBack(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, b *bench) string{
		"commit on top": func(t *testing.T, b *bench) string {
			commit := plainGit(t, b.repo, "commit-tree", "-p", b.truth(), "-m", "theirs", b.truth()+"^{tree}")
			plainGit(t, b.repo, "update-ref", TruthRef(testRun), commit)
			return commit
		},
		"moved elsewhere": func(t *testing.T, b *bench) string {
			commit := plainGit(t, b.repo, "commit-tree", "-m", "theirs", b.truth()+"^{tree}")
			plainGit(t, b.repo, "update-ref", TruthRef(testRun), commit)
			return commit
		},
		"removed": func(t *testing.T, b *bench) string {
			plainGit(t, b.repo, "update-ref", "-d", TruthRef(testRun))
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, url bool) {
				b := openRun(t, url, nil)
				c1 := b.landEdit("n1", "src/a.txt", "one\n")
				c2 := b.landEdit("n2", "src/b.txt", "two\n")
				foreign := move(t, b)

				restored, err := b.mirror.RestoreTruth(t.Context(), testRun, b.base, c1, c2)
				require.NoError(t, err)
				require.Equal(t, c2, restored.State.Truth)
				require.Equal(t, c2, b.truth())
				if foreign != "" {
					require.Equal(t, ForeignRef(testRun, foreign), restored.Kept)
					require.Equal(t, foreign, plainGit(t, b.repo, "rev-parse", restored.Kept))
				} else {
					require.Empty(t, restored.Kept)
				}
				state, err := b.mirror.State(t.Context(), testRun, b.base)
				require.NoError(t, err)
				require.False(t, state.BranchMoved())
				require.Len(t, state.Landings, 2)

				again, err := b.mirror.RestoreTruth(t.Context(), testRun, b.base, c1)
				require.NoError(t, err)
				require.Empty(t, again.Kept, "it is as the run left it")
				b.landEdit("n3", "src/c.txt", "three\n") // and the run goes on
			})
		})
	}
}

func TestRestoreTruthWithoutLandingsGoesBackToTheBase(t *testing.T) {
	t.Parallel()
	b := openRun(t, false, nil)
	commit := plainGit(t, b.repo, "commit-tree", "-m", "theirs", b.base+"^{tree}")
	plainGit(t, b.repo, "update-ref", TruthRef(testRun), commit)
	restored, err := b.mirror.RestoreTruth(t.Context(), testRun, b.base, commit)
	require.NoError(t, err)
	require.Equal(t, b.base, b.truth())
	require.Equal(t, commit, plainGit(t, b.repo, "rev-parse", restored.Kept))
}
