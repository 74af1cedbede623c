package quota

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPatternsAreTriedBeforeTheRules(t *testing.T) {
	t.Parallel()
	observed := time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC)
	one := 1
	for name, c := range map[string]struct {
		pattern Pattern
		text    string
		outcome Outcome
		reset   time.Duration // 0: none
	}{
		"wait":             {Pattern{Match: `gate closed, opens in (?P<in>.*)`, Outcome: RateLimited}, "gate closed, opens in 1h5m", RateLimited, 65 * time.Minute},
		"bare seconds":     {Pattern{Match: `cool off (?P<reset>\d+)`, Outcome: Overloaded}, "cool off 90", Overloaded, 90 * time.Second},
		"instant":          {Pattern{Match: `opens (?P<at>\S+)$`, Outcome: RateLimited}, "opens 2026-05-20T12:00:00Z", RateLimited, 2 * time.Hour},
		"clock":            {Pattern{Match: `opens (?P<at>.*)`, Outcome: RateLimited}, "opens 3pm (UTC)", RateLimited, 5 * time.Hour},
		"epoch":            {Pattern{Match: `until=(?P<epoch>\d+)`, Outcome: RateLimited}, "until=1779274800", RateLimited, time.Hour},
		"fixed wait":       {Pattern{Match: `slow down`, Outcome: RateLimited, Reset: "90s"}, "please slow down", RateLimited, 90 * time.Second},
		"named group":      {Pattern{Match: `(?P<reset>1) then (?P<when>\d+s)`, Outcome: RateLimited, Reset: "when"}, "1 then 30s", RateLimited, 30 * time.Second},
		"unreadable group": {Pattern{Match: `opens (?P<at>.*)`, Outcome: RateLimited}, "opens when it opens", RateLimited, 0},
		"group not taken":  {Pattern{Match: `closed( for (?P<in>\d+s))?`, Outcome: RateLimited}, "closed", RateLimited, 0},
		"hard":             {Pattern{Match: `no tickets left`, Outcome: CreditExhausted}, "no tickets left, resets in 5m", CreditExhausted, 0},
		"beats a rule":     {Pattern{Match: `(?i)usage limit`, Outcome: Overloaded}, "Usage limit reached", Overloaded, 0},
		"no match":         {Pattern{Match: `something else`, Outcome: Overloaded}, "Usage limit reached", RateLimited, 0},
		"coloured text":    {Pattern{Match: `gate closed`, Outcome: Overloaded}, "\x1b[31mgate\x1b[0m closed", Overloaded, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ps, err := CompilePatterns([]Pattern{c.pattern})
			require.NoError(t, err)
			l := Launch{Channel: Stderr, ExitCode: &one, Text: []byte(c.text), ObservedAt: observed, Zone: time.LoadLocation, Patterns: ps}
			v := Classify(l)
			require.Equal(t, c.outcome, v.Outcome)
			if c.reset == 0 {
				require.Nil(t, v.ResetAt)
			} else {
				require.NotNil(t, v.ResetAt)
				require.Equal(t, observed.Add(c.reset), *v.ResetAt)
			}
			l.HasResult = true
			require.Equal(t, Success, Classify(l).Outcome, "a valid result beats every pattern")
		})
	}
}

func TestPatternsSeeOnlyTheProviderInAStream(t *testing.T) {
	t.Parallel()
	ps, err := CompilePatterns([]Pattern{{Match: `gate closed`, Outcome: Overloaded}})
	require.NoError(t, err)
	one := 1
	l := Launch{Channel: StreamJSON, ExitCode: &one, Patterns: ps,
		Text: []byte(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"gate closed"}]}}`)}
	require.Equal(t, Error, Classify(l).Outcome)
	l.Text = append(l.Text, "\n"+`{"type":"result","is_error":true,"result":"the gate closed"}`...)
	require.Equal(t, Overloaded, Classify(l).Outcome)
}

func TestCompilePatternsTellsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := CompilePatterns([]Pattern{
		{Match: `(`, Outcome: RateLimited},
		{Match: `fine`, Outcome: RateLimited},
		{Match: `x`, Outcome: "tired"},
		{Match: ``, Outcome: Overloaded},
		{Match: `a*`, Outcome: Overloaded},
		{Match: `x`, Outcome: RateLimited, Reset: "when"},
		{Match: `x (?P<when>.)`, Outcome: AuthFailed, Reset: "when"},
		{Match: `x`, Outcome: Success},
	})
	require.Error(t, err)
	for _, want := range []string{"limit_patterns[0]", "limit_patterns[2]", `"tired"`, "limit_patterns[3]", "limit_patterns[4]",
		"limit_patterns[5]", `no group "when"`, "limit_patterns[6]", "limit_patterns[7]"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "limit_patterns[1]")
	require.Len(t, strings.Split(err.Error(), "\n"), 7)
}
