package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// renderings are all forms of a model, by the end of their golden file's name.
func renderings(t require.TestingT, m report.Model) map[string][]byte {
	sarif, err := report.SARIF(m)
	require.NoError(t, err)
	junit, err := report.JUnit(m)
	require.NoError(t, err)
	object, err := report.JSON(m)
	require.NoError(t, err)
	return map[string][]byte{
		"md": report.Markdown(m), "json": object, "sarif": sarif, "xml": junit,
		"request.md": []byte(report.Request(m)),
		"txt":        []byte(report.Terminal(m, "artifacts/runs/"+m.Run+"/remediation-report.md")),
	}
}

// TestGolden shows each fixture in each form. Read the files after -update: they are what people get.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, facts := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for end, got := range renderings(t, report.Build(facts())) {
				if name == "long" && end != "md" && end != "txt" {
					continue // the others leave nothing out
				}
				file := filepath.Join("testdata", "golden", name+"."+end)
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
					require.NoError(t, os.WriteFile(file, got, 0o644))
					continue
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, string(want), string(got), file)
			}
		})
	}
}

func TestBuildIsStableAndLeavesTheFactsAlone(t *testing.T) {
	t.Parallel()
	for name, facts := range fixtures {
		given := facts()
		first := report.Build(given)
		require.Equal(t, facts(), given, name)
		slices.Reverse(given.Items)
		slices.Reverse(given.Nodes)
		slices.Reverse(given.Refs)
		require.Equal(t, first, report.Build(given), "%s: the order in which rows come does not show", name)
	}
}

func TestJSONIsReadBack(t *testing.T) {
	t.Parallel()
	for name, facts := range fixtures {
		m := report.Build(facts())
		data, err := report.JSON(m)
		require.NoError(t, err)
		back, err := report.Parse(data)
		require.NoError(t, err)
		require.Equal(t, m, back, name)
		require.Equal(t, renderings(t, m), renderings(t, back), name)
	}
}

func TestParseRefusesOtherVersionsAndGarbage(t *testing.T) {
	t.Parallel()
	_, err := report.Parse([]byte(`{"version": 2}`))
	require.EqualError(t, err, "parse report: version 2, this build reads version 1")
	_, err = report.Parse([]byte(`[`))
	require.ErrorContains(t, err, "parse report: ")
	_, err = report.Parse([]byte(`{"version": 1, "from_the_future": true}`))
	require.NoError(t, err)
}

func compile(t *testing.T, name string, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(name, doc))
	compiled, err := c.Compile(name)
	require.NoError(t, err)
	return compiled
}

func valid(t *testing.T, s *jsonschema.Schema, data []byte, about string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, s.Validate(doc), about)
}

// TestSchemaDescribesTheJSON validates every fixture against the published schema,
// closed against undescribed fields: a field that is added must be described.
func TestSchemaDescribesTheJSON(t *testing.T) {
	t.Parallel()
	var doc any
	require.NoError(t, json.Unmarshal(report.Schema(), &doc))
	closeObjects(doc)
	closed, err := json.Marshal(doc)
	require.NoError(t, err)
	schema := compile(t, "urn:mendflow:remediation-outcomes:1", closed)
	for name, facts := range fixtures {
		data, err := report.JSON(report.Build(facts()))
		require.NoError(t, err)
		valid(t, schema, data, name)
	}
}

func closeObjects(node any) {
	switch v := node.(type) {
	case map[string]any:
		if v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, child := range v {
			closeObjects(child)
		}
	case []any:
		for _, child := range v {
			closeObjects(child)
		}
	}
}

// TestSARIFIsValid validates against the schema of OASIS, kept in testdata.
func TestSARIFIsValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	require.NoError(t, err)
	schema := compile(t, "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", text)
	for name, facts := range fixtures {
		data, err := report.SARIF(report.Build(facts()))
		require.NoError(t, err)
		valid(t, schema, data, name)
	}
}

type sarifDoc struct {
	Runs []struct {
		Results []struct {
			RuleID       string
			Level        string
			Fingerprints map[string]string `json:"partialFingerprints"`
			Suppressions []struct{ Status, Justification string }
			Properties   struct{ Finding string }
		}
	}
}

func sarifOf(t *testing.T, f report.Facts) sarifDoc {
	t.Helper()
	data, err := report.SARIF(report.Build(f))
	require.NoError(t, err)
	var doc sarifDoc
	require.NoError(t, json.Unmarshal(data, &doc))
	return doc
}

func TestSARIFHoldsWhatIsStillWrong(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, r := range sarifOf(t, blocked()).Runs[0].Results {
		status := "open"
		if len(r.Suppressions) > 0 {
			status = r.Suppressions[0].Status + ": " + r.Suppressions[0].Justification
		}
		got[r.Properties.Finding] = r.Level + ", " + status
	}
	require.Equal(t, map[string]string{
		"F-001": "error, open", "F-002": "error, open", // F-003 is repaired, F-005b folded
		"F-004": "note, accepted: ignored: kept until March for one customer",
		"F-005": "warning, accepted: dropped_by_intent: legacy/retry.go matches excluded legacy/**",
	}, got)
}

func TestSARIFFingerprintsSurviveEditsAndOtherRuns(t *testing.T) {
	t.Parallel()
	prints := func(f report.Facts) map[string]map[string]string {
		out := map[string]map[string]string{}
		for _, r := range sarifOf(t, f).Runs[0].Results {
			out[r.Properties.Finding] = r.Fingerprints
		}
		return out
	}
	first := prints(blocked())
	moved := blocked()
	moved.Run, moved.HeadCommit = "another", base
	for i := range moved.Plan.Findings {
		for k := range moved.Plan.Findings[i].Files {
			moved.Plan.Findings[i].Files[k].LineStart += 100
			moved.Plan.Findings[i].Files[k].LineEnd += 100
		}
	}
	require.Equal(t, first, prints(moved))

	twice := blocked()
	twice.Plan.Findings[1] = twice.Plan.Findings[0]
	twice.Plan.Findings[1].ID = "F-002"
	same := prints(twice)
	require.NotEqual(t, same["F-001"]["mendflowFinding/v1"], same["F-002"]["mendflowFinding/v1"], "two findings of one text in one file stay apart")
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"completed":    "completed: 3 of 4 findings repaired, 1 skipped by decision; the gate is green.",
		"ungated":      "completed, ungated: 3 of 4 findings repaired, 1 skipped by decision; the plan disables the gate.",
		"blocked":      "blocked: 2 of 4 findings left; the gate is red.",
		"paused":       "paused: Not closed yet (paused); 2 of 4 findings repaired.",
		"empty":        "failed: Mendflow could not go on; 0 of 0 findings repaired.",
		"baseline-red": "paused: Not closed yet (paused); 0 of 4 findings repaired.",
	} {
		v := report.Build(fixtures[name]()).Verdict
		require.Equal(t, want, v.Label()+": "+v.Sentence)
		require.Equal(t, v.Status == contract.RunCompleted, v.Green)
	}
	flaky := completed()
	flaky.Gates[1].Verdict = gate.VerdictFlaky
	require.Contains(t, report.Build(flaky).Verdict.Sentence, "the gate is green, with a flaky command")
}

func TestNextNamesExactCommands(t *testing.T) {
	t.Parallel()
	commands := func(name string) string {
		var out []string
		for _, s := range report.Build(fixtures[name]()).Next {
			out = append(out, s.Command)
		}
		return strings.Join(out, "\n")
	}
	require.Contains(t, commands("blocked"), "starter publish retry tour-2")
	require.Contains(t, commands("blocked"), "starter diff tour-2 B-002/1")
	require.Contains(t, commands("blocked"), "starter logs tour-2 B-001")
	require.Contains(t, commands("blocked"), "git -C /srv/git/shop worktree add --detach /srv/git/mendflow-tour-2 "+strings.Repeat("c", 40)+" && cd /srv/git/mendflow-tour-2 && go test ./...")
	require.Contains(t, commands("paused"), "starter resume tour --now\nstarter answer tour F-004\nstarter watch tour")
	require.NotContains(t, commands("paused"), "worktree", "an accepted red base is nobody's task")
	require.Contains(t, commands("baseline-red"), "worktree add --detach /srv/git/mendflow-tour "+base)
	require.Contains(t, commands("ungated"), "git fetch https://bot@git.example.com/shop.git mendflow/tour")
	require.Contains(t, commands("hostile"), `'/srv/git/it'\''s `+"`a`"+` $HOME'`)
	require.Contains(t, commands("long"), "starter explain long B-000")
}

// TestDispositionsAreEachExactlyOne covers every input finding, and those that an importer folded before.
func TestDispositionsAreEachExactlyOne(t *testing.T) {
	t.Parallel()
	f := completed()
	f.Dispositions = append(f.Dispositions, f.Dispositions[0]) // said twice
	got := map[string]string{}
	for _, d := range report.Build(f).Dispositions {
		require.NotContains(t, got, d.Finding)
		got[d.Finding] = d.State
	}
	require.Equal(t, map[string]string{
		"F-001": "planned", "F-002": "planned", "F-003": "planned", "F-004": "planned", "F-005": "dropped_by_intent", "F-005b": "folded",
	}, got)
}

func TestUsageSumsPerNodeAndPool(t *testing.T) {
	t.Parallel()
	m := report.Build(completed())
	require.Equal(t, report.Usage{Attempts: 4, Seconds: 244, InputTokens: 36000, OutputTokens: 2700, USD: 0.729, Uncertain: 1}, m.Usage)
	require.Len(t, m.Pools, 2)
	require.Equal(t, "claude-max", m.Pools[0].Pool)
	require.Equal(t, []report.OutcomeCount{{Outcome: contract.OutcomeError, N: 1}, {Outcome: contract.OutcomeSuccess, N: 2}}, m.Pools[1].Outcomes)
	require.Equal(t, 122, m.Nodes[0].Usage.Seconds)
}
