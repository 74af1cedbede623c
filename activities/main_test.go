package activities

import (
	"os"
	"testing"

	"mendflow/internal/process"
)

func TestMain(m *testing.M) {
	process.SuperviseIfAsked()
	os.Exit(m.Run())
}
