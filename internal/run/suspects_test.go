package run

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLinkBridgesNodesThatLandedNothing(t *testing.T) {
	t.Parallel()
	depends := map[string][]string{"b": {"a"}, "c": {"b", "x"}, "d": {"c"}, "x": {"a"}, "e": {"e"}}
	landed := []Landed{{Node: "a"}, {Node: "d"}, {Node: "a"}, {Node: "e"}, {Node: "x"}}
	Link(landed, func(node string) []string { return depends[node] })
	require.Equal(t, []Landed{
		{Node: "a"}, {Node: "d", DependsOn: []string{"a", "x"}}, {Node: "a"}, {Node: "e"}, {Node: "x", DependsOn: []string{"a"}},
	}, landed, "b and c landed nothing; x stands on a by itself")
	commits, ok := Reverts([]Landed{landed[0], landed[1], {Node: "y"}, {Node: "z"}, {Node: "v"}, {Node: "w"}}, "a", false)
	require.True(t, ok)
	require.Equal(t, []int{1, 0}, commits)
}

func TestPromptOfACulpritKeepsTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat("ä", 3000) + "--- FAIL: TestWhole"
	for _, text := range []string{
		Attribution{Verdict: Culprit, Culprit: "a"}.ForPrompt("go test ./...", tail),
		Attribution{Verdict: Interaction, Culprit: "a", Partner: "b"}.ForPrompt(strings.Repeat("x", 9000), tail),
		RedForPrompt("go test ./...", tail),
	} {
		require.LessOrEqual(t, len(text), maxCulpritTail)
		require.True(t, strings.HasSuffix(text, "--- FAIL: TestWhole"))
		require.True(t, utf8.ValidString(text))
	}
	require.Contains(t, Attribution{Verdict: Interaction, Partner: "b"}.ForPrompt("make", ""), "fails with it and b together")
}
