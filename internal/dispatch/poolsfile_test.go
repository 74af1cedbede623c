package dispatch

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

const richPools = `version: 1
pools:
  - id: claude-max
    provider: claude
    account: team-a
    model: opus
    tier: deep
    rank: 2
    max_concurrent: 3
    context_tokens: 200000
    output_tokens: 32000
    cost: {input: 15, output: 75.125}
    env: [ANTHROPIC_API_KEY]
    writable: ["~/.claude", /opt/cache]
    options: {effort: high, retries: 2, fast: true}
  - id: fixer
    provider: command
    command: ["go", "fix", "{prompt}", "--out={result}"]
    cost: {input: 0, output: 0}
  - {id: shell, provider: command, command: "awk '{print}' $MENDFLOW_PROMPT"}
limit_patterns:
  - {match: "slow down, back in (?P<wait>.+)", outcome: rate_limited, reset: wait}
  - {match: "no money", outcome: credit_exhausted}
  - {match: "busy", outcome: overloaded, reset: 15m}
exclude: [SHELL]
`

func poolFaults(text string) []string {
	_, faults := ParsePools("pools.yaml", []byte(text))
	out := make([]string, len(faults))
	for i, f := range faults {
		out[i] = f.String()
	}
	return out
}

func TestPoolsFileIsReadWithItsDefaults(t *testing.T) {
	t.Parallel()
	file, faults := ParsePools("pools.yaml", []byte(richPools))
	require.Empty(t, faults)
	require.Equal(t, &contract.PoolsFile{
		Version: 1,
		Pools: []contract.Pool{
			{
				ID: "claude-max", Provider: contract.ProviderClaude, Account: "team-a", Model: "opus", Tier: plan.TierDeep, Rank: 2,
				MaxConcurrent: 3, ContextTokens: 200_000, OutputTokens: 32_000,
				Cost: &contract.Cost{InputMicros: 15_000_000, OutputMicros: 75_125_000},
				Env:  []string{"ANTHROPIC_API_KEY"}, Writable: []string{"~/.claude", "/opt/cache"},
				Options: map[string]string{"effort": "high", "retries": "2", "fast": "true"},
			},
			{
				ID: "fixer", Provider: contract.ProviderCommand, Account: "fixer", Tier: plan.TierStandard, MaxConcurrent: 1,
				Cost: &contract.Cost{}, Command: &plan.Command{Argv: []string{"go", "fix", "{prompt}", "--out={result}"}},
			},
			{
				ID: "shell", Provider: contract.ProviderCommand, Account: "shell", Tier: plan.TierStandard, MaxConcurrent: 1,
				Command: &plan.Command{Shell: "awk '{print}' $MENDFLOW_PROMPT"},
			},
		},
		LimitPatterns: []contract.LimitPattern{
			{Match: "slow down, back in (?P<wait>.+)", Outcome: "rate_limited", Reset: "wait"},
			{Match: "no money", Outcome: "credit_exhausted"},
			{Match: "busy", Outcome: "overloaded", Reset: "15m"},
		},
		Exclude: []string{"shell"},
	}, file)
	require.True(t, file.Pools[1].Cost.Free())
	require.Nil(t, file.Pools[2].Cost, "unknown is not free")
}

func TestFaultsOfAPoolsFileAreReportedAtOnceWithTheirPlaces(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"pools.yaml:1:10: version: version 2 is not supported; write version: 1",
		`pools.yaml:3:23: pools[0].provider: unknown value "claud"; did you mean "claude"? (one of claude, codex, opencode, gemini, qwen, openai, command, host)`,
		`pools.yaml:3:30: pools[0].acount: unknown key "acount"; did you mean "account"?`,
		`pools.yaml:4:10: pools[1].id: pool id "A" is used twice (case does not count); the first is pools[0]`,
		"pools.yaml:4:46: pools[1].max_concurrent: 0 attempts at once is out of range; write 1 to 1000; exclude the pool to turn it off",
		"pools.yaml:4:63: pools[1].cost.input: -1 is negative; write dollars as a decimal number, like 2.50",
		"pools.yaml:5:5: pools[2].command: provider command needs a command; write it as a list of arguments, like [\"go\", \"fix\", \"./...\"]",
		`pools.yaml:6:47: pools[3].command[1]: unknown placeholder {promt}; did you mean "{prompt}"?`,
		"pools.yaml:6:58: pools[3].command[2]: unknown placeholder {file}; known ones are {prompt} {result} {worktree} {node} {model}",
		"pools.yaml:7:39: pools[4].command: provider codex takes no command; leave it out, or write provider: command",
		"pools.yaml:7:50: pools[4].env[0]: TEMPORAL_ADDRESS is never passed through; name variables only, not values",
		"pools.yaml:7:68: pools[4].env[1]: GIT_SSH is never passed through; name variables only, not values",
		`pools.yaml:7:77: pools[4].env[2]: "A=b" is no name of an environment variable; name variables only, not values`,
		`pools.yaml:7:96: pools[4].writable[0]: folder "cache" is relative; begin with / or ~/`,
		`pools.yaml:8:39: pools[5].account: accounts "c" and "C" differ in case only; spell them alike`,
		"pools.yaml:8:58: pools[5].context_tokens: the number of tokens is negative; write 0 when it is unknown",
		"pools.yaml:8:68: pools[5].cost.output: the price of output tokens is missing; write both prices, or leave cost out when it is unknown",
		"pools.yaml:10:13: limit_patterns[0].match: the pattern does not compile: error parsing regexp: missing closing ): `(`; write a regular expression (RE2)",
		`pools.yaml:10:27: limit_patterns[0].outcome: unknown value "success"; write one of rate_limited, overloaded, credit_exhausted, auth_failed, model_unavailable, packet_too_large, quota_unclassified`,
		"pools.yaml:11:13: limit_patterns[1].match: the pattern matches an empty text, so it would match everything",
		`pools.yaml:12:49: limit_patterns[2].reset: "later" is neither a group of the pattern nor a duration; write the name of a group (?P<name>…), or a duration like 15m`,
		`pools.yaml:13:11: exclude[0]: unknown pool "nobody"; known pools are a, A, c, d, e, f`,
	}, poolFaults(`version: 2
pools:
  - {id: a, provider: claud, acount: x}
  - {id: A, provider: codex, max_concurrent: 0, cost: {input: -1, output: 1}}
  - {id: c, provider: command}
  - {id: d, provider: command, command: ["a", "{promt}", "{file}"]}
  - {id: e, provider: codex, command: [x], env: [TEMPORAL_ADDRESS, GIT_SSH, "A=b"], writable: [cache]}
  - {id: f, provider: codex, account: C, context_tokens: -5, cost: {input: 1}}
limit_patterns:
  - {match: "(", outcome: success}
  - {match: ".*", outcome: overloaded}
  - {match: "busy", outcome: overloaded, reset: later}
exclude: [nobody]
`))
}

func TestTheSourcePoolStaysBesideAHostPoolOfItsAccount(t *testing.T) {
	t.Parallel()
	text := `version: 1
pools:
  - {id: desk, provider: host, account: team}
  - {id: api, provider: openai, account: team}
`
	file, faults := ParsePools("pools.yaml", []byte(text))
	require.NoError(t, faults.Err())
	require.Equal(t, []string{"pools.yaml:3:5: warning: pools[0]: host pool desk is left out: pool api uses its account team"}, poolFaults(text))
	require.Len(t, file.Pools, 1)
	require.Equal(t, "api", file.Pools[0].ID)

	file, faults = ParsePools("pools.yaml", []byte(text+"exclude: [api]\n"))
	require.Empty(t, faults, "an excluded source pool takes nobody's place")
	require.Len(t, file.Pools, 2)
}

func TestBracesOfTheShellAreNoPlaceholders(t *testing.T) {
	t.Parallel()
	line := func(command string) []string {
		return poolFaults("version: 1\npools: [{id: a, provider: command, command: " + command + "}]\n")
	}
	require.Empty(t, line(`"awk '{print}' {prompt} ${mode} {a,b}"`))
	require.Equal(t, []string{`pools.yaml:2:45: pools[0].command: unknown placeholder {promt}; did you mean "{prompt}"?`}, line(`"cat {promt}"`))
}

func TestAtLeastOnePoolIsLeft(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"pools.yaml:1:1: pools: the file has no pools; declare at least one"}, poolFaults("version: 1\n"))
	require.Equal(t, []string{"pools.yaml:3:10: exclude: no pool is left; exclude fewer"},
		poolFaults("version: 1\npools: [{id: a, provider: codex}]\nexclude: [a]\n"))
}

func TestPoolsSchemaAgreesWithTheParser(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(plan.PoolsSchema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	meta, err := c.Compile("https://json-schema.org/draft/2020-12/schema")
	require.NoError(t, err)
	require.NoError(t, meta.Validate(doc))
	require.NoError(t, c.AddResource("pools.schema.json", doc))
	schema, err := c.Compile("pools.schema.json")
	require.NoError(t, err)
	check := func(text string) error {
		data, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		loaded, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		require.NoError(t, err)
		return schema.Validate(loaded)
	}
	require.NoError(t, check(richPools))
	for _, change := range [][2]string{
		{"version: 1", "version: 3"},
		{"version: 1\n", ""},
		{"id: claude-max", "id: claude max"},
		{"provider: claude", "provider: anthropic"},
		{"account: team-a", "account: team/a"},
		{"tier: deep", "tier: huge"},
		{"rank: 2", "rank: high"},
		{"max_concurrent: 3", "max_concurrent: 0"},
		{"context_tokens: 200000", "context_tokens: -1"},
		{"output: 75.125", "outptu: 1"},
		{"input: 15,", ""},
		{"input: 15", "input: cheap"},
		{"env: [ANTHROPIC_API_KEY]", "env: [git_dir]"},
		{`"~/.claude"`, `"~user"`},
		{"effort: high", "effort: [high]"},
		{`command: ["go", "fix", "{prompt}", "--out={result}"]`, "command: []"},
		{`command: ["go", "fix", "{prompt}", "--out={result}"]`, "model: x"},
		{"model: opus", "command: [x]"},
		{"outcome: rate_limited", "outcome: success"},
		{`match: "no money"`, `match: ""`},
		{"exclude: [SHELL]", "exclude: SHELL"},
		{"exclude: [SHELL]", "excluded: [SHELL]"},
	} {
		require.Contains(t, richPools, change[0])
		bad := strings.Replace(richPools, change[0], change[1], 1)
		require.NotEmpty(t, poolFaults(bad), change[1])
		require.Error(t, check(bad), change[1])
	}
}

func FuzzParsePools(f *testing.F) {
	f.Add([]byte(richPools))
	f.Add([]byte(`{"version":1,"pools":[{"id":"a","provider":"host"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, faults := ParsePools("pools.yaml", data)
		if (file == nil) != (faults.Err() != nil) {
			t.Fatalf("file %v with faults %v", file, faults)
		}
		if file == nil {
			return
		}
		if len(file.Pools) == 0 {
			t.Fatal("a valid file without pools")
		}
		if _, err := json.Marshal(file); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPatternOfWhatOnlyAnOperatorEndsHasNoReset(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"pools.yaml:4:57: limit_patterns[0].reset: auth_failed has no reset: only an operator ends it; leave reset out, or write rate_limited",
	}, poolFaults(`version: 1
pools: [{id: a, provider: command, command: [x]}]
limit_patterns:
  - {match: "who are you", outcome: auth_failed, reset: 15m}
`))
}
