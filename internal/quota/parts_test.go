package quota

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestReadsDamagedJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		whole bool
		path  []string
		want  string
	}{
		{`{"a":{"b":"c"}}`, true, []string{"a", "b"}, "c"},
		{`{"a":{"b":"c`, false, []string{"a", "b"}, "c"},
		{`{"a":1.5e3,"b":"x\u00e9\ud83d\ude00\"\\"}`, true, []string{"b"}, "xé😀\"\\"},
		{`{"a":1.5e3}`, true, []string{"a"}, "1.5e3"},
		{`{"a":"x\ud800y"}`, true, []string{"a"}, "x\ufffdy"},
		{`{"a":"x\uZZ"}`, true, []string{"a"}, "x\ufffdZZ"},
		{"{\n \"a\" :\t[1,2] ,\n\"b\":\"c\"\n}", true, []string{"b"}, "c"},
		{`{"a":"b" "c":1}`, true, []string{"a"}, "b"},
		{`{"a" 1}`, false, []string{"a"}, ""},
		{`{a:1}`, false, nil, ""},
		{`{"b":"c","a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"d":"e"}`, true, []string{"d"}, "e"},
	} {
		v, n, whole := parseJSON([]byte(c.in), true)
		require.Equal(t, c.whole, whole, c.in)
		require.LessOrEqual(t, n, len(c.in))
		for _, key := range c.path {
			v = v.get(key)
		}
		require.Equal(t, c.want, v.str(), c.in)
	}
	_, _, whole := parseJSON([]byte("{\"a\":\"b\nc\"}"), true)
	require.False(t, whole, "a raw line break ends a line of a stream")
	_, _, whole = parseJSON([]byte("{\"a\":\"b\nc\"}"), false)
	require.True(t, whole, "wrapped text may have one")
}

func TestTokensAreTheWordsOfCodesAndProse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"usage_limit_reached":             "usage limit reached",
		"UsageLimitReached":               "usage limit reached",
		"USAGE-LIMIT-REACHED":             "usage limit reached",
		"Weeklylimitreached":              "weekly limit reached",
		"You'vehityoursessionlimit":       "you've hit your session limit",
		"ResetsFeb12at":                   "resets feb 12 at",
		"the org's limit":                 "the org limit",
		"Límite de uso":                   "limite de uso",
		"使用上限":                            "使 用 上 限",
		"notwithstanding internationally": "notwithstanding internationally",
	} {
		var words []string
		for _, tok := range tokenize(clean(in)) {
			if tok.kind != punct {
				words = append(words, tok.text)
			}
		}
		require.Equal(t, want, strings.Join(words, " "), in)
	}
}

func TestCleanKeepsWhatATerminalShows(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m":                       "red",
		"a\x1b[5Cb":                                "a b",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx":                                  "x",
		"a\r\nb\rc":                                "a\nb\nc",
		"│ boxed │":                                "  boxed  ",
		"It’s “here” – now…":                       `It's "here" - now...`,
		"no\u00a0break\u200b":                      "no break",
		"bad\xff\xfebytes":                         "bad  bytes",
		"\x1b[":                                    "",
		"\x1b":                                     "",
		"（美国）：，":                                   "(美国):, ",
		"１２":                                       "12",
	} {
		require.Equal(t, want, clean(in), "%q", in)
	}
}

func TestEvidenceIsScrubbedAndShort(t *testing.T) {
	t.Parallel()
	one := 1
	secret := "sk-ant-REDACTED"
	l := Launch{Channel: Stderr, ExitCode: &one, Text: []byte("Error: 401 Unauthorized: Incorrect API key provided: " + secret +
		", Authorization: Bearer abcdef0123456789, api_key=hunter2hunter2, req 0123456789abcdef0123456789abcdef01, id 00000000-0000-4000-8000-000000000001 " +
		strings.Repeat("ü", 5000) + " rate limit reached")}
	v := Classify(l)
	require.NotEmpty(t, v.Evidence)
	require.LessOrEqual(t, utf8.RuneCountInString(v.Evidence), maxEvidence)
	for _, text := range []string{v.Evidence, excerpt(l.Text[:250])} {
		for _, s := range []string{secret, "abcdef0123456789", "hunter2", "0123456789abcdef0123456789abcdef01"} {
			require.NotContains(t, text, s)
		}
	}
	require.Contains(t, excerpt(l.Text[:250]), "Incorrect API key provided: ***")
	require.Contains(t, excerpt(l.Text[:250]), "00000000-0000-4000-8000-000000000001", "an id is no secret")
}

func TestNamesOfFieldsAreReadByTheirWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]field{
		"Retry-After":                         {role: resetIn},
		"retry-after-ms":                      {role: resetIn, unit: time.Millisecond},
		"retryDelay":                          {role: resetIn},
		"resets_in_seconds":                   {role: resetIn, unit: time.Second},
		"resetsAt":                            {role: resetAt},
		"resets_at":                           {role: resetAt},
		"quotaResetTimeStamp":                 {role: resetAt, window: "quota"},
		"X-RateLimit-Reset":                   {role: resetAny, window: "xratelimit"},
		"x-ratelimit-reset-tokens":            {role: resetAny, window: "xratelimittokens"},
		"x-ratelimit-remaining-tokens":        {role: remaining, window: "xratelimittokens"},
		"X-Codex-Primary-Used-Percent":        {role: usedPercent, window: "xcodexprimary"},
		"X-Codex-Primary-Reset-After-Seconds": {role: resetIn, window: "xcodexprimary", unit: time.Second},
		"anthropic-ratelimit-unified-status":  {role: windowVerdict, window: "anthropicratelimitunified"},
		"max_retries":                         {window: "maxretries"},
		"x-should-retry":                      {window: "xshould"},
	} {
		got := fieldOf(name)
		got.words = nil
		require.Equal(t, want, got, name)
	}
}

func TestZonesWithOldNames(t *testing.T) {
	t.Parallel()
	// A lookup without the links of the file "backward".
	bare := func(name string) (*time.Location, error) {
		if zoneAliases[strings.ToLower(name)] != "" {
			return nil, &time.ParseError{Message: "unknown zone"}
		}
		return time.LoadLocation(name)
	}
	noon := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	for stated, want := range map[string]string{
		"(US/Eastern)": "America/New_York", "(Asia/Calcutta)": "Asia/Kolkata", "Europe/Kiev": "Europe/Kyiv", "(asia/tokyo)": "Asia/Tokyo",
		"(Japan)": "Asia/Tokyo", "(america/port_of_spain)": "America/Port_of_Spain", "[America/Argentina/Buenos_Aires]": "America/Argentina/Buenos_Aires",
	} {
		src := "resets 3pm " + stated
		p := parser{calendar: calendar{observed: noon, local: time.UTC, lookup: bare}, src: src, toks: tokenize(src)}
		loc, err := time.LoadLocation(want)
		require.NoError(t, err)
		got := p.resets()
		require.Len(t, got, 1, stated)
		h, m, _ := got[0].stamp.at.In(loc).Clock()
		require.Equal(t, []int{15, 0}, []int{h, m}, stated)
	}
}
