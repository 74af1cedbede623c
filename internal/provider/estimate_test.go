package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/plan"
	"mendflow/internal/provider"
)

// A node is offered to pools by its estimated size: what is really sent must not
// be larger. Prose has about four bytes per token.
func TestEstimateCoversThePromptThatIsSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string, most int) string {
			return strings.Repeat("word and word ", rapid.IntRange(0, most/14).Draw(t, label))
		}
		node := plan.Node{ID: "B-001", Instructions: text("instructions", 20000), Write: []string{"pkg/**"}}
		for range rapid.IntRange(0, 5).Draw(t, "commands") {
			node.Verify = append(node.Verify, plan.Command{Shell: "make check " + text("command", 400)})
		}
		var findings []plan.Finding
		for range rapid.IntRange(1, 8).Draw(t, "findings") {
			f := plan.Finding{ID: "F-001", Title: text("title", 300), Severity: "high", Lens: "security", Summary: text("summary", 8000)}
			for i := range rapid.IntRange(0, 20).Draw(t, "files") {
				f.Files = append(f.Files, plan.Location{Path: "pkg/some/folder/file" + strings.Repeat("x", i) + ".go", LineStart: 10, LineEnd: 20})
			}
			for range rapid.IntRange(0, 5).Draw(t, "evidence") {
				f.Evidence = append(f.Evidence, text("evidence", 2000))
			}
			findings = append(findings, f)
		}
		sent := provider.Prompt(provider.Task{Node: node, Findings: findings, ResultFile: "/state/attempts/run/B-001/a1/result/result.json"})
		require.LessOrEqual(t, len(sent)/4, plan.EstimateTokens(node, findings, nil))
	})
}
