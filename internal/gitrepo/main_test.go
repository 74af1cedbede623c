package gitrepo

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is three programs: the tests, a worker that is killed on the way (childEnv is set), and a
// git that dies in the middle of a transaction (the name it is called by).
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "git":
		os.Exit(dyingGit(os.Args[1:]))
	case os.Getenv(childEnv) != "":
		os.Exit(childMain(os.Getenv(childEnv)))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range seedDirs {
			os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}
