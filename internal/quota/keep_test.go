package quota

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestFixturesAreTheSharedOnes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"limit-messages.jsonl", "agent-runs.jsonl"} {
		copied, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err, "the copy must exist")
		shared, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", name))
		if os.IsNotExist(err) {
			continue // outside of the team's folders
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(shared, copied), "%s differs from the shared one", name)
	}
}

// Lines without a trigger are never read: every phrase that decides needs a
// place where each of its words is one.
func TestEveryPhraseHasATrigger(t *testing.T) {
	t.Parallel()
	words := make(map[int32]string)
	for w, id := range refusals.index().words {
		words[id] = w
	}
	for _, p := range refusals.index().phrases {
		if p.sense == ownLimit || p.sense == warning {
			continue
		}
		var said []string
		found := false
		for _, s := range p.steps {
			all := true
			for _, id := range s.want {
				said = append(said, words[id])
				all = all && triggers([]byte(" "+words[id]+" x"))
			}
			found = found || all
		}
		assert.True(t, found, "no trigger in %q", said)
	}
}

func TestBannerIsFoundAnywhereInALongText(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC)
	one := 1
	const banner = "You've hit your session limit · resets 3pm (UTC)"
	for _, shape := range []struct{ name, before, after string }{
		{"between quiet lines", strings.Repeat("compiling package\n", 20000), strings.Repeat("\nlinking object", 20000)},
		{"between lines about limits", strings.Repeat(prosePiece, 3000), "\n" + strings.Repeat(prosePiece, 3000)},
		{"behind a long line", strings.Repeat("lorem ipsum ", 60000) + "\n", ""},
		{"inside a long line", strings.Repeat("lorem ipsum ", 60000), strings.Repeat(" dolor sit", 60000)},
		{"after a diff", "diff --git a/x b/x\n@@ -1 +1 @@\n-usage limit reached\n+usage limit reached\n context\n\n", "\n"},
		{"after a code block", "```\nusage limit reached|1779274800\n```\n", ""},
	} {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			l := Launch{Channel: Stderr, ExitCode: &one, ObservedAt: noon, Zone: time.LoadLocation, Text: []byte(shape.before + banner + shape.after)}
			v := Classify(l)
			require.Equal(t, RateLimited, v.Outcome)
			require.NotNil(t, v.ResetAt)
			require.Equal(t, noon.Add(5*time.Hour), *v.ResetAt)
			requireSound(t, l, v)
			l.Text = []byte(shape.before + shape.after)
			require.Equal(t, Error, Classify(l).Outcome, "without the banner")
		})
	}
}

func TestBannerIsFoundAcrossEveryChunk(t *testing.T) {
	t.Parallel()
	one := 1
	for shift := range 64 {
		lines := strings.Repeat(prosePiece, chunkSize/len(prosePiece)-2) + strings.Repeat("the limit holds\n", shift)
		l := Launch{Channel: Stderr, ExitCode: &one, ObservedAt: time.Unix(1779271200, 0), Zone: time.LoadLocation,
			Text: []byte(lines + "Weekly limit reached\n· resets in 20m\n" + prosePiece)}
		v := Classify(l)
		require.Equal(t, RateLimited, v.Outcome)
		require.NotNil(t, v.ResetAt, "shift %d", shift)
	}
}

// cpu gives the processor time of the calling thread's process so far.
func cpu(tb testing.TB) time.Duration {
	var usage unix.Rusage
	require.NoError(tb, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Not parallel: it compares processor times of the whole process.
func TestCostIsProportionalToTheText(t *testing.T) {
	const small, factor = 128 << 10, 8
	for name, text := range transcripts {
		t.Run(name, func(t *testing.T) {
			spent := func(size int) time.Duration {
				l := asFailure(text(size))
				best := time.Hour
				for range 3 {
					start := cpu(t)
					requireSound(t, l, Classify(l))
					best = min(best, cpu(t)-start)
				}
				return best
			}
			base := max(spent(small), time.Millisecond)
			require.Less(t, spent(small*factor), 4*factor*base, fmt.Sprintf("%d times the text", factor))
		})
	}
}
