package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLevelsFollowEdgesAndPhases(t *testing.T) {
	t.Parallel()
	require.Equal(t, [][]string{{"a", "c"}, {"b"}, {"d"}, {"e"}}, Levels([]Node{
		{ID: "a"},
		{ID: "b", DependsOn: []string{"a"}},
		{ID: "c"},
		{ID: "d", Phase: 2},
		{ID: "e", Phase: 2, DependsOn: []string{"d", "a"}},
	}))
	require.Empty(t, Levels(nil))
}

func TestALevelHoldsNoNodeBehindACycle(t *testing.T) {
	t.Parallel()
	nodes := []Node{{ID: "a", DependsOn: []string{"b"}}, {ID: "b", DependsOn: []string{"a"}}, {ID: "c", DependsOn: []string{"a"}}, {ID: "d"}}
	depths, ok := Depths(nodes)
	require.False(t, ok)
	require.Equal(t, []int{-1, -1, -1, 0}, depths)
	require.Equal(t, [][]string{{"d"}}, Levels(nodes))
}

// genNodes draws nodes whose edges go to earlier nodes of no higher phase, shuffled.
func genNodes() *rapid.Generator[[]Node] {
	return rapid.Custom(func(t *rapid.T) []Node {
		nodes := make([]Node, rapid.IntRange(1, 30).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i] = Node{ID: fmt.Sprint("n", i), Phase: rapid.IntRange(0, 3).Draw(t, "phase")}
			for j := range i {
				if nodes[j].Phase <= nodes[i].Phase && rapid.IntRange(0, 5).Draw(t, "edge") == 0 {
					nodes[i].DependsOn = append(nodes[i].DependsOn, nodes[j].ID)
				}
			}
		}
		return rapid.Permutation(nodes).Draw(t, "order")
	})
}

func TestEveryEdgeGoesToALowerLevelAndPhasesNeverShareOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := genNodes().Draw(t, "nodes")
		depths, ok := Depths(nodes)
		require.True(t, ok)
		require.Empty(t, Cycles(nodes))
		at := map[string]int{}
		for i, n := range nodes {
			at[n.ID] = depths[i]
		}
		for i, n := range nodes {
			deepest := -1
			for _, d := range n.DependsOn {
				require.Less(t, at[d], depths[i])
				deepest = max(deepest, at[d])
			}
			for j, other := range nodes {
				if other.Phase < n.Phase {
					require.Less(t, depths[j], depths[i])
					deepest = max(deepest, depths[j])
				}
			}
			require.Equal(t, deepest+1, depths[i], "no node waits longer than it must")
		}
		total := 0
		for _, level := range Levels(nodes) {
			require.NotEmpty(t, level)
			total += len(level)
		}
		require.Len(t, nodes, total)
	})
}

func TestCyclesAreRealPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]Node, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i].ID = fmt.Sprint("n", i)
			for j := range nodes {
				if rapid.IntRange(0, 6).Draw(t, "edge") == 0 {
					nodes[i].DependsOn = append(nodes[i].DependsOn, fmt.Sprint("n", j))
				}
			}
		}
		cycles := Cycles(nodes)
		_, acyclic := Depths(nodes)
		require.Equal(t, acyclic, len(cycles) == 0)
		for _, cycle := range cycles {
			for k, id := range cycle {
				n := nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.ID == id })]
				require.Contains(t, n.DependsOn, cycle[(k+1)%len(cycle)])
			}
			sorted := slices.Sorted(slices.Values(cycle))
			require.Len(t, slices.Compact(sorted), len(cycle), "no node twice")
		}
	})
}

func TestLongChainsNeedNoDeepStack(t *testing.T) {
	t.Parallel()
	nodes := make([]Node, 20_000)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprint(i), DependsOn: []string{fmt.Sprint(i + 1)}}
	}
	require.Empty(t, Cycles(nodes))
	require.Len(t, Levels(nodes), len(nodes))
	nodes[len(nodes)-1].DependsOn = []string{"0"}
	cycles := Cycles(nodes)
	require.Len(t, cycles, 1)
	require.Len(t, cycles[0], len(nodes))
}
