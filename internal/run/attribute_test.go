package run

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// repository simulates the trees that a search asks about: sets of commits.
type repository struct {
	commits []Landed
	red     func(set []int) bool
	needs   map[int]int // a commit merges only on top of this earlier one
}

func (r repository) try(set []int) TrialResult {
	for _, c := range set {
		if on, ok := r.needs[c]; ok && !slices.Contains(set, on) {
			return TrialUnmerged
		}
	}
	if r.red(set) {
		return TrialRed
	}
	return TrialGreen
}

// search runs a search to its end; it is carried as JSON between all trials.
func (r repository) search(t require.TestingT, known bool) Attribution {
	s := NewSearch(r.commits)
	if known {
		s.Know(s.All(), r.try(s.All().Commits))
		s.Know(s.None(), r.try(nil))
	}
	for {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		s = &Search{}
		require.NoError(t, json.Unmarshal(data, s))
		trial, found := s.Next()
		if found != nil {
			require.Nil(t, trial)
			return *found
		}
		require.True(t, slices.IsSorted(trial.Commits))
		isPrefix := true
		for i, c := range trial.Commits {
			isPrefix = isPrefix && i == c
		}
		require.Equal(t, isPrefix, trial.Prefix)
		result := r.try(trial.Commits)
		require.False(t, trial.Prefix && result == TrialUnmerged)
		s.Record(*trial, result)
	}
}

func has(set []int, commits ...int) bool {
	for _, c := range commits {
		if !slices.Contains(set, c) {
			return false
		}
	}
	return true
}

func drawRepository(t *rapid.T) repository {
	n := rapid.IntRange(1, 40).Draw(t, "commits")
	r := repository{needs: map[int]int{}}
	for i := range n {
		l := Landed{Node: fmt.Sprintf("N-%02d", i)}
		for d := range i {
			if rapid.IntRange(0, n).Draw(t, "edge") == 0 {
				l.DependsOn = append(l.DependsOn, r.commits[d].Node)
			}
		}
		r.commits = append(r.commits, l)
	}
	return r
}

// behind reports whether a commit depends on an earlier one, directly or further on.
func (r repository) behind(commit, earlier int) bool {
	return slices.Contains(NewSearch(r.commits).withDependencies(commit), earlier)
}

func TestSearchNamesWhoDidIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRepository(t)
		n := len(r.commits)
		a := rapid.IntRange(0, n-1).Draw(t, "a")
		b := rapid.IntRange(a, n-1).Draw(t, "b")
		name := func(i int) string { return r.commits[i].Node }
		var want Attribution
		switch model := rapid.SampledFrom([]string{"culprit", "two culprits", "pair", "textual", "red base", "not reproduced", "any pattern"}).Draw(t, "model"); model {
		case "culprit":
			r.red = func(set []int) bool { return has(set, a) }
			want = Attribution{Verdict: Culprit, Culprit: name(a)}
		case "two culprits": // the first is named; the second by the next red gate
			r.red = func(set []int) bool { return has(set, a) || has(set, b) }
			want = Attribution{Verdict: Culprit, Culprit: name(a)}
		case "pair":
			r.red = func(set []int) bool { return has(set, a, b) }
			want = Attribution{Verdict: Interaction, Culprit: name(b), Partner: name(a)}
			if r.behind(b, a) {
				want = Attribution{Verdict: Culprit, Culprit: name(b)}
			}
		case "textual":
			r.red = func(set []int) bool { return has(set, b) }
			want = Attribution{Verdict: Culprit, Culprit: name(b)}
			if a < b {
				r.needs[b] = a
				want.Textual = !r.behind(b, a)
			}
		case "red base":
			r.red = func([]int) bool { return true }
			want = Attribution{Verdict: Unattributable, Reason: "the failing command is red before any of these landed"}
		case "not reproduced":
			r.red = func([]int) bool { return false }
			want = Attribution{Verdict: Unattributable, Reason: "the failing command is not red by itself"}
		case "any pattern": // not monotone: whoever is named made some green truth red
			seed := rapid.Uint64().Draw(t, "pattern")
			r.red = func(set []int) bool {
				h := fnv.New64a()
				fmt.Fprint(h, seed, set)
				return len(set) > 0 && (len(set) == n || h.Sum64()%2 == 0)
			}
		}
		known := rapid.Bool().Draw(t, "ends are known")
		got := r.search(t, known)
		log := bits.Len(uint(n - 1))
		limit := map[AttributionVerdict]int{Culprit: log + 3, Interaction: 2*log + 3, Unattributable: 2}[got.Verdict]
		if known {
			limit -= 2
		}
		require.LessOrEqual(t, got.Runs, limit, "%d commits", n)
		if want.Verdict == "" {
			k := slices.IndexFunc(r.commits, func(l Landed) bool { return l.Node == got.Culprit })
			require.True(t, r.red(prefix(k+1).Commits))
			require.False(t, r.red(prefix(k).Commits))
			return
		}
		got.Runs = 0
		require.Equal(t, want, got)
	})
}

func TestSearchOverNothingFindsNothing(t *testing.T) {
	t.Parallel()
	_, found := NewSearch(nil).Next()
	require.Equal(t, Unattributable, found.Verdict)
	require.NotEmpty(t, found.Reason)
}

func TestSecondCommitOfANodeIsTriedWithItsFirst(t *testing.T) {
	t.Parallel()
	s := NewSearch([]Landed{{Node: "A"}, {Node: "B"}, {Node: "A"}, {Node: "C", DependsOn: []string{"A"}}})
	require.Equal(t, []int{0, 2}, s.withDependencies(2))
	require.Equal(t, []int{0, 2, 3}, s.withDependencies(3))
}

func TestRevertsTakeDependantsAndOnlyWhereNeededSharers(t *testing.T) {
	t.Parallel()
	landed := []Landed{
		{Node: "A", Paths: []string{"a"}}, {Node: "B", DependsOn: []string{"A"}, Paths: []string{"b"}}, {Node: "C", Paths: []string{"c"}},
		{Node: "D", DependsOn: []string{"B"}, Paths: []string{"d"}}, {Node: "E", Paths: []string{"a", "e"}}, {Node: "F", Paths: []string{"e"}},
		{Node: "G"}, {Node: "H"}, {Node: "I"},
	}
	commits, ok := Reverts(landed, "A", false)
	require.True(t, ok)
	require.Equal(t, []int{3, 1, 0}, commits, "latest first")
	commits, ok = Reverts(landed, "A", true)
	require.Equal(t, []int{5, 4, 3, 1, 0}, commits)
	require.False(t, ok, "more than a third of nine")
	_, ok = Reverts(landed[:4], "A", false)
	require.False(t, ok)
	commits, ok = Reverts(landed[:1], "A", false)
	require.True(t, ok, "the culprit alone always may go")
	require.Equal(t, []int{0}, commits)
	_, ok = Reverts(landed, "nobody", true)
	require.False(t, ok)
}
