// Package e2e tests the built programs against the embedded server: what a
// user types, what stands in git afterwards, and what is left when processes
// are killed. The programs come from bin/ (make build).
package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mendflow/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.AsScriptedWorker()
	// These tests wait far more than they compute; explicit flags still win.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err) // the testing package has the flag
	}
	os.Exit(run(m))
}

// run runs the tests, and ends what they share once all of them have run.
func run(m *testing.M) int {
	if err := testkit.CheckBuilt(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	home, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	if err := os.Setenv("TMPDIR", home); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	if err := shared.close(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: end the shared lab:", err)
		return 1
	}
	if code != 0 {
		return code
	}
	if err := nothingLeft(home); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: after all tests:", err)
		return 1
	}
	if err := goleak.Find(goleak.IgnoreAnyFunction("mendflow/internal/testkit.launchForEver")); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return 0
}

// nothingLeft looks at the folder that held everything of the tests: no process
// names it any more and it is empty, so no worktree is left either.
func nothingLeft(home string) error {
	if left := testkit.Mentioning(home); len(left) > 0 {
		return fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: %v", home, entries)
	}
	return os.Remove(home)
}

// shared is the lab of all tests that kill nothing: run ids keep them apart.
var shared sharedLab

type sharedLab struct {
	once sync.Once
	dir  string
	lab  *testkit.Lab
	err  error
}

// theLab returns the shared lab, which the first test that asks brings up.
func theLab(t testing.TB) *testkit.Lab {
	t.Helper()
	lab, err := shared.open()
	require.NoError(t, err)
	return lab
}

func (s *sharedLab) open() (*testkit.Lab, error) {
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "mendflow-e2e-"); s.err == nil {
			s.lab, s.err = testkit.OpenLab(s.dir, testkit.LabOptions{Pools: []testkit.Pool{{ID: "scripted", Max: 4}}})
		}
	})
	return s.lab, s.err
}

// close ends the lab; its folder with the logs stays when a test failed.
func (s *sharedLab) close(failed bool) error {
	if s.dir == "" {
		return nil
	}
	var err error
	if s.lab != nil {
		err = s.lab.Close()
	}
	if failed || err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the logs of the shared lab are in", s.dir)
		return err
	}
	return os.RemoveAll(s.dir)
}
