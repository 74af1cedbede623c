package process_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"mendflow/internal/process"
)

// TestMain lets the test binary also be the programs that misbehave.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == playArg {
		os.Exit(play(os.Args[2], os.Args[3:]))
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := process.BecomeSubreaper(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Most of these tests wait for somebody else's grace to pass.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	cancel()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
