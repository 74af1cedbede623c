package startercmd

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
)

func TestClosedRunsThatTheServerForgot(t *testing.T) {
	t.Parallel()
	store, err := artifacts.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	at := func(hour int) *time.Time {
		v := time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC)
		return &v
	}
	closed := func(run string, hour int) contract.SchedulerRun {
		return contract.SchedulerRun{Run: run, Status: contract.RunCompleted, Repository: "/r", SubmittedAt: *at(hour), StartedAt: at(hour + 1), ClosedAt: at(hour + 2)}
	}
	var pages []contract.Artifact
	for key, rows := range map[string][]contract.SchedulerRun{"a/p1.json": {closed("one", 1), closed("two", 2)}, "a/p2.json": {closed("three", 3)}} {
		data, err := json.Marshal(rows)
		require.NoError(t, err)
		_, err = store.Put(t.Context(), key, data)
		require.NoError(t, err)
		pages = append(pages, contract.Artifact{URI: key})
	}
	got, err := readPages(t.Context(), store, pages)
	require.NoError(t, err)
	require.Len(t, got, 3)

	listed := append(got, closed("four", 4), contract.SchedulerRun{Run: "open", SubmittedAt: *at(9)})
	rows := unknownRuns([]runRow{{Run: "two"}}, listed)
	require.Equal(t, []runRow{
		{Run: "four", Status: "completed", StartedAt: *at(5), ClosedAt: at(6), Repository: "/r"},
		{Run: "three", Status: "completed", StartedAt: *at(4), ClosedAt: at(5), Repository: "/r"},
		{Run: "one", Status: "completed", StartedAt: *at(2), ClosedAt: at(3), Repository: "/r"},
	}, rows)

	_, err = readPages(t.Context(), store, []contract.Artifact{{URI: "a/p9.json"}})
	require.ErrorContains(t, err, "--artifacts")
}
