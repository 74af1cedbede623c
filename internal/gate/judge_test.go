package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/plan"
)

func red(ids ...string) gate.Observation {
	return gate.Observation{ExitCode: 1, Failures: gate.Failures{Known: len(ids) > 0, IDs: ids}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	green := gate.Observation{}
	late := gate.Observation{ExitCode: 143, TimedOut: true}
	blind := red("p: failed")
	blind.Blind = []string{"p", "dir/"}
	for name, c := range map[string]struct {
		now  gate.Observation
		base *gate.Observation
		want gate.Judgement
	}{
		"green":                       {green, nil, gate.Judgement{Status: gate.StatusGreen}},
		"green, red base":             {green, new(red("a")), gate.Judgement{Status: gate.StatusGreen}},
		"red without a baseline":      {red("a"), nil, gate.Judgement{Status: gate.StatusRed, New: []string{"a"}}},
		"red, green base":             {red("a"), &green, gate.Judgement{Status: gate.StatusRed, New: []string{"a"}}},
		"the same failures":           {red("a", "b"), new(red("a", "b")), gate.Judgement{Status: gate.StatusAccepted}},
		"fewer failures":              {red("b"), new(red("a", "b")), gate.Judgement{Status: gate.StatusAccepted}},
		"a new failure":               {red("b", "c"), new(red("a", "b")), gate.Judgement{Status: gate.StatusRed, New: []string{"c"}}},
		"no ids any more":             {red(), new(red("a")), gate.Judgement{Status: gate.StatusRed}},
		"no ids at the base":          {red("a"), new(red()), gate.Judgement{Status: gate.StatusAccepted, Residual: []string{"red at the base, and its output cannot be compared"}}},
		"timeout without a baseline":  {late, nil, gate.Judgement{Status: gate.StatusRed}},
		"timeout, base red":           {late, new(red("a")), gate.Judgement{Status: gate.StatusRed}},
		"timeout at the base as well": {late, &late, gate.Judgement{Status: gate.StatusAccepted, Residual: []string{"ran out of time at the base"}}},
		"red, timeout at the base":    {red("a"), &late, gate.Judgement{Status: gate.StatusAccepted, Residual: []string{"ran out of time at the base"}}},
		"hidden at the base": {red("dir/x.go: bad", "p: TestA", "p: TestB"), &blind,
			gate.Judgement{Status: gate.StatusAccepted, Residual: []string{
				"dir/ cannot be compared: a failure at the base hid what it does", "p cannot be compared: a failure at the base hid what it does"}}},
		"hidden at the base, and one elsewhere": {red("dir/sub/x.go: bad", "p: TestA"), &blind, gate.Judgement{Status: gate.StatusRed, New: []string{"dir/sub/x.go: bad"}}},
	} {
		require.Equal(t, c.want, gate.Judge(c.now, c.base), name)
	}
}

// TestJudgeNeverAcceptsAFailureThatTheBaseShowsToBeNew states the rule for random sets of ids.
func TestJudgeNeverAcceptsAFailureThatTheBaseShowsToBeNew(t *testing.T) {
	t.Parallel()
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p: A", "p: B", "q: A", "q: failed", "r: C", "d/f.go: x"}), 1, -1, rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		base, now := red(ids.Draw(t, "base")...), red(ids.Draw(t, "now")...)
		added := map[string]bool{}
		for _, id := range now.IDs {
			added[id] = true
		}
		for _, id := range base.IDs {
			delete(added, id)
		}
		got := gate.Judge(now, &base)
		require.Equal(t, len(added) > 0, got.Status == gate.StatusRed)
		require.Len(t, got.New, len(added))
		require.Equal(t, gate.StatusAccepted, gate.Judge(base, &base).Status, "the base itself is never red")
	})
}

func TestFindingsSurviveEditsAbove(t *testing.T) {
	t.Parallel()
	before := `# example.com/app/cart
cart/total.go:10:2: undefined: sum
cart/total.go:14:2: undefined: sum
/tree/cart/total.go:20:7: declared and not used: x
# example.com/app/web
web/handler.go:3:8: f redeclared in this block
	web/other.go:9:6: other declaration of f
go: downloading example.com/dep v1.0.0
../other/x.go:1:1: expected 'package', found 'EOF'
`
	want := []string{
		"cart/total.go: declared and not used: x", "cart/total.go: undefined: sum", "cart/total.go: undefined: sum #2",
		"other/x.go: expected 'package', found 'EOF'", "web/handler.go: f redeclared in this block",
	}
	// The same, run from the root, with every line moved.
	f := gate.Findings(strings.ReplaceAll(before, "../other", "other"), "/tree", "")
	require.Equal(t, gate.Failures{Known: true, IDs: want}, f)
	moved := strings.NewReplacer(":10:2", ":110:2", ":14:2", ":114:5", ":20:7", ":120:1", ":3:8", ":4:8", ":9:6", ":90:6", "../other", "other", "/tree/", "/elsewhere/tree/").Replace(before)
	require.Equal(t, f, gate.Findings(moved, "/elsewhere/tree", ""))
	// Run from a folder, its paths are those of the repository all the same.
	require.Contains(t, gate.Findings("../other/x.go:1:1: bad\nmain.go:2:3: worse\n", "/tree", "app").IDs, "app/main.go: worse")
	require.Contains(t, gate.Findings("../other/x.go:1:1: bad\n", "/tree", "app").IDs, "other/x.go: bad")
}

func TestFindingsSaySoWhereOneHidesOthers(t *testing.T) {
	t.Parallel()
	build := gate.Findings("# p\na/b.go:1:1: undefined: x\na/b.go:9:1: too many errors\n", "", "")
	require.Equal(t, gate.Failures{Known: true, IDs: []string{"a/b.go: undefined: x"}, Blind: []string{"a/"}}, build)
	vet := gate.Findings("# p\n# [p]\nvet: a/b.go:7:2: undefined: x\nc/d.go:3:42: fmt.Printf format %d has arg x of wrong type string\n", "", "")
	require.Equal(t, gate.Failures{Known: true, IDs: []string{"a/: does not type-check", "c/d.go: fmt.Printf format %d has arg x of wrong type string"}, Blind: []string{"a/"}}, vet)
}

func TestFindingsOfAnythingElseAreWholeLines(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"pattern ./...: directory prefix . does not contain main module or its selected dependencies"},
		gate.Findings("pattern ./...: directory prefix . does not contain main module or its selected dependencies\n", "", "").IDs)
	require.Equal(t, gate.Failures{}, gate.Findings("", "", ""), "a failure without a word says nothing")
	long := gate.Findings("a.go:1:1: "+strings.Repeat("x", 1000)+"1\na.go:1:1: "+strings.Repeat("x", 1000)+"2\n", "", "")
	require.Len(t, long.IDs, 2, "what differs behind the cut stays apart")
	require.LessOrEqual(t, len(long.IDs[0]), 400)
	var many strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&many, "a.go:1:1: error %d\n", i)
	}
	require.Equal(t, gate.Failures{}, gate.Findings(many.String(), "", ""), "too many to be compared in earnest")
}

func FuzzFindings(f *testing.F) {
	f.Add("# p\na/b.go:1:1: undefined: x\na/b.go:9:1: too many errors\n", "/tree", "dir")
	f.Add("vet: x.go:1:1: y\n\xff:1: z\n", "", "")
	f.Fuzz(func(t *testing.T, output, root, dir string) {
		got := gate.Findings(output, root, dir)
		require.Equal(t, got, gate.Findings(output, root, dir))
		require.Equal(t, len(got.IDs) > 0, got.Known)
	})
}

func TestBaselineKeyChangesWithEverythingThatDecidesABaseline(t *testing.T) {
	t.Parallel()
	c := func(dir string, argv ...string) contract.GateCommand {
		return contract.GateCommand{Command: plan.Command{Argv: argv}, Dir: dir, Layer: gate.LayerTest}
	}
	a, b := c("", "go", "test", "./..."), c("", "go", "vet", "./...")
	setup := []contract.GateCommand{c("web", "npm", "ci")}
	key := gate.BaselineKey("commit", []contract.GateCommand{a, b}, setup, []string{"go version go1.26.8"})
	require.Regexp(t, `^[0-9a-f]{64}$`, key)
	require.Equal(t, key, gate.BaselineKey("commit", []contract.GateCommand{a, b}, setup, []string{"go version go1.26.8"}))
	seen := map[string]bool{key: true}
	for _, other := range []string{
		gate.BaselineKey("other", []contract.GateCommand{a, b}, setup, []string{"go version go1.26.8"}),
		gate.BaselineKey("commit", []contract.GateCommand{b, a}, setup, []string{"go version go1.26.8"}),
		gate.BaselineKey("commit", []contract.GateCommand{a}, setup, []string{"go version go1.26.8"}),
		gate.BaselineKey("commit", []contract.GateCommand{c("sub", "go", "test", "./..."), b}, setup, []string{"go version go1.26.8"}),
		gate.BaselineKey("commit", []contract.GateCommand{a, b}, nil, []string{"go version go1.26.8"}),
		gate.BaselineKey("commit", []contract.GateCommand{a, b}, setup, []string{"go version go1.27"}),
	} {
		require.False(t, seen[other])
		seen[other] = true
	}
}

func TestProbesNameTheToolsOnce(t *testing.T) {
	t.Parallel()
	commands := gate.FromPlan([]plan.Command{
		{Argv: []string{"env", "GOWORK=off", "go", "build", "./..."}}, {Argv: []string{"go", "vet", "./..."}}, {Argv: []string{"npm", "run", "test"}},
		{Argv: []string{"./mvnw", "test"}}, {Shell: "cargo test"}, {Argv: []string{"env", "A=b"}}, {Argv: []string{"./ci.sh"}},
	})
	require.Equal(t, []gate.Probe{{"go", "version"}, {"java", "--version"}, {"node", "--version"}, {"npm", "--version"}}, gate.Probes(commands))
}

func TestResultsTravelBounded(t *testing.T) {
	t.Parallel()
	r := gate.Result{Kind: gate.KindExecuted, Verdict: gate.VerdictRed, Commit: "c", Seconds: 1.6}
	for i := range 200 {
		r.Residual = append(r.Residual, fmt.Sprint(i, strings.Repeat("ü", 1000)))
		r.Commands = append(r.Commands, gate.CommandResult{
			GateCommand: contract.GateCommand{Command: plan.Command{Shell: strings.Repeat("ü", 1000)}}, Status: gate.StatusRed, ExitCode: 1,
			Tail: strings.Repeat("ü", 4000), New: []string{strings.Repeat("x", 400), "b", "c", "d"},
		})
	}
	end := r.End()
	data, err := json.Marshal(end)
	require.NoError(t, err)
	require.Less(t, len(data), 16<<10)
	require.Equal(t, "red", end.Verdict)
	require.Equal(t, 2, end.Seconds)
	require.LessOrEqual(t, len(end.Tail), 2<<10)
	require.True(t, strings.HasPrefix(end.Tail, "ü"))
}

func TestDisabledSaysSo(t *testing.T) {
	t.Parallel()
	end := gate.Disabled("c", []string{"everything"}).End()
	require.Equal(t, contract.GateEnd{Kind: "disabled", Verdict: "disabled", Commit: "c", Residual: []string{"everything"}}, end)
}

func TestATrialShowsWhatTheGateShowed(t *testing.T) {
	t.Parallel()
	shown := gate.CommandResult{Status: gate.StatusRed, New: []string{"m/tryfunc: TestTry", "m/x: TestX"}}
	red := func(f gate.Failures) gate.CommandResult {
		return gate.CommandResult{Status: gate.StatusRed, Failures: f}
	}
	for name, c := range map[string]struct {
		now  gate.CommandResult
		want bool
	}{
		"green":                    {gate.CommandResult{Status: gate.StatusGreen}, false},
		"only what the base has":   {gate.CommandResult{Status: gate.StatusAccepted, Failures: gate.Failures{Known: true, IDs: []string{"m/x: TestX"}}}, false},
		"the same test":            {red(gate.Failures{Known: true, IDs: []string{"m/tryfunc: TestTry"}}), true},
		"one of them and another":  {red(gate.Failures{Known: true, IDs: []string{"m/a: TestA", "m/x: TestX"}}), true},
		"another test":             {red(gate.Failures{Known: true, IDs: []string{"m/a: TestA"}}), false},
		"another package is blind": {red(gate.Failures{Known: true, IDs: []string{"m/a: [build failed]"}, Blind: []string{"m/a"}}), false},
		"its package is blind":     {red(gate.Failures{Known: true, IDs: []string{"m/x: [build failed]"}, Blind: []string{"m/x"}}), true},
		"nothing can be compared":  {red(gate.Failures{}), true},
	} {
		require.Equal(t, c.want, shown.Recurs(c.now), name)
	}
	require.True(t, gate.CommandResult{Status: gate.StatusRed}.Recurs(red(gate.Failures{Known: true, IDs: []string{"m/a: TestA"}})), "the gate had no ids")
}
