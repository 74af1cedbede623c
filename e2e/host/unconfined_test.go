package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

const doneLine = "echo done >n/work.txt; "

func TestHonestWorkerIsNotSaidToHaveEscaped(t *testing.T) {
	t.Parallel()
	r := newRig(t, doneLine, nil)
	end, err := r.work()
	require.NoError(t, err)
	require.Empty(t, end.Friction)
	landed := r.land()
	require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
	require.NotEmpty(t, landed.Commit)
}

// Without a sandbox a worker can reach the user's checkout and the mirror: each
// part is told apart.
func TestEscapeIsNoticedWithoutASandbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, does, note string }{
		{"tracked file", "echo x >>$HUB/README.md", "the user's checkout (status)"},
		{"untracked file", "echo x >$HUB/new.txt", "the user's checkout (status)"},
		{"index", "echo x >>$HUB/README.md; git -C $HUB add README.md", "the user's checkout (index)"},
		{"branch", "git -C $HUB branch theirs", "the user's checkout (refs)"},
		{"other branch checked out", "git -C $HUB checkout -q -b theirs", "the user's checkout (head, refs)"},
		{"configuration", "git -C $HUB config user.name x", "the user's checkout (config)"},
		{"hook", "echo x >$HUB/.git/hooks/post-commit", "the user's checkout (hooks)"},
		{"mirror's configuration", "git config --file $(git rev-parse --git-common-dir)/config core.fsmonitor 'touch '$HUB.proof", "the mirror (config)"},
		{"mirror's refs", "git update-ref refs/heads/theirs HEAD", "the mirror (refs)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, doneLine+"HUB={hub}; "+c.does, nil)
			end, err := r.work()
			require.NoError(t, err)
			require.Len(t, end.Friction, 1)
			require.Equal(t, contract.FrictionEscaped, end.Friction[0].Type)
			require.Equal(t, node, end.Friction[0].Discriminator)
			require.Contains(t, end.Friction[0].Note, c.note)
			landed := r.land()
			require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
			require.NoFileExists(t, r.repo.Dir+".proof", "git ran what the worker had planted")
		})
	}
}

func TestWorkInAnotherTreeIsNotNothingDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "echo done >{hub}/n/work.txt", nil)
	_, err := r.work()
	require.NoError(t, err)
	landed := r.land()
	require.Equal(t, contract.OutcomeError, landed.Outcome)
	require.Equal(t, contract.CauseWork, landed.Cause)
	require.Contains(t, landed.Reason, "nothing was changed")
	require.Contains(t, landed.Reason, "but something changed elsewhere meanwhile: the user's checkout (status)")
}

func TestNothingIsStartedBelowTheDiskFloor(t *testing.T) {
	t.Parallel()
	r := newRig(t, doneLine, nil)
	r.host.DiskFloor = 1 << 60
	_, err := r.work()
	var app *temporal.ApplicationError
	require.True(t, errors.As(err, &app), "%v", err)
	require.Equal(t, contract.ErrorDiskFull, app.Type(), "the workflow takes it for an interruption that charges nobody")
	require.Contains(t, app.Message(), "starter gc")
	entries, err := os.ReadDir(filepath.Join(r.host.StateDir, "worktrees"))
	require.True(t, err != nil || len(entries) == 0, "a tree was made")
	r.host.DiskFloor = 1
	_, err = r.work()
	require.NoError(t, err)
}

func TestSparseTreeHoldsScopeAndFindingsOnly(t *testing.T) {
	t.Parallel()
	sparse := func(write ...string) func(*plan.Plan) {
		return func(p *plan.Plan) { p.Git.Sparse, p.Nodes[0].Write = true, write }
	}
	r := newRig(t, doneLine+"test ! -e other/file.txt", sparse("n/**"))
	end, err := r.work()
	require.NoError(t, err)
	require.Zero(t, end.ExitCode, end.Tail)
	landed := r.land()
	require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
	require.Equal(t, []string{"n/work.txt"}, landed.Paths, "what was not checked out is not taken for deleted")

	for name, write := range map[string][]string{"owns everything": nil, "braces": {"{n,m}/**"}} {
		r := newRig(t, doneLine+"test -e other/file.txt", sparse(write...))
		end, err := r.work()
		require.NoError(t, err)
		require.Zero(t, end.ExitCode, name)
	}
}

// A worker that takes the tree's .git away, or puts a repository of its own in
// its place, has done its work all the same; the tree gets its own back before
// anything is verified in it.
func TestTakenGitFileIsPutBackBeforeVerification(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{
		"removed":              "rm .git",
		"another repository":   "rm .git; git init -q .; git config core.fsmonitor 'touch '{hub}.proof",
		"a file that lies":     "echo 'gitdir: {hub}/.git' >.git",
		"a link to another":    "rm .git; ln -s {hub}/.git .git",
		"an empty folder":      "rm .git; mkdir .git",
		"one that is not read": "chmod 000 .git",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, doneLine+does, nil)
			_, err := r.work()
			require.NoError(t, err)
			landed := r.land()
			require.Equal(t, contract.OutcomeSuccess, landed.Outcome, landed.Reason)
			require.Equal(t, []string{"n/work.txt"}, landed.Paths)
			require.NoFileExists(t, r.repo.Dir+".proof")
			require.Equal(t, "main", r.repo.Git(t, "branch", "--show-current"))
		})
	}
}
