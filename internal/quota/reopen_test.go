package quota

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestReopens(t *testing.T) {
	t.Parallel()
	observed := time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := observed.Add(d); return &x }
	for name, c := range map[string]struct {
		reset    *time.Time
		unit     Precision
		fraction float64
		want     time.Duration
	}{
		"no reset is probed now":        {nil, None, 1, 0},
		"a past reset is probed now":    {at(-time.Hour), Exact, 1, 0},
		"a reset that is now":           {at(0), Minute, 1, 0},
		"exact":                         {at(time.Hour), Exact, 0, time.Hour + 5*time.Second},
		"exact with half the jitter":    {at(time.Hour), Exact, 0.5, time.Hour + 20*time.Second},
		"to the minute":                 {at(time.Hour), Minute, 1, time.Hour + 95*time.Second},
		"to the hour":                   {at(time.Hour), Hour, 0, time.Hour + 65*time.Second},
		"to the day":                    {at(24 * time.Hour), Day, 0, 24*time.Hour + 65*time.Second},
		"never more than 35 days":       {at(400 * 24 * time.Hour), Day, 1, 35 * 24 * time.Hour},
		"a fraction above one is one":   {at(time.Hour), Exact, 7, time.Hour + 35*time.Second},
		"a fraction below zero is zero": {at(time.Hour), Exact, -1, time.Hour + 5*time.Second},
		"a fraction that is no number":  {at(time.Hour), Exact, math.NaN(), time.Hour + 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Verdict{Outcome: RateLimited, ResetAt: c.reset, ResetPrecision: c.unit}
			require.Equal(t, observed.Add(c.want), Reopens(v, observed, 5*time.Second, 30*time.Second, c.fraction))
		})
	}
}

func TestReopensNeverBeforeTheReset(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		observed := drawInstant(t, "observed")
		reset := observed.Add(time.Duration(rapid.Int64Range(-1e6, 3e6).Draw(t, "seconds")) * time.Second)
		v := Verdict{ResetAt: &reset, ResetPrecision: rapid.SampledFrom([]Precision{Exact, Minute, Hour, Day}).Draw(t, "unit")}
		got := Reopens(v, observed, time.Duration(rapid.IntRange(-5, 300).Draw(t, "margin"))*time.Second,
			time.Duration(rapid.IntRange(-5, 300).Draw(t, "jitter"))*time.Second, rapid.Float64Range(0, 1).Draw(t, "fraction"))
		require.False(t, got.Before(observed))
		require.False(t, got.Before(reset) && got.Before(observed.Add(maxAhead)))
		require.False(t, got.After(observed.Add(maxAhead)))
	})
}
