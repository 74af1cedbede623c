package process_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

func TestMemoryStaysBoundedWhateverIsPrinted(t *testing.T) {
	t.Parallel()
	size := int64(1 << 30)
	if raceEnabled {
		size = 1 << 26 // the detector makes it many times slower, and adds to the memory
	}
	if soak := os.Getenv("MENDFLOW_SOAK_BYTES"); soak != "" {
		var err error
		size, err = strconv.ParseInt(soak, 10, 64)
		require.NoError(t, err)
	}
	argv := playing(t, "meter", strconv.FormatInt(size, 10))
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	require.NoError(t, err, string(out))
	var kept, dropped, resident int64
	_, err = fmt.Sscan(string(out), &kept, &dropped, &resident)
	require.NoError(t, err)
	require.LessOrEqual(t, kept, int64(process.DefaultTotalCap)+100)
	require.InDelta(t, size, kept+dropped, 2000)
	limit := int64(96 << 20)
	if raceEnabled {
		limit *= 4
	}
	require.Less(t, resident, limit)
}

func TestLongLineIsCutAndTheRestIsRead(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	spec := base(t)
	size := 64 << 20
	if raceEnabled {
		size = 4 << 20
	}
	spec.Argv = playing(t, "longline", strconv.Itoa(size))
	spec.Output = &out
	var lengths []int
	var cut []bool
	spec.OnLine = func(_ process.Stream, line []byte, truncated bool) process.Verdict {
		lengths, cut = append(lengths, len(line)), append(cut, truncated)
		return process.Continue
	}
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, []int{process.DefaultLineCap, 5}, lengths)
	require.Equal(t, []bool{true, false}, cut)
	require.Equal(t, 1, r.TruncatedLines)
	require.True(t, strings.HasSuffix(out.String(), fmt.Sprintf("0 [%d bytes cut]\nafter\n", size-1<<20)))
	require.True(t, strings.HasSuffix(r.StdoutTail, "after\n"))
}

func TestMiddleOfALongOutputIsLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	spec := base(t)
	spec.Shell = "seq -f %07g 1 20000"
	spec.TotalCap = 8000
	spec.Output = &out
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.EqualValues(t, 20000*8-8000, r.DroppedBytes)
	text := out.String()
	require.True(t, strings.HasPrefix(text, "0000001\n0000002\n"))
	require.Contains(t, text, "0000750\n\n[152000 bytes left out]\n0019751\n")
	require.True(t, strings.HasSuffix(text, "0020000\n"))
}

func TestTailsAreTheEndAsValidText(t *testing.T) {
	t.Parallel()
	spec := base(t)
	spec.Shell = `i=0; while [ $i -lt 3000 ]; do echo "zeile ü $i"; i=$((i+1)); done; printf 'bad \377 end' >&2`
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.StdoutTail), process.TailBytes)
	require.Greater(t, len(r.StdoutTail), process.TailBytes-8)
	require.True(t, strings.HasSuffix(r.StdoutTail, "zeile ü 2999\n"))
	require.Equal(t, "bad ? end", r.StderrTail)
	require.Equal(t, []string{"bad ? end"}, r.LastStderrLines)
}

func TestStreamsAreNotMixedWithinALine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	spec := base(t)
	spec.Shell = `for i in 1 2 3 4 5 6 7 8 9; do printf "out "; printf "err " >&2; echo $i; echo $i >&2; done`
	spec.Output = &out
	_, err := process.Run(context.Background(), spec)
	require.NoError(t, err)
	for line := range strings.Lines(out.String()) {
		require.Regexp(t, `^(out|err) \d\n$`, line)
	}
}
