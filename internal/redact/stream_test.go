package redact_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/redact"
)

// inChunks masks text written in pieces of the given sizes, used in turn.
func inChunks(m *redact.Masker, text string, sizes []int) string {
	var out bytes.Buffer
	w := m.Writer(&out)
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), max(1, sizes[i%len(sizes)]))
		_, _ = io.WriteString(w, text[:n])
		text = text[n:]
	}
	_ = w.Close()
	return out.String()
}

// pieces are what random streams are made of: whole, halved and decorated
// secrets between ordinary text.
func pieces() []string {
	list := []string{
		"a", " ", "\n", "\r\n", "\\", "\x1b", "\x1b[31m", "\\u001b[0m", "[", "-", "sk-", "ghp_", "://", "u:", "@", "eyJ", ".",
		"0123456789", "abcdefghijklmnopqrst", "Bearer ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "ä",
		secret[:3], secret[3:], secret[:11], secret[11:],
	}
	for _, text := range printed(secret) {
		list = append(list, text)
	}
	return list
}

func TestChunkingDoesNotChangeTheResult(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{secret, "dor&3/horse", "0123456789abcd"})
	parts := slices.Sorted(slices.Values(pieces()))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 60).Draw(t, "parts"), "")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 10).Draw(t, "sizes")
		whole := m.String(text)
		require.Equal(t, whole, inChunks(m, text, sizes))
		require.NotContains(t, whole, secret)
		require.Equal(t, strings.Count(text, "\n"), strings.Count(whole, "\n"), "lines keep their number")
	})
}

func TestTextBetweenSecretsIsKept(t *testing.T) {
	t.Parallel()
	m := redact.NewMasker([]string{secret})
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[bcf=<> ]{0,30}`)).Draw(t, "words")
		require.Equal(t, strings.Join(words, "<"+redact.Mark+">"), m.String(strings.Join(words, "<"+secret+">")))
	})
}

// TestTimeAndMemoryAreLinear does not end within its life if time is quadratic.
func TestTimeAndMemoryAreLinear(t *testing.T) {
	t.Parallel()
	periodic := strings.Repeat("abcabcabd", 40)
	m := redact.NewMasker([]string{secret, periodic})
	for _, unit := range []string{
		"\x1b[31m", "\\", "\\u001b[", "a\x1b[m", "\n", "\r\n  ", "sk-", "://a:b", "eyJ", "-----BEGIN RSA PRIVATE KEY-----", "-",
		secret[:6] + "\n", secret[:6] + "\x1b[1m", "abcabc", "abcabc\n", "a\x1b]", "\x1b", "sk-1234567890123456789\x1b[0m", "xoxb-\\u001b[0m",
	} {
		var out counting
		w := m.Writer(&out)
		_, err := io.WriteString(w, secret[:9]+periodic[:100]+"ghp_"+strings.Repeat(unit, 256<<10/len(unit)))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.LessOrEqual(t, w.Held(), 160<<10, "%q", unit)
	}
}

type counting int

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}

func FuzzMasker(f *testing.F) {
	for _, text := range pieces() {
		f.Add(text, uint8(3))
	}
	m := redact.NewMasker([]string{secret, "0123456789abcd"})
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		whole := m.String(text)
		require.Equal(t, whole, inChunks(m, text, []int{int(size), 1, 7}))
		require.NotContains(t, whole, secret)
		require.Equal(t, strings.Count(text, "\n"), strings.Count(whole, "\n"))
	})
}

func benchmarkText() []byte {
	line := `{"type":"item.completed","item":{"id":"item_12","type":"command_execution","command":"go test ./...","aggregated_output":"ok  \texample.com/x\t0.012s\nnothing else to see here, move along\n","exit_code":0}}` + "\n"
	return []byte(strings.Repeat(line, 1<<20/len(line)))
}

// BenchmarkMasker is to be read as a ratio to BenchmarkCopy.
func BenchmarkMasker(b *testing.B) {
	text := benchmarkText()
	m := redact.NewMasker([]string{secret, "another-secret-value-1", "sk-live-0123456789"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w := m.Writer(io.Discard)
		for chunk := range slices.Chunk(text, 32<<10) {
			_, _ = w.Write(chunk)
		}
		_ = w.Close()
	}
}

func BenchmarkCopy(b *testing.B) {
	text := benchmarkText()
	var out bytes.Buffer
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		out.Reset()
		for chunk := range slices.Chunk(text, 32<<10) {
			_, _ = out.Write(chunk)
		}
	}
}
