package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.Equal(t, 9.0, percentile([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 90))
	require.Equal(t, 10.0, percentile([]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 100))
	require.Equal(t, 5.0, percentile([]float64{5}, 90))
}

func TestTableJudgesAgainstFloorAndGoal(t *testing.T) {
	t.Parallel()
	text := table([]row{
		{figure: "good", value: 1, floor: 2, goal: 1},
		{figure: "fair", value: 1.5, floor: 2, goal: 1, unit: "s", samples: []float64{1.25, 1.75}},
		{figure: "bad", value: 2.004, floor: 2, goal: 1},
	})
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 5)
	require.Contains(t, lines[2], "| 1 | 2 | 1 | goal met |")
	require.Contains(t, lines[3], "| 1.5 s | 2 s | 1 s | floor met | 1.25 1.75 |")
	require.Contains(t, lines[4], "**floor missed**")
}

func TestUnknownFiguresAreRefused(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	require.Equal(t, 2, bench(context.Background(), []string{"-only", "small,smal"}, &out, &progress))
	require.Empty(t, out.String())
	chosen, err := choose("history,small")
	require.NoError(t, err)
	require.Equal(t, "small", chosen[0].name, "in the order of the table")
}

func TestRandomNumbersAreThoseOfPython(t *testing.T) {
	t.Parallel()
	// python3 -c 'import random; r = random.Random(7); print("%x" % r.getrandbits(160))'
	r := newTwister(7)
	require.Equal(t, "a6a3a4506513270e269e0d37f2a74de452e6b438", r.bits160().Text(16))
}
