package dispatch

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// TestIndexFindsEveryConflict compares the index with all pairs.
func TestIndexFindsEveryConflict(t *testing.T) {
	t.Parallel()
	parts := []string{"a", "A", "b", "*", "**", "a*", "{a,b}", "[ab]", "x.go", ".", "", "ü", "K", "k", "\\a", "[", ".."}
	rapid.Check(t, func(t *rapid.T) {
		units := make([]plan.Unit, rapid.IntRange(2, 8).Draw(t, "units"))
		for i := range units {
			units[i] = plan.Unit{ID: fmt.Sprint(i), SharedAppend: rapid.Bool().Draw(t, "shared")}
			for range rapid.IntRange(0, 2).Draw(t, "globs") {
				glob := rapid.SampledFrom(parts).Draw(t, "first")
				for range rapid.IntRange(0, 3).Draw(t, "deeper") {
					glob += "/" + rapid.SampledFrom(parts).Draw(t, "part")
				}
				units[i].Write = append(units[i].Write, glob)
			}
		}
		fold := rapid.Bool().Draw(t, "fold")
		f := NewFrontier(units, FrontierOptions{FoldCase: fold})
		for a := range units {
			for b := range units {
				want := plan.CompileScope(units[a].Write, fold).Conflicts(plan.CompileScope(units[b].Write, fold), units[a].SharedAppend && units[b].SharedAppend)
				got := false
				f.ix.conflicting(a, func(class int) { got = got || class == f.ix.class[b] })
				require.Equal(t, want, got, "%q and %q", units[a].Write, units[b].Write)
			}
		}
	})
}

// bigPlan has n nodes in ten levels: most own a folder of their own, some share one.
func bigPlan(n int) []plan.Unit {
	units := make([]plan.Unit, n)
	for i := range units {
		u := plan.Unit{
			ID: fmt.Sprintf("N-%04d", i), Findings: []string{fmt.Sprintf("F-%04d", i)}, Severity: i % 5, Depth: i * 10 / n,
			Write: []string{fmt.Sprintf("internal/pkg%04d/**", i), fmt.Sprintf("docs/%04d.md", i%500)},
			Files: []string{fmt.Sprintf("internal/pkg%04d", i)}, Tier: plan.TierStandard, Tokens: 12000,
		}
		if i >= n/10 {
			u.DependsOn = []string{units[i-n/10].ID}
		}
		units[i] = u
	}
	return units
}

// BenchmarkFrontier drives 2 000 nodes one settlement at a time; a decision
// (settle, admit, ask what is waited for) has to stay well under 200 ms.
func BenchmarkFrontier(b *testing.B) {
	units := bigPlan(2000)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			NewFrontier(units, FrontierOptions{})
		}
	})
	b.Run("decision", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			drive(b, NewFrontier(units, FrontierOptions{}), len(units))
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(units)), "µs/decision")
	})
	b.Run("carry", func(b *testing.B) {
		f := NewFrontier(units, FrontierOptions{})
		drive(b, f, len(units))
		for b.Loop() {
			data, err := json.Marshal(f)
			require.NoError(b, err)
			require.NoError(b, json.Unmarshal(data, &Frontier{}))
			b.ReportMetric(float64(len(data)), "bytes")
		}
	})
}

func drive(t require.TestingT, f *Frontier, nodes int) {
	var running []contract.Admission
	for settled := 0; settled < nodes; settled++ {
		for _, a := range f.Admissions(epoch, 8-len(running)) {
			running = append(running, a.Admission)
		}
		require.NotEmpty(t, running)
		a := running[0]
		running = running[1:]
		c := f.Settle(contract.Settlement{
			Node: a.Node, Opening: a.Opening, State: contract.NodeLanded, NextAttempt: a.NextAttempt + 1,
			Attempts: []contract.AttemptResult{{
				Node: a.Node, Opening: a.Opening, Attempt: a.NextAttempt, Pool: "p", Outcome: contract.OutcomeSuccess, State: contract.NodeLanded,
				Commit: "0123456789012345678901234567890123456789", Paths: []string{"internal/" + a.Node + "/x.go"},
			}},
		}, epoch)
		require.Empty(t, c.Ignored)
		f.Waiting()
	}
	require.Equal(t, TerminalDone, f.Waiting().Kind)
}
