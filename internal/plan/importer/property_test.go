package importer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/plan"
)

func drawRaw(t *rapid.T) Raw {
	r := Raw{
		Tool: rapid.SampledFrom([]string{"", "lint", "Scan"}).Draw(t, "tool"), Rule: rapid.OneOf(rapid.SampledFrom([]string{"R1", "go/xss", ""}), rapid.String()).Draw(t, "rule"),
		ID:       rapid.SampledFrom([]string{"", "", "", "F-1", "f-1"}).Draw(t, "id"),
		Title:    rapid.OneOf(rapid.SampledFrom([]string{"same", "other"}), rapid.String()).Draw(t, "title"),
		Summary:  rapid.String().Draw(t, "summary"),
		Severity: plan.Severity(rapid.SampledFrom(plan.Severity("").Values()).Draw(t, "severity")),
	}
	for range rapid.IntRange(0, 3).Draw(t, "files") {
		p, err := inside(rapid.OneOf(rapid.SampledFrom([]string{"a.go", "b/c.go", "b/d.go", "ü/[x]{1}*.go"}), rapid.String()).Draw(t, "path"), "/r", false)
		if err == nil {
			r.Files = append(r.Files, plan.Location{Path: p, LineStart: rapid.IntRange(0, 3).Draw(t, "line")})
		}
	}
	r.complete(Options{})
	return r
}

// TestEveryPlanIsValid: whatever is found, the plan is valid, has each finding
// exactly once or folded, keeps every place inside its node's scope, and does not
// depend on the order of the input.
func TestEveryPlanIsValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raws := rapid.SliceOfN(rapid.Custom(drawRaw), 1, 12).Draw(t, "raws")
		g := Grouping{Folder: rapid.Bool().Draw(t, "folder"), PerNode: rapid.IntRange(0, 4).Draw(t, "per")}
		b := Build("x", "goal", raws, g)
		text := Write(b)
		p, faults := plan.Parse("plan.yaml", text)
		if faults.Err() != nil {
			t.Fatalf("%v\n%s", faults.Err(), text)
		}
		seen := len(p.Findings)
		for _, f := range p.Findings {
			seen += len(f.Folded)
		}
		require.Equal(t, len(raws), seen)
		for i, f := range p.Findings {
			require.Equal(t, b.Findings[i].Title, f.Title)
			require.Equal(t, b.Findings[i].Summary, f.Summary)
			require.Equal(t, b.Findings[i].Files, f.Files)
		}
		byID := map[string]plan.Finding{}
		for _, f := range p.Findings {
			byID[f.ID] = f
		}
		for _, n := range p.Nodes {
			for _, id := range n.Findings {
				for _, l := range byID[id].Files {
					require.True(t, plan.InScope(n.Write, l.Path, false), "%s in %v", l.Path, n.Write)
				}
			}
		}
		for _, d := range plan.Select(p, nil).Findings {
			require.Contains(t, []plan.Disposition{plan.DispositionPlanned, plan.DispositionFolded}, d.Disposition)
		}
		shuffled := rapid.Permutation(raws).Draw(t, "shuffled")
		require.Equal(t, string(text), string(Write(Build("x", "goal", shuffled, g))))
	})
}
