package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const shownPlan = `version: 1
id: tour
goal: Repair what the audit of November found, without changing what the public interface of the client promises to its users.
findings:
  - {id: F-1, title: t, severity: critical, files: [{path: client/tls.go}]}
  - {id: F-2, title: t, severity: low, files: [{path: server/x.go}]}
  - {id: F-3, title: t, severity: high, files: [{path: client/y.go}]}
  - {id: F-4, title: t, severity: low, files: [{path: legacy/z.go}]}
  - {id: F-5, title: t, severity: info, files: [{path: ünï/日本.md}]}
  - {id: F-6, title: t, severity: high, evidence: [everywhere]}
nodes:
  - {id: tls, findings: [F-1], write: ["client/**", go.mod], verify: [[go, test, ./client]]}
  - {id: server, findings: [F-2], write: ["server/**", go.mod], verify: [[go, test, ./server, -run, "Test A"]]}
  - {id: client-more, findings: [F-3], write: ["client/y.go"], verify: ["go test ./client | tail"], depends_on: [server]}
  - {id: legacy, findings: [F-4], write: ["legacy/**"], verify: [x]}
  - {id: docs, findings: [F-5], write: ["ünï/*.md"], shared_append: true, phase: 1}
  - {id: everything, findings: [F-6], phase: 1, verify: [[sh, check.sh]]}
gate: {commands: [[go, test, ./...]], on_red: pause}
intent: {excluded: ["legacy/**"]}
`

func TestPlanShowAsText(t *testing.T) {
	t.Parallel()
	p, faults := Parse("plan.yaml", []byte(shownPlan))
	require.NoError(t, faults.Err())
	facts := &Facts{Sizes: map[string]int64{
		"client/tls.go": 30_000, "server/x.go": 3000, "client/y.go": 6000, "ünï/日本.md": 9000, "legacy/z.go": 0,
	}}
	got := Show(p, facts, faults).Text()
	require.Equal(t, strings.TrimLeft(`
Plan tour: 5 nodes in 3 levels, about 45,603 tokens
  goal      Repair what the audit of November found, without changing what the public interface of
            the client promises to its users.
  findings  5 planned, 1 dropped_by_intent

Level 0 (2 nodes)
  NODE    SEVERITY  TIER   TOKENS  FINDINGS
  tls     critical  deep   16,020  F-1
    write   client/**, go.mod
    verify  go test ./client
  server  low       small  7,020   F-2
    write   server/**, go.mod
    verify  go test ./server -run 'Test A'

Level 1 (1 node)
  NODE         SEVERITY  TIER      TOKENS  FINDINGS
  client-more  high      standard  8,020   F-3
    write   client/y.go
    after   server
    verify  go test ./client | tail

Level 2, phase 1 (2 nodes)
  NODE        SEVERITY  TIER      TOKENS  FINDINGS
  docs        info      small     8,520   F-5
    write   ünï/*.md (shared append)
  everything  high      standard  6,023   F-6
    write   alone in the run (no write scope)
    verify  sh check.sh

Never at the same time
  alone in the run, without a write scope: everything
  tls, server: both write go.mod
  tls, client-more: client/** overlaps client/y.go

Gate (plan; baseline require, on red pause)
  go test ./...

Findings left out
  F-4  dropped_by_intent: legacy/z.go is excluded by "legacy/**"

Warnings
  plan.yaml:11:1: nodes: 1 node has no verify command, only the gate judges them: docs; give each
  node a command that fails while its findings are there
`, "\n"), got)
}

func TestPlanShowStaysWithinItsWidth(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("version: 1\nfindings:\n")
	for i := range 40 {
		fmt.Fprintf(&text, "  - {id: finding-with-a-rather-long-name-%d, title: t, severity: low, files: [{path: a/x.go}]}\n", i)
	}
	text.WriteString("nodes:\n  - {id: a-node-with-a-name-of-sixty-four-characters-as-long-as-ids-may-get, findings: [")
	for i := range 40 {
		fmt.Fprintf(&text, "finding-with-a-rather-long-name-%d, ", i)
	}
	text.WriteString("], write: [one/folder/**, two/folder/**, three/folder/**, four/folder/**, five/folder/**, six/folder/**, seven/folder/**]}\n")
	p, faults := Parse("plan.yaml", []byte(text.String()))
	require.Error(t, faults.Err())
	require.Nil(t, p, "the id is longer than 64 characters")
	p, faults = Parse("plan.yaml", []byte(strings.Replace(text.String(), "a-node-with", "node-with", 1)))
	require.NoError(t, faults.Err())
	for line := range strings.Lines(Show(p, nil, faults).Text()) {
		require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), textWidth, line)
	}
}

func TestPlanShowKeepsControlCharactersFromTheTerminal(t *testing.T) {
	t.Parallel()
	p := parse(t, "version: 1\ngoal: \"\\e[31mred\\x07\"\nfindings: [{id: F, title: t, severity: low, files: [{path: \"a\\nb\"}]}]\n")
	got := Show(p, nil, nil).Text()
	require.NotContains(t, got, "\x1b")
	require.NotContains(t, got, "\x07")
}

func TestPlanShowAsJSON(t *testing.T) {
	t.Parallel()
	p := parse(t, shownPlan)
	data, err := json.Marshal(Show(p, nil, nil))
	require.NoError(t, err)
	var back Overview
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, Show(p, nil, nil), back)
	require.Equal(t, GateFromPlan, back.Gate.Source)
}

func TestGateOfTheOverviewSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	p := parse(t, minimalPlan)
	require.Equal(t, GateUnknown, Show(p, nil, nil).Gate.Source)
	discovered := Show(p, &Facts{Sizes: map[string]int64{"a/b.go": 1}, Gate: []Command{{Shell: "make check"}}}, nil).Gate
	require.Equal(t, OverviewGate{Source: GateDiscovered, Commands: []Command{{Shell: "make check"}}, Baseline: BaselineRequire, OnRed: OnRedAttribute}, discovered)
	require.Equal(t, GateDisabled, Show(parse(t, minimalPlan+"gate: {commands: none}"), nil, nil).Gate.Source)
}

func TestSerialisedTellsOnlyWhatNothingElseOrders(t *testing.T) {
	t.Parallel()
	s := Serialised([]Node{
		{ID: "a", Write: []string{"x/**", "y", "z", "w", "v"}},
		{ID: "b", Write: []string{"**"}},
		{ID: "after", Write: []string{"x/1"}, DependsOn: []string{"a"}},
		{ID: "later", Write: []string{"x/1"}, Phase: 1},
		{ID: "log1", Write: []string{"LOG"}, SharedAppend: true},
		{ID: "log2", Write: []string{"log"}, SharedAppend: true},
		{ID: "alone"},
	}, true, 2)
	require.Equal(t, []string{"alone"}, s.Exclusive)
	require.Equal(t, 4, s.Total, "b with a, after, log1 and log2")
	require.Equal(t, []SerialisedPair{
		{A: "a", B: "b", Globs: []GlobPair{{"x/**", "**"}, {"y", "**"}, {"z", "**"}}},
		{A: "b", B: "after", Globs: []GlobPair{{"**", "x/1"}}},
	}, s.Pairs)
}

func BenchmarkLargePlan(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 1\nfindings:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "  - {id: F-%d, title: title of it, severity: low, files: [{path: pkg%d/x.go, line_start: 3}], evidence: [some evidence]}\n", i, i%300)
	}
	text.WriteString("nodes:\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "  - id: N-%d\n    findings: [F-%d]\n    depends_on: [N-%d]\n    write: [\"pkg%d/**\", docs/%d.md]\n    verify: [[go, test, ./pkg%d]]\n", i, i, max(0, i-300), i%300, i, i%300)
	}
	data := []byte(strings.Replace(text.String(), "depends_on: [N-0]", "depends_on: []", 301))
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, faults := Parse("plan.yaml", data)
			require.NoError(b, faults.Err())
		}
	})
	p, _ := Parse("plan.yaml", data)
	b.Run("skeleton", func(b *testing.B) {
		for b.Loop() {
			Skeleton(p, Select(p, nil), nil)
		}
	})
	b.Run("show", func(b *testing.B) {
		for b.Loop() {
			Show(p, nil, nil)
		}
	})
}
