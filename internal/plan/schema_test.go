package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/strictyaml"
)

func compileSchema(t require.TestingT, data []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	meta, err := c.Compile("https://json-schema.org/draft/2020-12/schema")
	require.NoError(t, err)
	require.NoError(t, meta.Validate(doc), "the schema is a schema")
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

func toJSON(t require.TestingT, text string) any {
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return doc
}

// richPlan uses every key of the published format.
const richPlan = `version: 1
id: tls-2026-11
goal: Repair the findings of the November audit.
base: main
findings:
  - id: F-001
    title: Certificate errors are ignored
    severity: high
    lens: security
    confidence: high
    package: client
    themes: [tls]
    files: [{path: client/tls.go, line_start: 40, line_end: 52}]
    summary: they are
    evidence: ["client/tls.go:44 sets InsecureSkipVerify"]
  - {id: F-002, title: Another, severity: low, files: [{path: server/x.go}]}
nodes:
  - id: B-001
    findings: [F-001]
    depends_on: []
    write: ["client/**"]
    read: ["docs/tls.md"]
    verify: [["go", "test", "./client/..."]]
    tier: standard
    phase: 0
    shared_append: false
    estimate_tokens: 0
    instructions: free text
  - {id: B-002, findings: [F-002], depends_on: [B-001], write: [server/x.go], verify: [go test ./server]}
setup: [["go", "mod", "download"]]
env: [GOFLAGS]
git: {author: "Mendflow <mendflow@localhost>", user_config: false, credential_helper: "", lfs: false, sign: false, sparse: false}
link: [node_modules]
keep: [.cache]
gate:
  commands: [["go","build","./..."],"go vet ./..."]
  baseline: require
  on_red: attribute
intent:
  severities: [high, low]
  lenses: []
  packages: []
  themes: []
  excluded: ["legacy/**"]
  must_not_touch: ["api/public/**"]
allow_protected: false
policy: {landing: optimistic, scope: strict, spill: same_tier, attempt_minutes: 30, idle_minutes: 10,
         attempt_tokens: 0, setup_minutes: 10, verify_minutes: 10, gate_minutes: 30, unattended: false, resume_margin: 5s, resume_jitter: 30s}
budget: {tokens: 0, usd: 2.5}
close: {action: none}
notify:
  - {on: [started, closed], command: [notify-send, hello]}
  - {on: [paused], webhook: "https://example.org/hook", secret_env: HOOK_SECRET}
`

const minimalPlan = `version: 1
findings: [{id: F-1, title: x, severity: high, files: [{path: a/b.go}]}]
`

// structuralFaults are changes of richPlan that the schema must see, as the parser does.
var structuralFaults = [][2]string{
	{"version: 1", "version: 2"},
	{"version: 1", "version: one"},
	{"version: 1\n", ""},
	{"id: tls-2026-11", "id: TLS"},
	{"id: tls-2026-11", "id: a..b"},
	{"id: tls-2026-11", "id: a.lock"},
	{"id: tls-2026-11", `id: ""`},
	{"id: tls-2026-11", "id: 2026"},
	{"base: main", "base: --upload-pack=x"},
	{"severity: high\n", "severity: urgent\n"},
	{"severity: high\n    lens", "lens"},
	{"lens: security", "lens: safety"},
	{"confidence: high", "confidence: sure"},
	{"title: Certificate errors are ignored", `title: " "`},
	{"title: Certificate errors are ignored", "titel: x"},
	{"path: client/tls.go", "file: client/tls.go"},
	{"line_start: 40", "line_start: -1"},
	{"line_start: 40", `line_start: "40"`},
	{"themes: [tls]", "themes: tls"},
	{"themes: [tls]", "themes: [1]"},
	{"findings: [F-001]", "findings: []"},
	{"findings: [F-001]", "findings: [F-001, F-001]"},
	{"findings: [F-001]", "findings: F-001"},
	{"id: B-001", "id: B/001"},
	{"id: B-001", "id: B-001.LOCK"},
	{"depends_on: []", "depends_on: B-002"},
	{`write: ["client/**"]`, `write: [""]`},
	{`verify: [["go", "test", "./client/..."]]`, `verify: [[]]`},
	{`verify: [["go", "test", "./client/..."]]`, `verify: ["  "]`},
	{`verify: [["go", "test", "./client/..."]]`, `verify: [["", x]]`},
	{"tier: standard", "tier: huge"},
	{"phase: 0", "phase: -1"},
	{"phase: 0", "phase: 0.5"},
	{"shared_append: false", "shared_append: 1"},
	{"estimate_tokens: 0", "estimate_tokens: -1"},
	{"env: [GOFLAGS]", "env: [GIT_DIR]"},
	{"env: [GOFLAGS]", "env: [temporal_address]"},
	{"env: [GOFLAGS]", "env: [A=1]"},
	{"author: \"Mendflow <mendflow@localhost>\"", "author: nobody"},
	{"link: [node_modules]", `link: [""]`},
	{`commands: [["go","build","./..."],"go vet ./..."]`, "commands: nothing"},
	{"baseline: require", "baseline: ignore"},
	{"on_red: attribute", "on_red: panic"},
	{"severities: [high, low]", "severities: [all]"},
	{"landing: optimistic", "landing: maybe"},
	{"attempt_minutes: 30", "attempt_minutes: 0"},
	{"attempt_minutes: 30", "attempt_minutes: 1000000"},
	{"resume_margin: 5s", "resume_margin: 5"},
	{"resume_margin: 5s", "resume_margin: soon"},
	{"usd: 2.5", "usd: -1"},
	{"usd: 2.5", `usd: "2"`},
	{"action: none", "action: deploy"},
	{"on: [started, closed]", "on: []"},
	{"on: [started, closed]", "on: [always]"},
	{"command: [notify-send, hello]}", "command: [x], webhook: http://x}"},
	{", command: [notify-send, hello]}", "}"},
	{"webhook: \"https://example.org/hook\"", "webhook: example.org"},
	{"allow_protected: false", "allow_protected: none"},
	{"close: {action: none}", "closing: {action: none}"},
	{"setup: [[\"go\", \"mod\", \"download\"]]", "setup: go mod download"},
}

func TestSchemaAndParserAcceptTheSamePlans(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, Schema())
	for _, good := range []string{richPlan, minimalPlan, strings.ReplaceAll(richPlan, "themes: [tls]", "themes:"),
		strings.Replace(richPlan, `commands: [["go","build","./..."],"go vet ./..."]`, "commands: none", 1),
		strings.Replace(minimalPlan, "version: 1", "version: 1\nintent:\npolicy: {resume_margin: 0}", 1)} {
		_, faults := Parse("plan.yaml", []byte(good))
		require.NoError(t, faults.Err())
		require.NoError(t, schema.Validate(toJSON(t, good)))
	}
}

func TestSchemaAndParserRefuseTheSameStructure(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, Schema())
	for _, change := range structuralFaults {
		t.Run(fmt.Sprintf("%q", change[1]), func(t *testing.T) {
			t.Parallel()
			require.Contains(t, richPlan, change[0])
			bad := strings.Replace(richPlan, change[0], change[1], 1)
			p, faults := Parse("plan.yaml", []byte(bad))
			require.Error(t, faults.Err())
			require.Nil(t, p)
			require.Error(t, schema.Validate(toJSON(t, bad)))
			for _, f := range faults {
				require.Positive(t, f.Line, f.String())
				require.Positive(t, f.Column, f.String())
			}
		})
	}
}

func TestSchemaNamesEveryKeyOfTheFile(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]any `json:"properties"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	keys := func(properties map[string]any) []string {
		var names []string
		for name := range properties {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	for name, probe := range map[string]any{"": &planFile{}, "finding": &Finding{}, "node": &Node{}, "notification": &Notification{}} {
		properties := schema.Properties
		if name != "" {
			properties = schema.Defs[name].Properties
		}
		require.Equal(t, keys(properties), fileKeys(t, probe), name)
	}
	sub := func(name string) []string {
		return keys(schema.Properties[name].(map[string]any)["properties"].(map[string]any))
	}
	require.Equal(t, sub("policy"), fileKeys(t, &Policy{}))
	require.Equal(t, sub("git"), fileKeys(t, &Git{}))
	require.Equal(t, sub("gate"), fileKeys(t, &gateFile{}))
	require.Equal(t, sub("intent"), fileKeys(t, &Intent{}))
	require.Equal(t, sub("budget"), fileKeys(t, &budgetFile{}))
	require.Equal(t, sub("close"), fileKeys(t, &Close{}))
}

// fileKeys asks the decoder itself which keys it knows.
func fileKeys(t *testing.T, target any) []string {
	root, faults := strictyaml.Parse([]byte("zzzzzzzzzzzzzzzz: 1"))
	require.Empty(t, faults)
	faults = strictyaml.Decode(root, target)
	require.Len(t, faults, 1)
	list, ok := strings.CutPrefix(faults[0].Remedy, "known keys are ")
	require.True(t, ok, faults[0].Remedy)
	names := strings.Split(list, ", ")
	slices.Sort(names)
	return names
}

// mutate replaces, renames or removes one value somewhere in a document.
func mutate(t *rapid.T, value any) any {
	replacement := rapid.SampledFrom([]any{nil, true, 7, -3, "text", "", []any{}, []any{"a"}, map[string]any{}, "none", []any{1}, []any{nil}})
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if len(keys) == 0 || rapid.IntRange(0, 5).Draw(t, "here") == 0 {
			return replacement.Draw(t, "replacement")
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 7).Draw(t, "change") {
		case 0:
			delete(v, key)
		case 1:
			v[key+"x"] = v[key]
		default:
			v[key] = mutate(t, v[key])
		}
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 5).Draw(t, "here") == 0 {
			return replacement.Draw(t, "replacement")
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		v[i] = mutate(t, v[i])
		return v
	}
	return replacement.Draw(t, "replacement")
}

func TestSchemaAgreesWithTheParserOnRandomDamage(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t, Schema())
	whole, err := yaml.YAMLToJSON([]byte(richPlan))
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var doc any
		require.NoError(t, json.Unmarshal(whole, &doc))
		doc = mutate(t, doc)
		data, err := json.Marshal(doc)
		require.NoError(t, err)
		loaded, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		require.NoError(t, err)
		invalid := schema.Validate(loaded)

		_, faults := Parse("plan.json", data)
		if faults.Err() == nil {
			require.NoError(t, invalid, "what the parser takes is valid: %s", data)
		}
		root, found := strictyaml.Parse(data)
		require.Empty(t, found)
		file := defaults()
		if len(strictyaml.Decode(root, &file)) > 0 {
			require.Error(t, invalid, "what cannot be decoded is invalid: %s", data)
		}
	})
}
