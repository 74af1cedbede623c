package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestGarbageOfClosedRunsOnly lists and removes what a closed run left, and
// nothing of a run that is open, nor anything that did not land while it is young.
func TestGarbageOfClosedRunsOnly(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{})
	closed := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "tidy"}}, Policy: map[string]any{"unattended": true}})
	lab.Control.Script(t, closed.Run, "tidy", "mark tidy/work.txt", "mark README.md", "result resolved")
	lab.Start(t, closed)
	require.Equal(t, contract.RunBlocked, lab.Client.AwaitClosed(t, closed.Run).Status)
	open := testkit.NewCase(t, closed.Run+"-open", nodesOf("wait"))
	lab.Control.Script(t, open.Run, "wait", "mark wait/work.txt", "tell there", "wait go", "result resolved")
	lab.Start(t, open)
	lab.Control.Await(t, open.Run, "there")

	dry := garbage(t, lab)
	require.Contains(t, dry, "attempts "+closed.Run)
	for class := range dry {
		require.NotContains(t, class, open.Run)
		require.NotContains(t, class, "salvage", "it is young")
		require.NotContains(t, class, "mirror", "it holds salvage, or is in use")
	}
	require.DirExists(t, filepath.Join(lab.Host.State, "attempts", closed.Run))
	require.Equal(t, dry, garbage(t, lab), "a dry run removes nothing")

	// Salvage older than no days at all.
	swept := garbage(t, lab, "--yes", "--salvage-days", "0")
	require.Contains(t, swept, "salvage "+closed.Run)
	for class, row := range swept {
		require.True(t, row.Removed, "%s: %+v", class, row)
	}
	require.NoDirExists(t, filepath.Join(lab.Host.State, "attempts", closed.Run))
	require.NotEmpty(t, closed.Repo.Git(t, "for-each-ref", "refs/mendflow/salvage/"+closed.Run), "the user's copy stays")
	require.NotEmpty(t, lab.Client.Report(t, closed.Run).Run, "the report stays")
	lab.Client.OK(t, "logs", closed.Run, "tidy")

	require.NoError(t, lab.Control.Tell(open.Run, "go"))
	require.Equal(t, contract.RunCompleted, lab.Client.AwaitClosed(t, open.Run).Status)
	testkit.CheckInvariants(t, lab.Scene(open))
	left := garbage(t, lab, "--yes", "--salvage-days", "0")
	require.Contains(t, left, "attempts "+open.Run)
	mirrors, err := os.ReadDir(filepath.Join(lab.Host.State, "mirrors"))
	require.NoError(t, err)
	for _, m := range mirrors {
		require.False(t, strings.HasSuffix(m.Name(), ".git"), "%s is used by closed runs alone", m.Name())
	}
	require.NotContains(t, lab.Client.OK(t, "gc"), "CLASS")
}

type garbageRow struct {
	Class, Run, Path, Left string
	Removed                bool
}

// garbage runs `starter gc` and returns what it lists, by class and run.
func garbage(t *testing.T, lab *testkit.Lab, args ...string) map[string]garbageRow {
	t.Helper()
	rows := map[string]garbageRow{}
	for line := range strings.Lines(lab.Client.OK(t, append([]string{"gc", "--json"}, args...)...)) {
		var row garbageRow
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		rows[strings.TrimSpace(row.Class+" "+row.Run)] = row
	}
	return rows
}
