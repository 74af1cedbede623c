package quota

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var closedList = []Outcome{Success, Error, Timeout, RateLimited, Overloaded, CreditExhausted, AuthFailed,
	ModelUnavailable, PacketTooLarge, QuotaUnclassified}

// requireSound checks what holds for every verdict.
func requireSound(tb testing.TB, l Launch, v Verdict) {
	tb.Helper()
	require.Contains(tb, closedList, v.Outcome)
	require.Equal(tb, l.HasResult, v.Outcome == Success)
	require.Equal(tb, v.Outcome.Hard(), v.Hard)
	require.NotEmpty(tb, v.Rule)
	require.LessOrEqual(tb, utf8.RuneCountInString(v.Evidence), maxEvidence)
	require.True(tb, utf8.ValidString(v.Evidence))
	if v.ResetAt == nil {
		require.Equal(tb, None, v.ResetPrecision)
		return
	}
	require.Contains(tb, []Outcome{RateLimited, Overloaded}, v.Outcome)
	require.Contains(tb, []Precision{Exact, Minute, Hour, Day}, v.ResetPrecision)
	require.Equal(tb, time.UTC, v.ResetAt.Location())
	again := Reopens(v, l.ObservedAt, time.Second, time.Minute, 0.5)
	require.False(tb, again.Before(l.ObservedAt))
	require.False(tb, again.After(l.ObservedAt.Add(maxAhead)))
}

func FuzzClassify(f *testing.F) {
	for _, x := range readLines[fixture](f, "limit-messages.jsonl") {
		l := x.launch(f)
		exit, status, header, val := int16(-1), int16(0), "", ""
		if l.ExitCode != nil {
			exit = int16(*l.ExitCode)
		}
		if l.HTTPStatus != nil {
			status = int16(*l.HTTPStatus)
		}
		for k, v := range l.Headers {
			header, val = k, v[0]
		}
		if len(l.Text) < 8<<10 {
			f.Add(l.Text, string(l.Channel), x.Provider, x.LocalZone, exit, status, header, val, l.ObservedAt.Unix())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, channel, provider, zone string, exit, status int16, header, val string, at int64) {
		l := Launch{Provider: provider, Channel: Channel(channel), Text: b, Zone: time.LoadLocation,
			Headers:    map[string][]string{header: {val}, "retry-after": {val}},
			ObservedAt: time.Unix(at%(1<<33), 0)}
		l.LocalZone, _ = time.LoadLocation(zone)
		if exit >= 0 {
			code := int(exit)
			l.ExitCode = &code
		}
		if status > 0 {
			code := int(status)
			l.HTTPStatus = &code
		}
		v := Classify(l)
		requireSound(t, l, v)
		require.Equal(t, v, Classify(l), "the same launch gives the same verdict")
	})
}
