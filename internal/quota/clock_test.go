package quota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// zoneNames are zones with whole, half and quarter hours, with changes of 30
// and 60 minutes, at midnight, in both halves of the year, and with a lost day.
var zoneNames = []string{"UTC", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Santiago", "America/Havana",
	"Europe/Berlin", "Europe/London", "Europe/Dublin", "Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Kolkata",
	"Asia/Kathmandu", "Asia/Tehran", "Asia/Tokyo", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Chatham",
	"Pacific/Auckland", "Atlantic/Azores", "US/Eastern", "Asia/Calcutta"}

func drawZone(t *rapid.T) *time.Location {
	loc, err := time.LoadLocation(rapid.SampledFrom(zoneNames).Draw(t, "zone"))
	require.NoError(t, err)
	return loc
}

// drawInstant gives a whole minute between 2008 and 2035.
func drawInstant(t *rapid.T, label string) time.Time {
	from := time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 60
	to := time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 60
	return time.Unix(60*rapid.Int64Range(from, to).Draw(t, label), 0).UTC()
}

// nearChange moves half of the drawn instants to the change of offset before
// them, where the rules matter.
func nearChange(t *rapid.T, at time.Time, loc *time.Location) time.Time {
	start, _ := at.In(loc).ZoneBounds()
	if start.IsZero() || rapid.Bool().Draw(t, "anywhere") {
		return at
	}
	return start.Add(time.Duration(rapid.IntRange(-180, 180).Draw(t, "minutes")) * time.Minute).UTC()
}

// instants gives all minutes within two days around noon of the day that show
// the given local time, by trying each.
func instants(year int, month time.Month, day, hour, minute int, loc *time.Location) (out []time.Time) {
	noon := time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
	for at := noon.Add(-40 * time.Hour); at.Before(noon.Add(40 * time.Hour)); at = at.Add(time.Minute) {
		l := at.In(loc)
		y, m, d := l.Date()
		if y == year && m == month && d == day && l.Hour() == hour && l.Minute() == minute {
			out = append(out, at)
		}
	}
	return out
}

func TestLocalTimeIsTheLaterTwinOrTheEndOfTheGap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := drawZone(t)
		l := nearChange(t, drawInstant(t, "at"), loc).In(loc)
		shown := l.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "shift")) * time.Minute)
		hour, minute := shown.Hour(), rapid.IntRange(0, 59).Draw(t, "minute")
		y, m, d := l.Date()
		got := wall(y, m, d, hour, minute, 0, loc)
		all := instants(y, m, d, hour, minute, loc)
		if len(all) > 0 {
			require.True(t, got.Equal(all[len(all)-1]), "%v of %v", got, all)
			return
		}
		// Skipped: the first instant after the gap, so the offset changes there
		// and the local time before it had not yet shown the stated one.
		start, _ := got.ZoneBounds()
		require.True(t, got.Equal(start), "%v is no change of offset", got)
		before := got.Add(-time.Second).In(loc)
		naive := time.Date(y, m, d, hour, minute, 0, 0, time.UTC)
		require.Less(t, asUTC(before), naive.Unix())
		require.Greater(t, asUTC(got.In(loc)), naive.Unix())
	})
}

// asUTC reads a local time as if it were UTC, to compare what clocks show.
func asUTC(l time.Time) int64 {
	_, offset := l.Zone()
	return l.Unix() + int64(offset)
}

func TestClockTimeIsItsNextOccurrence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := drawZone(t)
		observed := nearChange(t, drawInstant(t, "observed"), loc).Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "second")) * time.Second)
		k := clock{hour: rapid.IntRange(0, 23).Draw(t, "hour"), minute: rapid.IntRange(0, 59).Draw(t, "minute")}
		got := calendar{observed: observed, local: loc}.nextClock(k, loc)
		require.True(t, got.After(observed), "%v is not after %v", got, observed)
		require.Less(t, got.Sub(observed), 49*time.Hour)
		for at := observed.Truncate(time.Minute).Add(time.Minute); at.Before(got); at = at.Add(time.Minute) {
			l := at.In(loc)
			if l.Hour() == k.hour && l.Minute() == k.minute {
				y, m, d := l.Date()
				twins := instants(y, m, d, k.hour, k.minute, loc)
				require.Greater(t, len(twins), 1, "%v shows the time before %v", l, got)
			}
		}
	})
}

// clockForms are ways to write a time of day, dateForms ways to write a date.
// "pm." stands for "p.m.", which package time does not know.
var (
	clockForms = []string{"3:04pm", "3:04 PM", "3:04 pm.", "15:04", "03:04PM"}
	dateForms  = []string{"Jan 2, 2006, ", "Jan 2, 2006 at ", "January 2, 2006 at ", "Jan 2nd, 2006 ", "2 Jan 2006 ", "2 January 2006 at ",
		"2006-01-02 ", "2006/01/02 ", "1/2/2006 ", "Monday, Jan 2, 2006 at ", "Mon, 02 Jan 2006 ", "2006-01-02T", "2006年1月2日 "}
	bannerForms = []string{"You've hit your session limit · resets %s", "Usage limit reached. Your limit will reset at %s.",
		"5-hour limit reached ∙ resets %s", "You've hit your usage limit. Try again at %s.", "Error: quota exceeded, retry after %s",
		"Rate limit exceeded. Access resets at %s\n/stats for details", "You have reached your limit. It will be available again at %s"}
	zoneForms = []string{" (%s)", " %s"}
)

func dotted(s string) string {
	return strings.NewReplacer("am.", "a.m.", "pm.", "p.m.").Replace(s)
}

func banner(t *rapid.T, stated string) Launch {
	one := 1
	form := rapid.SampledFrom(bannerForms).Draw(t, "banner")
	return Launch{Provider: "claude-code", Channel: Stderr, ExitCode: &one, Zone: time.LoadLocation,
		Text: fmt.Appendf(nil, form, stated)}
}

func TestStatedClockIsReadInItsZone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc, local := drawZone(t), drawZone(t)
		at := drawInstant(t, "reset").In(loc)
		observed := at.Add(-time.Duration(rapid.IntRange(1, 20*60).Draw(t, "ago")) * time.Minute)
		y, m, d := at.Date()
		if !wall(y, m, d, at.Hour(), at.Minute(), 0, loc).Equal(at) {
			t.Skip("the earlier of two twins cannot be stated")
		}
		if before := wall(y, m, d-1, at.Hour(), at.Minute(), 0, loc); before.After(observed) {
			t.Skip("a day before has the same clock time")
		}
		stated := dotted(at.Format(rapid.SampledFrom(clockForms).Draw(t, "clock")))
		l := banner(t, stated+fmt.Sprintf(rapid.SampledFrom(zoneForms).Draw(t, "form"), loc.String()))
		l.ObservedAt, l.LocalZone = observed, local
		requireReset(t, l, at, Minute)
		l = banner(t, stated)
		l.ObservedAt, l.LocalZone = observed, loc
		requireReset(t, l, at, Minute)
	})
}

func TestStatedDateIsHonoured(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := drawZone(t)
		at := drawInstant(t, "reset").In(loc)
		y, m, d := at.Date()
		if !wall(y, m, d, at.Hour(), at.Minute(), 0, loc).Equal(at) {
			t.Skip("the earlier of two twins cannot be stated")
		}
		form := rapid.SampledFrom(dateForms).Draw(t, "date") + rapid.SampledFrom(clockForms).Draw(t, "clock")
		l := banner(t, dotted(at.Format(form))+" ("+loc.String()+")")
		l.LocalZone = time.UTC
		l.ObservedAt = at.Add(-time.Duration(rapid.IntRange(-100, 300*24).Draw(t, "ago")) * time.Hour)
		requireReset(t, l, at, Minute)
	})
}

func TestDateWithoutYearIsTheNextOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := drawZone(t)
		at := drawInstant(t, "reset").In(loc)
		y, m, d := at.Date()
		if m == time.February && d == 29 || !wall(y, m, d, at.Hour(), at.Minute(), 0, loc).Equal(at) {
			t.Skip()
		}
		l := banner(t, at.Format("Jan 2, 3:04pm")+" ("+loc.String()+")")
		l.ObservedAt = at.Add(-time.Duration(rapid.IntRange(1, 360*24).Draw(t, "ago")) * time.Hour)
		requireReset(t, l, at, Minute)
	})
}

func TestStatedWaitCountsFromTheObservation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, h := rapid.IntRange(0, 6).Draw(t, "days"), rapid.IntRange(0, 23).Draw(t, "hours")
		m, s := rapid.IntRange(0, 59).Draw(t, "minutes"), rapid.IntRange(1, 59).Draw(t, "seconds")
		wait := time.Duration(d)*24*time.Hour + time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
		stated := rapid.SampledFrom([]string{
			wait.String(),
			fmt.Sprintf("%d days %d hours %d minutes %d seconds", d, h, m, s),
			fmt.Sprintf("%d days, %d hours, %d minutes and %d seconds", d, h, m, s),
			fmt.Sprintf("%dd %dh %dm %ds", d, h, m, s),
			fmt.Sprintf("%dd%dh%dm%ds", d, h, m, s),
			fmt.Sprintf("%d secs", int(wait.Seconds())),
			fmt.Sprintf("%d seconds", int(wait.Seconds())),
			fmt.Sprintf("%ds", int(wait.Seconds())),
			fmt.Sprintf("%dms", wait.Milliseconds()),
		}).Draw(t, "form")
		lead := rapid.SampledFrom([]string{"Try again in %s.", "Please try again in %s", "Resets in %s", "It resets in about %s.", "Please wait %s.", "Retry after %s", "retrying in %s"}).Draw(t, "lead")
		l := banner(t, "")
		l.Text = []byte("Error: rate limit exceeded. " + fmt.Sprintf(lead, stated))
		l.ObservedAt = drawInstant(t, "observed")
		requireReset(t, l, l.ObservedAt.Add(wait), Exact)
	})
}

func TestOffsetsAndEpochs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := drawInstant(t, "reset")
		hours := rapid.IntRange(-12, 12).Draw(t, "offset")
		loc := time.FixedZone("", hours*3600)
		local := at.In(loc)
		stated := rapid.SampledFrom([]string{
			fmt.Sprintf("%s UTC%+d", local.Format("2006-01-02 15:04"), hours),
			fmt.Sprintf("%s (GMT%+d)", local.Format("2006-01-02 15:04"), hours),
			fmt.Sprintf("%s GMT%+03d:00", local.Format("Jan 2, 2006 3:04 PM"), hours),
			fmt.Sprintf("%s (Etc/GMT%+d)", local.Format("2006-01-02 15:04"), -hours),
			local.Format("2006-01-02 15:04 -0700"),
			local.Format("2006-01-02 15:04 -0700 ") + "CST",
			local.Format("2006-01-02T15:04-07:00"),
		}).Draw(t, "form")
		l := banner(t, stated)
		l.ObservedAt, l.LocalZone = at.Add(-time.Hour), drawZone(t)
		requireReset(t, l, at, Minute)
		for _, epoch := range []string{fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli())} {
			l.Text = []byte("Claude AI usage limit reached|" + epoch)
			requireReset(t, l, at, Exact)
		}
	})
}

func requireReset(t *rapid.T, l Launch, want time.Time, unit Precision) {
	got := Classify(l)
	require.Equal(t, RateLimited, got.Outcome, "%s", l.Text)
	require.NotNil(t, got.ResetAt, "%s", l.Text)
	require.True(t, got.ResetAt.Equal(want), "%q seen %v: got %v, want %v", l.Text, l.ObservedAt, got.ResetAt, want.UTC())
	require.Equal(t, unit, got.ResetPrecision, "%s", l.Text)
	require.NotContains(t, strings.ToLower(got.Rule), "pattern")
}
