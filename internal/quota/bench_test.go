package quota

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// prosePiece is what models write about limits: the worst kind of text, since
// nearly every sentence has words of the vocabulary.
const prosePiece = "The client retries when the server answers 429 Too Many Requests and waits until the limit resets. " +
	"I changed the handler so that a request that exceeds the context window is refused, and added a test for the quota. " +
	"Nothing else in the package depends on the order of these calls, see client.go for the details of the model.\n"

// transcripts are texts of n bytes in the shapes that workers leave behind.
var transcripts = map[string]func(n int) Launch{
	"events": func(n int) Launch {
		var b bytes.Buffer
		for b.Len() < n {
			fmt.Fprintf(&b, `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%q}]},"session_id":"x"}`+"\n",
				bytes.Repeat([]byte(prosePiece), 6))
		}
		return Launch{Channel: StreamJSON, Text: b.Bytes()}
	},
	"one event": func(n int) Launch {
		return Launch{Channel: StreamJSON, Text: fmt.Appendf(nil, `{"type":"user","message":{"content":[{"type":"tool_result","content":%q}]}}`,
			bytes.Repeat([]byte(prosePiece), n/len(prosePiece)))}
	},
	"quiet lines": func(n int) Launch {
		return Launch{Channel: Stderr, Text: bytes.Repeat([]byte("  compiling package foo/bar (cached) 0.123s\n"), n/44)}
	},
	"lines": func(n int) Launch {
		return Launch{Channel: Stderr, Text: bytes.Repeat([]byte(prosePiece), n/len(prosePiece))}
	},
	"one line": func(n int) Launch {
		return Launch{Channel: Stderr, Text: bytes.Repeat([]byte(prosePiece[:len(prosePiece)-1]+" "), n/len(prosePiece))}
	},
	"nested": func(n int) Launch {
		return Launch{Channel: HTTP, Text: bytes.Repeat([]byte(`{"error":[`), n/10)}
	},
	"open objects": func(n int) Launch {
		return Launch{Channel: StreamJSON, Text: bytes.Repeat([]byte("{\"a\":\n"), n/6)}
	},
	"braces": func(n int) Launch {
		return Launch{Channel: Stderr, Text: bytes.Repeat([]byte("error {\"error\": {"), n/17)}
	},
}

func asFailure(l Launch) Launch {
	one := 1
	l.ExitCode, l.ObservedAt = &one, time.Date(2026, 5, 20, 10, 0, 0, 0, time.UTC)
	return l
}

// plainScan is the plain scan that the benchmarks compare with: it looks at every
// byte once.
func plainScan(b []byte) (n int) {
	for _, c := range b {
		if c == '"' || c == '\n' || c|0x20 == 'l' {
			n++
		}
	}
	return n
}

// BenchmarkClassify reports the processor time as a multiple of a plain scan of
// the same bytes; the multiple must not grow with the text.
func BenchmarkClassify(b *testing.B) {
	for name, make := range transcripts {
		for _, size := range []int{1 << 20, 8 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", strings.ReplaceAll(name, " ", "-"), size>>20), func(b *testing.B) {
				l := asFailure(make(size))
				b.SetBytes(int64(len(l.Text)))
				b.ReportAllocs()
				spent, runs := cpu(b), 0
				for b.Loop() {
					Classify(l)
					runs++
				}
				own := (cpu(b) - spent) / time.Duration(runs)
				b.StopTimer()
				const scans = 16
				spent = cpu(b)
				seen := 0
				for range scans {
					seen += plainScan(l.Text)
				}
				plain := max(cpu(b)-spent, 1) / scans
				require.GreaterOrEqual(b, seen, 0)
				b.ReportMetric(float64(own)/float64(plain), "×scan")
			})
		}
	}
}
