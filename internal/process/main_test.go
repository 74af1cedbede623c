package process_test

import (
	"os"
	"testing"

	"mendflow/internal/process"
)

// TestMain lets the test binary be what the product's binary is: its own
// supervisor, and here also the programs that misbehave.
func TestMain(m *testing.M) {
	process.SuperviseIfAsked()
	if len(os.Args) > 2 && os.Args[1] == playArg {
		os.Exit(play(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}
