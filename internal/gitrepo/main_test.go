package gitrepo

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range seedDirs {
			os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}
