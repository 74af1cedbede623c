package config

import (
	"fmt"
	"os"
)

// RefuseInsideAttempt is an error where this process runs inside an attempt: a
// worker, or a test that it starts, must not drive the engine that launched it.
func RefuseInsideAttempt() error {
	if run := os.Getenv("MENDFLOW_RUN"); run != "" && os.Getenv("MENDFLOW_ATTEMPT") != "" {
		return fmt.Errorf("refuse to run inside an attempt of run %s: a worker must not drive Mendflow", run)
	}
	return nil
}
