package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// nodeScript is what the yardstick does for one node: worktree, sleep, edit,
// commit, remove.
const nodeScript = `n=$1; f=$(printf 'src/d%03d/f%06d.txt' $((n/100)) "$n")
cd "$T/r" && git worktree add -q --no-track -b node$n "$T/w$n" main && cd "$T/w$n" || exit 1
[ "$S" != 0 ] && sleep "$S"
echo "edited $n" >> "$f" && git commit -qam "node $n" && cd "$T/r" && git worktree remove --force "$T/w$n"
`

// loop is the yardstick: the work of a run by a plain shell loop, with nothing
// that survives a crash.
type loop struct {
	seed     string // repository of makeRepository; copied before the clock starts
	nodes    int
	parallel int
	sleep    string // seconds, as sleep(1) takes them
	temp     string
}

// errIncomplete says that not all nodes landed: git's adding and removing of
// worktrees at the same time is racy, and the plain loop has no second try.
var errIncomplete = errors.New("not all nodes of the yardstick landed")

// run returns the time for all nodes, including the cherry-picks that put them
// in order onto one branch. Like the original it goes on when a node fails.
func (l loop) run() (time.Duration, error) {
	dir, err := os.MkdirTemp(l.temp, "loop.")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	repo := filepath.Join(dir, "r")
	if err := command("cp", "-a", l.seed, repo).run(); err != nil {
		return 0, err
	}
	for _, args := range [][]string{{"status", "--porcelain"}, {"checkout", "-q", "-b", "run"}} {
		if err := command("git", args...).in(repo).run(); err != nil {
			return 0, err
		}
	}
	script := filepath.Join(dir, "node.sh")
	if err := os.WriteFile(script, []byte(nodeScript), 0o644); err != nil {
		return 0, err
	}
	started := time.Now()
	failed := l.all(dir, script)
	for i := range l.nodes {
		failed = errors.Join(failed, command("git", "cherry-pick", "node"+strconv.Itoa(i)).in(repo).run())
	}
	elapsed := time.Since(started)
	landed, err := command("git", "rev-list", "--count", "main..run").in(repo).output()
	if err == nil && strings.TrimSpace(landed) != strconv.Itoa(l.nodes) {
		err = fmt.Errorf("%w: %w", errIncomplete, failed)
	}
	return elapsed, err
}

// all runs the nodes, so many at once.
func (l loop) all(dir, script string) error {
	var wait sync.WaitGroup
	next := make(chan int)
	errs := make([]error, l.parallel)
	for w := range l.parallel {
		wait.Go(func() {
			for i := range next {
				cmd := command("sh", script, strconv.Itoa(i)).in(filepath.Join(dir, "r"))
				cmd.Env = append(os.Environ(), "T="+dir, "S="+l.sleep)
				errs[w] = errors.Join(errs[w], cmd.run())
			}
		})
	}
	for i := range l.nodes {
		next <- i
	}
	close(next)
	wait.Wait()
	return errors.Join(errs...)
}
