package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parse requires a valid plan.
func parse(t require.TestingT, text string) *Plan {
	p, faults := Parse("plan.yaml", []byte(text))
	require.NoError(t, faults.Err())
	return p
}

// faultTexts returns the faults as they are printed.
func faultTexts(text string) []string {
	_, faults := Parse("plan.yaml", []byte(text))
	out := make([]string, len(faults))
	for i, f := range faults {
		out[i] = f.String()
	}
	return out
}

func TestParseAppliesTheDefaults(t *testing.T) {
	t.Parallel()
	p, faults := Parse("audits/TLS 2026.yaml", []byte(`version: 1
findings:
  - {id: F-1, title: x, severity: critical, files: [{path: ./client//tls.go, line_start: 3}, {path: client/tls.go}]}
  - {id: F-2, title: y, severity: low, files: [{path: "app/[id]/page.tsx"}]}
  - {id: F-3, title: z, severity: medium, evidence: [seen], package: core}
  - {id: F-4, title: z, severity: info, files: [{path: README.md}]}
`))
	require.NoError(t, faults.Err())
	require.Equal(t, "tls-2026", p.ID)
	require.Equal(t, "client/tls.go", p.Findings[0].Files[0].Path)
	require.Equal(t, []string{"client", "app", "core", "."},
		[]string{p.Findings[0].Package, p.Findings[1].Package, p.Findings[2].Package, p.Findings[3].Package})
	require.Equal(t, []Node{
		{ID: "F-1", Findings: []string{"F-1"}, Write: []string{"client/tls.go"}, Tier: TierDeep},
		{ID: "F-2", Findings: []string{"F-2"}, Write: []string{`app/\[id\]/page.tsx`}, Tier: TierSmall},
		{ID: "F-3", Findings: []string{"F-3"}, Tier: TierStandard},
		{ID: "F-4", Findings: []string{"F-4"}, Write: []string{"README.md"}, Tier: TierSmall},
	}, p.Nodes)
	require.Equal(t, Git{Author: "Mendflow <mendflow@localhost>"}, p.Git)
	require.Equal(t, Gate{Baseline: BaselineRequire, OnRed: OnRedAttribute}, p.Gate)
	require.Equal(t, Policy{
		Landing: LandingOptimistic, Scope: ScopeStrict, Spill: SpillSameTier, AttemptMinutes: 30, IdleMinutes: 10,
		SetupMinutes: 10, VerifyMinutes: 10, GateMinutes: 30,
		ResumeMargin: Duration(5 * time.Second), ResumeJitter: Duration(30 * time.Second),
	}, p.Policy)
	require.Equal(t, Close{Action: CloseNone}, p.Close)
}

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	p := parse(t, richPlan)
	require.Equal(t, "tls-2026-11", p.ID)
	require.Equal(t, []Command{{Argv: []string{"go", "build", "./..."}}, {Shell: "go vet ./..."}}, p.Gate.Commands)
	require.Equal(t, Budget{USDMicros: 2_500_000}, p.Budget)
	require.Equal(t, Command{Shell: "go test ./server"}, p.Nodes[1].Verify[0])
	require.Equal(t, &Command{Argv: []string{"notify-send", "hello"}}, p.Notify[0].Command)
	require.Equal(t, "HOOK_SECRET", p.Notify[1].SecretEnv)

	stored, err := json.Marshal(p)
	require.NoError(t, err)
	var back Plan
	require.NoError(t, json.Unmarshal(stored, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(stored), string(again), "the stored plan survives its round trip")
}

func TestParseReadsJSONAndAnchors(t *testing.T) {
	t.Parallel()
	fromJSON, faults := Parse("a.json", []byte("{\n\t\"version\": 1,\n\t\"findings\": [{\"id\": \"F\\u002d1\", \"title\": \"x\", \"severity\": \"high\", \"files\": [{\"path\": \"a\\/b.go\"}]}]\n}"))
	require.NoError(t, faults.Err())
	require.Equal(t, "a/b.go", fromJSON.Findings[0].Files[0].Path)

	p := parse(t, `version: 1
findings:
  - &first {id: F-1, title: x, severity: high, files: &files [{path: a.go}]}
  - {<<: *first, id: F-2}
  - {id: F-3, title: y, severity: low, files: *files}
`)
	require.Equal(t, "x", p.Findings[1].Title)
	require.Equal(t, "a.go", p.Findings[2].Files[0].Path)
}

func TestGateWordNoneDisablesTheGate(t *testing.T) {
	t.Parallel()
	p := parse(t, minimalPlan+"gate: {commands: none}\n")
	require.True(t, p.Gate.Disabled)
	require.Empty(t, p.Gate.Commands)
}

func TestFaultsOfAPlanAreReportedAtOnceWithTheirPlaces(t *testing.T) {
	t.Parallel()
	got := faultTexts(`version: 1
findngs: []
findings:
  - {id: F-1, title: x, severity: hihg, files: [{path: a/b.go, line_start: "3"}]}
  - {id: f-1, titel: y, severity: low, files: [{path: /etc/passwd}]}
  - {id: F-3, title: y, severity: low}
nodes:
  - id: A
    findings: [F-1]
    depends_on: [B, B-9]
    write: ["../x", "a/**", "[", ".git/x"]
    verify: [[], ""]
    phase: 1
  - id: B
    findings: [F-1, F-9]
    depends_on: [A]
policy: {landing: strickt, idle_minutes: 0}
policy: {}
`)
	require.Equal(t, []string{
		`plan.yaml:2:1: findngs: unknown key "findngs"; did you mean "findings"?`,
		`plan.yaml:4:35: findings[0].severity: unknown value "hihg"; did you mean "high"? (one of critical, high, medium, low, info)`,
		`plan.yaml:4:76: findings[0].files[0].line_start: it is the text "3", want a whole number`,
		`plan.yaml:5:10: findings[1].id: finding id "f-1" is used twice (case does not count); the first is findings[0]`,
		`plan.yaml:5:15: findings[1].titel: unknown key "titel"; did you mean "title"?`,
		`plan.yaml:5:55: findings[1].files[0].path: path "/etc/passwd" is not usable: it is absolute; write it from the repository root`,
		`plan.yaml:6:5: findings[2]: finding "F-3" is in no node; add it to a node, or leave it out`,
		`plan.yaml:10:18: nodes[0].depends_on[0]: the nodes depend on each other: A → B → A; remove one of these edges`,
		`plan.yaml:10:21: nodes[0].depends_on[1]: unknown node "B-9"; known nodes are A, B`,
		`plan.yaml:11:13: nodes[0].write[0]: glob "../x" is not usable: it leaves the repository (..)`,
		`plan.yaml:11:29: nodes[0].write[2]: glob "[" is not usable: its brackets, braces or backslashes do not close`,
		`plan.yaml:11:34: nodes[0].write[3]: glob ".git/x" is not usable: it lies in .git, which workers never own`,
		`plan.yaml:12:14: nodes[0].verify[0]: the command is empty`,
		`plan.yaml:12:18: nodes[0].verify[1]: the command is empty`,
		`plan.yaml:15:16: nodes[1].findings[0]: finding "F-1" is in two nodes, A and B; leave it in one`,
		`plan.yaml:15:21: nodes[1].findings[1]: unknown finding "F-9"; known findings are F-1, F-3`,
		`plan.yaml:16:18: nodes[1].depends_on[0]: B (phase 0) depends on A of the higher phase 1; a phase never waits for a later one: move one of the two`,
		`plan.yaml:17:19: policy.landing: unknown value "strickt"; did you mean "strict"? (one of optimistic, strict)`,
		`plan.yaml:17:42: policy.idle_minutes: 0 minutes is out of range; write 1 to 10080`,
		`plan.yaml:18:1: policy: key "policy" is given twice; the first is in line 17`,
	}, got)
}

func TestFilesThatAreNoPlan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "plan.yaml:1:1: the file is empty",
		"# nothing\n":              "plan.yaml:1:1: the file is empty",
		"just text":                "plan.yaml:1:1: the file holds text, want a mapping with keys",
		"- a\n- b\n":               "plan.yaml:1:1: the file holds a list, want a mapping with keys",
		minimalPlan + "---\na: 1":  "plan.yaml:4:1: the file has a second document; keep one document per file",
		"version: 1\nfindings: []": "plan.yaml:2:11: findings: there is nothing to do: the plan has no findings",
		"version: 1\nnodes: []\nfindings: [{id: F, title: t, severity: low, evidence: [e]}]": "plan.yaml:2:8: nodes: the list is empty; leave nodes out for one node per finding",
		"version: 1\nid: x\nfindings: [a":    "plan.yaml:3:11: the YAML is malformed: sequence end token ']' not found",
		"a: \xff":                            "plan.yaml:1:1: the line is not UTF-8",
		"a: 1\nb: \x00":                      "plan.yaml:2:1: the line contains a NUL byte",
		strings.Repeat("[", 5000):            "plan.yaml:1:1: values are nested more than 1000 deep",
		strings.Repeat("- ", 5000) + "x":     "plan.yaml:1:1: values are nested more than 1000 deep",
		minimalPlan + "goal: *nobody\n":      "plan.yaml:3:7: goal: alias *nobody has no anchor before it",
		minimalPlan + "goal: !!int x\n":      "plan.yaml:3:7: goal: tag !!int does not fit; leave the tag out",
		"a: &a [*a]\nversion: 1":             "plan.yaml:1:8: a[0]: alias *a contains itself",
		"version: 1\nfindings: {id: F}\n":    "plan.yaml:2:11: findings: it is a mapping, want a list",
		"version: 1\nfindings:\n  - F-1\n":   `plan.yaml:3:5: findings[0]: it is the text "F-1", want a mapping; its keys are id, title, severity, lens, confidence, package, themes, files, summary, evidence, folded`,
		"version: 1\nfindings:\n  - ~\n":     "plan.yaml:3:5: findings[0]: the list has an empty entry; remove it",
		minimalPlan + "id: 2026\n":           `plan.yaml:3:5: id: it is the number 2026, want text; put it in quotes: "2026"`,
		minimalPlan + "allow_protected: no":  `plan.yaml:3:18: allow_protected: it is the text "no", want a boolean`,
		minimalPlan + "link: node_modules\n": `plan.yaml:3:7: link: it is the text "node_modules", want a list; write [node_modules]`,
	} {
		require.Contains(t, faultTexts(text), want)
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	t.Parallel()
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	require.Contains(t, strings.Join(faultTexts(text), "\n"), "more than 500000 values, aliases expanded")
}

func TestReferencesAreNotJudgedWhenIDsCannotBeRead(t *testing.T) {
	t.Parallel()
	got := faultTexts(`version: 1
findings: [{id: 7, title: x, severity: low, evidence: [e]}]
nodes: [{id: A, findings: ["7"]}]
`)
	require.Len(t, got, 1)
	require.Contains(t, got[0], "want text")
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"env: [GIT_DIR]":                                      "env[0]: GIT_DIR is never passed through; name variables only, not values",
		"env: [MENDFLOW_RUN]":                                 "env[0]: MENDFLOW_RUN is set by Mendflow itself; name variables only, not values",
		"env: [temporal_address]":                             "env[0]: temporal_address is never passed through; name variables only, not values",
		"base: -x":                                            `base: "-x" is no revision; write a branch, a tag or a commit`,
		"git: {author: x}":                                    `git.author: "x" is no author; write Name <address>`,
		"link: [../x]":                                        `link[0]: folder "../x" is not usable: it leaves the repository (..)`,
		"budget: {usd: 1e3}":                                  "budget.usd: it is no number; write dollars as a decimal number, like 2.50",
		"budget: {usd: 0.0000001}":                            "budget.usd: 0.0000001 has more than six decimals; write dollars as a decimal number, like 2.50",
		"budget: {tokens: -1}":                                "budget.tokens: the budget is negative; write 0 for no cap",
		"policy: {resume_margin: 25h}":                        "policy.resume_margin: 25h0m0s is more than a day",
		"policy: {resume_margin: -1s}":                        `policy.resume_margin: parse duration "-1s": must not be negative`,
		"notify: [{on: [paused], webhook: ftp:x}]":            "notify[0].webhook: it is no http or https address",
		"notify: [{on: [paused], command: x, secret_env: S}]": "notify[0].secret_env: only webhooks are signed; leave it out",
		"gate: {commands: nope}":                              `gate.commands: it is the text "nope"; write a list of commands, or the word none for no gate`,
		"id: a.lock":                                          `id: "a.lock" ends in .lock, which git reserves; write an id like tls-2026-11`,
		"id: _x":                                              `id: "_x" begins with "_"; begin with a letter or digit; write an id like tls-2026-11`,
	} {
		got := strings.Join(faultTexts(minimalPlan+setting+"\n"), "\n")
		require.Contains(t, got, ": "+want)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"A", "a.b-c_D.9", strings.Repeat("x", 64)} {
		require.NoError(t, CheckID(id), id)
	}
	for _, id := range []string{"", "a..b", ".a", "a.", "a/b", "a b", "ä", "x.LOCK", strings.Repeat("x", 65), "a\n"} {
		require.Error(t, CheckID(id), id)
	}
	for name, want := range map[string]string{
		"plan.yaml": "plan", "x/My Plan.yml": "my-plan", "-": "", "": "", "ÄÖ.yaml": "", "a..b.json": "a.b",
		strings.Repeat("y", 80) + ".yaml": strings.Repeat("y", 64), "x.lock.yaml": "x", `C:\plans\Tls.yaml`: "tls",
	} {
		require.Equal(t, want, idFromFile(name), name)
	}
}

func TestMicrosAreExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "15": 15_000_000, "0.1": 100_000, "2.500000": 2_500_000, "0.000001": 1, ".5": 500_000, "3.": 3_000_000, "1.0000000": 1_000_000} {
		got, err := ParseMicros(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ".", "-1", "1e3", "0x1", "1.2.3", "0.0000001", "1_000", "99999999999999999999", "1000000001"} {
		_, err := ParseMicros(text)
		require.Error(t, err, text)
	}
	require.Equal(t, []string{"2.50", "0.000001", "15.00", "0.125"},
		[]string{FormatUSD(2_500_000), FormatUSD(1), FormatUSD(15_000_000), FormatUSD(125_000)})
}

func TestTierIsDerived(t *testing.T) {
	t.Parallel()
	files := func(n int) (out []Location) {
		for i := range n {
			out = append(out, Location{Path: fmt.Sprint("f", i)})
		}
		return out
	}
	for _, c := range []struct {
		findings []Finding
		want     Tier
	}{
		{[]Finding{{Severity: SeverityCritical, Files: files(1)}}, TierDeep},
		{[]Finding{{Severity: SeverityLow, Confidence: ConfidenceLow, Files: files(1)}}, TierDeep},
		{[]Finding{{Severity: SeverityLow, Files: files(9)}}, TierDeep},
		{[]Finding{{Severity: SeverityMedium, Files: files(8)}}, TierStandard},
		{[]Finding{{Severity: SeverityLow, Files: files(1)}, {Severity: SeverityInfo, Files: files(1)}}, TierSmall},
		{[]Finding{{Severity: SeverityLow, Files: files(2)}}, TierStandard},
		{[]Finding{{Severity: SeverityLow}}, TierStandard},
		{[]Finding{{Severity: SeverityHigh, Files: files(1)}}, TierStandard},
	} {
		require.Equal(t, c.want, DeriveTier(c.findings), "%+v", c.findings)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(richPlan))
	f.Add([]byte(minimalPlan))
	f.Add([]byte("{\"version\":1,\"findings\":[{\"id\":\"a\"}]}"))
	f.Add([]byte("a: &a [*a]\n<<: *a\n? x\n: |\n  y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, faults := Parse("plan.yaml", data)
		if (p == nil) != (faults.Err() != nil) {
			t.Fatalf("plan %v with faults %v", p, faults)
		}
		if p == nil {
			return
		}
		s := Select(p, nil)
		if len(Skeleton(p, s, nil)) != len(s.Nodes) || len(s.Findings) != len(p.Findings) {
			t.Fatal("a valid plan lost nodes")
		}
		if Show(p, nil, faults).Text() == "" {
			t.Fatal("a valid plan shows nothing")
		}
		_ = ValidateAgainst(p, &Facts{})
	})
}
