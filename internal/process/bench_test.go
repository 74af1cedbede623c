package process_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/process"
)

// BenchmarkRun measures what a run costs beside the program itself.
func BenchmarkRun(b *testing.B) {
	for _, mode := range []string{"direct", "supervised", "sandboxed"} {
		b.Run(mode, func(b *testing.B) {
			spec := process.Spec{Argv: []string{"true"}, Dir: b.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}
			spec.Direct = mode == "direct"
			if mode == "sandboxed" {
				spec.Sandbox = &process.Sandbox{Writable: []string{spec.Dir}}
			}
			for b.Loop() {
				r, err := process.Run(b.Context(), spec)
				require.NoError(b, err)
				require.True(b, r.Succeeded())
			}
		})
	}
}
