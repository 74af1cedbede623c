package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEachFindingHasOneDisposition(t *testing.T) {
	t.Parallel()
	p := parse(t, `version: 1
findings:
  - {id: kept, title: t, severity: high, lens: security, themes: [tls, x], files: [{path: a/x.go}]}
  - {id: severity, title: t, severity: low, lens: security, themes: [tls], files: [{path: a/x.go}]}
  - {id: lens, title: t, severity: high, lens: tests, themes: [tls], files: [{path: a/x.go}]}
  - {id: package, title: t, severity: high, lens: security, themes: [tls], files: [{path: b/x.go}]}
  - {id: theme, title: t, severity: high, lens: security, files: [{path: a/x.go}]}
  - {id: excluded, title: t, severity: high, lens: security, themes: [tls], files: [{path: a/y.go}, {path: legacy/z.go}]}
  - {id: untouchable, title: t, severity: high, lens: security, themes: [tls], files: [{path: api/z.go}]}
  - {id: evidence, title: t, severity: high, lens: security, package: a, themes: [tls]}
  - {id: missing, title: t, severity: high, lens: security, themes: [tls], files: [{path: a/gone.go}]}
intent: {severities: [high], lenses: [security], packages: [a], themes: [tls], excluded: ["legacy/**"], must_not_touch: ["api/**"]}
`)
	s := Select(p, &Facts{Sizes: map[string]int64{"a/x.go": 10, "a/y.go": 10, "b/x.go": 10}})
	var got []string
	for _, f := range s.Findings {
		got = append(got, fmt.Sprintf("%s: %s: %s", f.Finding, f.Disposition, f.Cause))
	}
	require.Equal(t, []string{
		"kept: planned: ",
		"severity: dropped_by_intent: severity low is not selected",
		"lens: dropped_by_intent: lens tests is not selected",
		"package: dropped_by_intent: package b is not selected",
		"theme: dropped_by_intent: none of its themes is selected",
		`excluded: dropped_by_intent: legacy/z.go is excluded by "legacy/**"`,
		`untouchable: dropped_by_intent: api/z.go must not be touched ("api/**")`,
		"evidence: dropped_no_evidence: it has neither evidence nor files",
		"missing: dropped_missing_files: its files do not exist at the base: a/gone.go",
	}, got)
	require.Equal(t, []DispositionCount{
		{DispositionPlanned, 1}, {DispositionDroppedByIntent, 6}, {DispositionDroppedMissing, 1}, {DispositionDroppedEvidence, 1},
	}, s.Counts())
	require.Equal(t, []SelectedNode{{ID: "kept", Findings: []string{"kept"}}}, s.Nodes)
	require.Equal(t, DispositionPlanned, Select(p, nil).Findings[8].Disposition, "files are missing only where somebody looked")
}

const chainPlan = `version: 1
findings:
  - {id: F-1, title: t, severity: high, files: [{path: a.go}]}
  - {id: F-2, title: t, severity: low, files: [{path: b.go}]}
  - {id: F-3, title: t, severity: low, files: [{path: c.go}]}
  - {id: F-4, title: t, severity: high, files: [{path: d.go}]}
  - {id: F-5, title: t, severity: critical, files: [{path: d.go}]}
nodes:
  - {id: one, findings: [F-1], write: [a.go], verify: [check a]}
  - {id: two, findings: [F-2], write: [b.go], verify: [check b], depends_on: [one]}
  - {id: three, findings: [F-3], write: [c.go], verify: [check c], depends_on: [two]}
  - {id: four, findings: [F-4, F-5], write: [d.go], verify: [check d], depends_on: [three, two]}
intent: {severities: [high]}
`

func TestADroppedNodeKeepsTheOrderOfItsDependants(t *testing.T) {
	t.Parallel()
	p, faults := Parse("plan.yaml", []byte(chainPlan))
	require.NoError(t, faults.Err())
	s := Select(p, nil)
	require.Equal(t, []SelectedNode{
		{ID: "one", Findings: []string{"F-1"}},
		{ID: "four", Findings: []string{"F-4"}, DependsOn: []string{"one"}},
	}, s.Nodes)
	require.Equal(t, []DroppedNode{{ID: "two", Dependants: []string{"four"}}, {ID: "three", Dependants: []string{"four"}}}, s.Dropped)
	require.Equal(t, []string{
		"plan.yaml:12:84: warning: nodes[3].depends_on: node two is dropped with all its findings; four, which depends on it, waits for one",
		"plan.yaml:12:84: warning: nodes[3].depends_on: node three is dropped with all its findings; four, which depends on it, waits for one",
	}, faultTexts(chainPlan))
	require.Equal(t, TierStandard, p.Nodes[3].Tier, "the critical finding is not selected, so it does not make the node deep")
}

func TestOrderThroughDroppedNodesIsKeptForEveryPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := genNodes().Draw(t, "nodes")
		p := &Plan{Nodes: nodes}
		for i := range nodes {
			severity := rapid.SampledFrom([]Severity{SeverityHigh, SeverityLow}).Draw(t, "severity")
			p.Findings = append(p.Findings, Finding{ID: nodes[i].ID, Severity: severity, Evidence: []string{"e"}})
			nodes[i].Findings = []string{nodes[i].ID}
		}
		p.Intent.Severities = []Severity{SeverityHigh}
		s := Select(p, nil)
		selected := SelectedNodes(p, s)
		before, after := newAncestors(nodes), newAncestors(selected)
		index := func(id string) int { return slices.IndexFunc(nodes, func(n Node) bool { return n.ID == id }) }
		for i, a := range selected {
			for j, b := range selected {
				require.Equal(t, before.has(index(a.ID), index(b.ID)), after.has(i, j), "%s after %s", a.ID, b.ID)
			}
		}
	})
}

func TestNothingLeftNamesTheCountPerCause(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"plan.yaml:5:9: intent: nothing is left to do: 1 dropped_by_intent (F-1: severity low is not selected), " +
			"1 dropped_no_evidence (F-2: it has neither evidence nor files); widen the intent, or give the findings files or evidence",
	}, faultTexts(`version: 1
findings:
  - {id: F-1, title: t, severity: low, files: [{path: a.go}]}
  - {id: F-2, title: t, severity: high}
intent: {severities: [high]}
`))
}

func TestScopesAgainstMustNotTouch(t *testing.T) {
	t.Parallel()
	got := faultTexts(`version: 1
findings: [{id: F-1, title: t, severity: low, files: [{path: a.go}]}]
nodes:
  - {id: A, findings: [F-1], verify: [x], write: ["api/**", "api/public/v1/*.go", "src/**", api/public/x]}
intent: {must_not_touch: ["api/public/**"]}
`)
	require.Equal(t, []string{
		`plan.yaml:4:51: warning: nodes[0].write[0]: "api/**" overlaps must_not_touch "api/public/**": changes there are refused; narrow the write scope`,
		`plan.yaml:4:61: nodes[0].write[1]: "api/public/v1/*.go" lies wholly in must_not_touch "api/public/**": nothing that the node writes there can land; remove one of the two`,
		`plan.yaml:4:93: nodes[0].write[3]: "api/public/x" lies wholly in must_not_touch "api/public/**": nothing that the node writes there can land; remove one of the two`,
	}, got)
}

func TestWholeSuitesOnNodesAreWarnedAbout(t *testing.T) {
	t.Parallel()
	text := `version: 1
findings:
  - {id: F-1, title: t, severity: low, files: [{path: a.go}]}
  - {id: F-2, title: t, severity: low, files: [{path: b.go}]}
  - {id: F-3, title: t, severity: low, files: [{path: c.go}]}
nodes:
  - {id: A, findings: [F-1], write: [a.go], verify: [[go, test, -race, ./...]]}
  - {id: B, findings: [F-2], write: [b.go], verify: [[go, test, ./b], ./scripts/all.sh]}
  - {id: C, findings: [F-3], write: [c.go]}
gate: {commands: [[./scripts/all.sh]]}
`
	require.Equal(t, []string{
		"plan.yaml:6:1: warning: nodes: 1 node has no verify command, only the gate judges them: C; give each node a command that fails while its findings are there",
		"plan.yaml:7:54: warning: nodes[0].verify[0]: 2 nodes verify with a command that runs everything (go test -race ./...), so that each fails on the others' faults: A, B; verify only what the node repairs; the whole belongs to the gate",
	}, faultTexts(text))
}

func TestSkeletonCarriesWhatDecides(t *testing.T) {
	t.Parallel()
	p := parse(t, strings.Replace(chainPlan, "intent: {severities: [high]}", "", 1))
	units := Skeleton(p, Select(p, nil), map[string]int64{"a.go": 3000})
	require.Equal(t, []int{0, 1, 2, 3}, []int{units[0].Depth, units[1].Depth, units[2].Depth, units[3].Depth})
	require.Equal(t, Unit{
		ID: "four", Findings: []string{"F-4", "F-5"}, DependsOn: []string{"three", "two"}, Write: []string{"d.go"}, Files: []string{"."},
		Depth: 3, Tier: TierDeep, Severity: 0, Tokens: units[3].Tokens,
	}, units[3])
	require.Equal(t, units[1].Tokens-unknownFile+1000, units[0].Tokens, "a file whose size is known counts by it")
}

func TestPagesJoinToTheUnits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := make([]Unit, rapid.IntRange(0, 60).Draw(t, "units"))
		for i := range units {
			units[i] = Unit{ID: fmt.Sprint(i), Write: rapid.SliceOfN(rapid.StringN(0, 40, -1), 0, 5).Draw(t, "write")}
			if len(units[i].Write) == 0 {
				units[i].Write = nil
			}
		}
		limit := rapid.IntRange(700, 3000).Draw(t, "limit")
		var joined []Unit
		for _, page := range Pages(units, limit) {
			require.NotEmpty(t, page)
			data, err := json.Marshal(page)
			require.NoError(t, err)
			if len(page) > 1 {
				require.LessOrEqual(t, len(data), limit)
			}
			var back []Unit
			require.NoError(t, json.Unmarshal(data, &back))
			joined = append(joined, page...)
		}
		require.Equal(t, len(units), len(joined))
		for i := range joined {
			require.Equal(t, units[i], joined[i])
		}
	})
}

func TestAUnitThatNoPageHoldsIsAFault(t *testing.T) {
	t.Parallel()
	globs := make([]string, 600)
	for i := range globs {
		globs[i] = fmt.Sprintf("%s/%d/**", strings.Repeat("long", 20), i)
	}
	data, err := json.Marshal(globs)
	require.NoError(t, err)
	got := faultTexts("version: 1\nfindings: [{id: F, title: t, severity: low, evidence: [e]}]\nnodes: [{id: A, findings: [F], write: " + string(data) + "}]\n")
	require.Len(t, got, 1)
	require.Contains(t, got[0], "at most 40960 can be scheduled; write nodes with wider globs, or split it")

	files := make([]string, 600)
	for i := range files {
		files[i] = fmt.Sprintf("{path: %s/%d}", strings.Repeat("long", 20), i)
	}
	got = faultTexts("version: 1\nfindings: [{id: F, title: t, severity: low, files: [" + strings.Join(files, ", ") + "]}]\n")
	require.Len(t, got, 1)
	require.Contains(t, got[0], "findings[0].files: findings, edges and write scope of node F take")
}

func TestGlobsThatSayLessThanTheyLookAreWarnedAbout(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`plan.yaml:3:59: warning: nodes[0].write[0]: in "src/**.go", ** stands beside other characters and means no more than *; write "src/**/*.go" for every depth`,
		`plan.yaml:3:70: warning: nodes[0].write[1]: in "src\\lib", a backslash takes the next character literally and separates nothing; separate folders with /`,
	}, faultTexts(`version: 1
findings: [{id: F, title: t, severity: low, evidence: [e]}]
nodes: [{id: A, findings: [F], verify: [check x], write: [src/**.go, src\lib, 'a\*b', 'app/\[id\]/x', "**/*.md"]}]
`))
}

func TestDeclaredEstimateWins(t *testing.T) {
	t.Parallel()
	require.Equal(t, 77, EstimateTokens(Node{EstimateTokens: 77}, nil, nil))
	huge := EstimateTokens(Node{}, []Finding{{Files: []Location{{Path: "x"}, {Path: "x"}}}}, map[string]int64{"x": 1 << 40})
	require.Equal(t, promptTokens+workTokens+mostTokens+descriptionTail/bytesPerToken, huge, "one file counts once, and no more than an agent reads")
}
