package process

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// split writes text in pieces of the given size and tells what came out.
func split(text []byte, limit, size int) (lines []string) {
	l := lineSplitter{limit: limit, emit: func(line []byte, cut int64, ended bool) {
		lines = append(lines, fmt.Sprintf("%q %d %v", line, cut, ended))
	}}
	for len(text) > 0 {
		n := min(max(1, size), len(text))
		_, _ = l.Write(text[:n])
		text = text[n:]
	}
	l.close()
	return lines
}

// expected is the same by the plain way.
func expected(text []byte, limit int) (lines []string) {
	for part := range strings.Lines(string(text)) {
		line, ended := strings.CutSuffix(part, "\n")
		kept := min(len(line), limit)
		lines = append(lines, fmt.Sprintf("%q %d %v", line[:kept], len(line)-kept, ended))
	}
	return lines
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), uint8(2), uint8(1))
	f.Add([]byte("\n\n"), uint8(1), uint8(9))
	f.Add([]byte("0123456789\nx"), uint8(4), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, limit, size uint8) {
		n := max(1, int(limit))
		require.Equal(t, expected(text, n), split(text, n, int(size)))
	})
}

func TestCappedKeepsBothEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(4, 200).Draw(t, "limit")
		parts := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 90)).Draw(t, "parts")
		var out bytes.Buffer
		c := newCapped(&out, limit)
		for _, p := range parts {
			c.write(p)
		}
		c.close()
		whole := bytes.Join(parts, nil)
		if int64(len(whole)) <= limit {
			require.Equal(t, string(whole), out.String())
			return
		}
		end := limit / 4
		require.Equal(t, int64(len(whole))-limit, c.dropped)
		require.Equal(t, string(whole[:limit-end])+fmt.Sprintf("\n[%d bytes left out]\n", c.dropped)+string(whole[int64(len(whole))-end:]), out.String())
	})
}

func TestTailIsTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kept := tail{limit: rapid.IntRange(4, 40).Draw(t, "limit")}
		text := rapid.StringN(0, 60, -1).Draw(t, "text")
		for i := range len(text) {
			kept.add([]byte{text[i]})
		}
		got := kept.String()
		require.True(t, utf8.ValidString(got))
		require.True(t, strings.HasSuffix(text, got))
		require.GreaterOrEqual(t, len(got), min(len(text), kept.limit-utf8.UTFMax+1))
	})
}
