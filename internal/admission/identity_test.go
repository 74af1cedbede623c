package admission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunIdsNameHubPlanAndGeneration(t *testing.T) {
	t.Parallel()
	hub := "/repos/service"
	first := RunID(hub, "tls", 1)
	require.Regexp(t, `^tls-[0-9a-f]{6}$`, first)
	require.Equal(t, first, RunID(hub, "tls", 1), "the same run has the same id everywhere")
	require.Regexp(t, `^tls-[0-9a-f]{6}\.g2$`, RunID(hub, "tls", 2))
	require.Equal(t, "e0655a", Identity("/r", "p", 1)[:6])
	ids := map[string]bool{first: true}
	for _, other := range []string{RunID(hub, "tls", 2), RunID(hub, "tls", 3), RunID(hub, "other", 1), RunID("/repos/other", "tls", 1)} {
		require.False(t, ids[other], other)
		ids[other] = true
	}
}

func TestNamesAreRememberedForEver(t *testing.T) {
	t.Parallel()
	var book nameBook
	for i := range 3000 {
		name := fmt.Sprintf("run-%d", i*7%3000)
		require.False(t, book.has(name))
		book.add(name)
		book.add(name)
		require.True(t, book.has(name))
	}
	require.Len(t, book, 3000*digestSize)
	for i := range 3000 {
		require.True(t, book.has(fmt.Sprintf("run-%d", i)))
	}
	require.False(t, book.has("run-3000"))
}
