package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// original returns a file of the frozen yardstick; the tests need it, since a
// port can only be compared where what it was ported from is there.
func original(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "bench", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no frozen yardstick beside this repository: %v", err)
	}
	return path
}

func TestRepositoryEqualsTheFrozenOne(t *testing.T) {
	t.Parallel()
	script := original(t, "mkrepo.py")
	for _, files := range []int{1, 250} {
		dir := t.TempDir()
		require.NoError(t, command("python3", script, filepath.Join(dir, "frozen"), fmt.Sprint(files)).run())
		require.NoError(t, makeRepository(filepath.Join(dir, "port"), files))
		head := func(name string) string {
			out, err := command("git", "-C", filepath.Join(dir, name), "rev-parse", "HEAD", "HEAD^{tree}").output()
			require.NoError(t, err)
			clean, err := command("git", "-C", filepath.Join(dir, name), "status", "--porcelain").output()
			require.NoError(t, err)
			require.Empty(t, clean)
			return out
		}
		require.Equal(t, head("frozen"), head("port"))
	}
}

// TestLoopTakesTheFrozenSteps compares every program that the two loops start,
// with its arguments and the folder it runs in.
func TestLoopTakesTheFrozenSteps(t *testing.T) {
	script := original(t, "loop.sh")
	dir := t.TempDir()
	seed := filepath.Join(dir, "seed")
	require.NoError(t, makeRepository(seed, 120))
	trace := filepath.Join(dir, "trace")
	bin := traced(t, dir, trace)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	steps := func(temp string, run func(temp string) (complete bool)) []string {
		temp = filepath.Join(dir, temp)
		require.NoError(t, os.Mkdir(temp, 0o755))
		for complete := false; !complete; { // a loop that lost a node to git's own races has lost its steps too
			require.NoError(t, os.WriteFile(trace, nil, 0o644))
			complete = run(temp)
		}
		data, err := os.ReadFile(trace)
		require.NoError(t, err)
		folder := regexp.MustCompile(regexp.QuoteMeta(temp) + `/loop\.[0-9A-Za-z]+`)
		return strings.Split(folder.ReplaceAllString(string(data), "$T"), "\n")
	}
	for _, c := range []struct {
		nodes, parallel int
		sleep           string
	}{{4, 1, "0"}, {3, 1, "0.01"}, {5, 2, "0"}} {
		name := fmt.Sprintf("%d-%d-%s", c.nodes, c.parallel, c.sleep)
		frozen := steps("frozen"+name, func(temp string) bool {
			cmd := exec.Command("bash", script, seed, fmt.Sprint(c.nodes), fmt.Sprint(c.parallel), c.sleep)
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			out, err := cmd.Output()
			require.NoError(t, err)
			return strings.Contains(string(out), fmt.Sprintf(`"landed":%d}`, c.nodes))
		})
		port := steps("port"+name, func(temp string) bool {
			_, err := loop{seed: seed, nodes: c.nodes, parallel: c.parallel, sleep: c.sleep, temp: temp}.run()
			if !errors.Is(err, errIncomplete) {
				require.NoError(t, err)
			}
			return err == nil
		})
		if c.parallel > 1 { // their order is up to chance
			slices.Sort(frozen)
			slices.Sort(port)
		}
		require.NotEmpty(t, frozen)
		require.Equal(t, frozen, port)
	}
}

// traced makes a folder with programs that write down how they were called and
// then become the real ones.
func traced(t *testing.T, dir, trace string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	for _, name := range []string{"git", "cp", "sleep", "sh"} {
		real, err := exec.LookPath(name)
		require.NoError(t, err)
		text := fmt.Sprintf("#!/bin/bash\nprintf '%%s\\n' \"$PWD: %s $*\" >> '%s'\nexec '%s' \"$@\"\n", name, trace, real)
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	return bin
}
