package gitrepo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	childEnv = "MENDFLOW_GITREPO_CHILD" // JSON of a childSpec
	trapEnv  = "MENDFLOW_GITREPO_TRAP"  // file: while it exists, the next transaction dies
	gitEnv   = "MENDFLOW_GITREPO_GIT"   // the real git
)

// A childSpec is one life of a worker that carries a node from wherever it is to its end.
type childSpec struct {
	State, Repo string
	KillAt      string // hook point at which the process kills itself
	Fail        bool   // the work does not land: salvage and release
}

// childMain looks first and does what is missing, as the activities do.
func childMain(text string) int {
	var spec childSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return 3
	}
	if err := spec.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (spec childSpec) run(ctx context.Context) error {
	s, err := NewStore(Settings{StateDir: spec.State, HostID: "host-1", LockGrace: time.Nanosecond, Hook: func(point string) {
		if point == spec.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	hub, err := ResolveHub(ctx, spec.Repo)
	if err != nil {
		return err
	}
	m, err := s.Mirror(ctx, hub, Options{})
	if err != nil {
		return err
	}
	base, err := m.ResolveBase(ctx, "main")
	if err != nil {
		return err
	}
	truth, err := m.OpenTruth(ctx, testRun, base)
	if err != nil {
		return err
	}
	a := attempt("n1", 1)
	state, err := m.State(ctx, testRun, base)
	if err != nil {
		return err
	}
	if _, landed := state.Landed(a.Node, a.Opening); landed {
		return m.ReleaseAttempt(ctx, a, ReleaseOptions{})
	}
	return spec.attempt(ctx, m, a, base, truth)
}

func (spec childSpec) attempt(ctx context.Context, m *Mirror, a Attempt, base, truth string) error {
	if ref, err := readRef(m.dir, SalvageRef(a.Run, a.Node, a.Number)); err != nil || spec.Fail && ref != "" && !isDir(m.store.treePath(a.slot())) {
		return errors.Join(err, m.ReleaseAttempt(ctx, a, ReleaseOptions{})) // salvaged
	}
	fence, err := m.SetFence(ctx, a)
	if err != nil {
		return err
	}
	w, err := m.AddWorktree(ctx, a, truth, WorktreeOptions{})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Path(), "src/a.txt"), []byte("work\n"), 0o644); err != nil {
		return err
	}
	if spec.Fail {
		if _, err := w.Salvage(ctx, Scope{}, testTime); err != nil {
			return err
		}
		return w.Release(ctx, ReleaseOptions{})
	}
	work, err := w.Collect(ctx, Scope{})
	if err != nil {
		return err
	}
	commit, err := w.Commit(ctx, CommitRequest{Attempt: a, Work: work, Message: "Repair", When: testTime})
	if err != nil {
		return err
	}
	truth, err = m.Truth(ctx, testRun)
	if err != nil {
		return err
	}
	merged, err := m.Merge(ctx, MergeRequest{Truth: truth, Base: w.Base(), Commit: commit})
	if err != nil {
		return err
	}
	res, err := m.Land(ctx, LandRequest{Attempt: a, Fence: fence, Base: base, ExpectTruth: truth, Tree: merged.Tree, Message: "Repair", When: testTime})
	if err != nil {
		return err
	}
	if res.Status != Landed {
		return fmt.Errorf("status %s", res.Status)
	}
	return w.Release(ctx, ReleaseOptions{Reusable: true})
}

// start runs a life of the worker in a process of its own.
func (spec childSpec) start(t *testing.T, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), childEnv+"="+string(text)), env...)
	var out bytes.Buffer
	cmd.Stderr = &out
	require.NoError(t, cmd.Start())
	return cmd, &out
}

func killed(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// expectOneLanding checks the invariants after a life that came to its end.
func expectOneLanding(t *testing.T, spec childSpec, before map[string]string) {
	t.Helper()
	repo := strings.TrimPrefix(spec.Repo, "file://")
	b := &bench{t: t, repo: repo}
	truth := plainGit(t, repo, "rev-parse", TruthRef(testRun))
	require.Equal(t, "1", plainGit(t, repo, "rev-list", "--count", "main.."+truth), "exactly one landing")
	b.expectTree(truth, map[string]string{"src/a.txt": "work\n"})
	require.Equal(t, before, everythingElse(t, repo))
	plainGit(t, repo, "fsck", "--no-dangling")
	expectNothingLeft(t, spec)
}

func expectNothingLeft(t *testing.T, spec childSpec) {
	t.Helper()
	trees, err := filepath.Glob(filepath.Join(spec.State, worktreesDir, "*", "*", "*"))
	require.NoError(t, err)
	require.Empty(t, trees)
	admins, err := filepath.Glob(filepath.Join(spec.State, mirrorsDir, "*", "worktrees", "*"))
	require.NoError(t, err)
	require.Empty(t, admins)
	for _, root := range []string{strings.TrimPrefix(spec.Repo, "file://") + "/.git/refs", spec.State} {
		require.NoError(t, filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".lock") && !strings.HasPrefix(filepath.Base(filepath.Dir(p)), mirrorsDir) {
				return fmt.Errorf("lock %s is left", p)
			}
			return err
		}))
	}
}

func TestKilledAtEveryPointLandsExactlyOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url bool) {
		for _, point := range []string{PointWorktreeAdded, PointCommitted, PointMerged, PointBeforeTransaction, PointObjectsSent,
			PointAfterTransaction, PointReleasing} {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				spec := newSpec(t, url)
				before := everythingElse(t, strings.TrimPrefix(spec.Repo, "file://"))
				dying := spec
				dying.KillAt = point
				cmd, out := dying.start(t)
				require.Error(t, cmd.Wait())
				require.True(t, killed(cmd), "%s", out)
				cmd, out = spec.start(t)
				require.NoError(t, cmd.Wait(), "%s", out)
				expectOneLanding(t, spec, before)
				cmd, out = spec.start(t)
				require.NoError(t, cmd.Wait(), "%s", out)
				expectOneLanding(t, spec, before)
			})
		}
	})
}

func newSpec(t *testing.T, url bool) childSpec {
	t.Helper()
	spec := childSpec{State: filepath.Join(realTemp(t), "state"), Repo: newHub(t)}
	if url {
		spec.Repo = "file://" + spec.Repo
	}
	return spec
}

func TestKilledDuringSalvageLosesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range []string{PointSalvaging, PointReleasing} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t, false)
			spec.Fail = true
			dying := spec
			dying.KillAt = point
			cmd, out := dying.start(t)
			require.Error(t, cmd.Wait())
			require.True(t, killed(cmd), "%s", out)
			cmd, out = spec.start(t)
			require.NoError(t, cmd.Wait(), "%s", out)
			mirrors, err := filepath.Glob(filepath.Join(spec.State, mirrorsDir, "*.git"))
			require.NoError(t, err)
			require.Equal(t, "work", plainGit(t, mirrors[0], "show", SalvageRef(testRun, "n1", 1)+":src/a.txt"))
			expectNothingLeft(t, spec)
		})
	}
}

// dyingGit is the real git until the trap is set: then its next transaction gets its locks and is
// killed before it commits, together with the worker that started it.
func dyingGit(args []string) int {
	git := os.Getenv(gitEnv)
	if args[0] != "update-ref" || os.Remove(os.Getenv(trapEnv)) != nil {
		if err := syscall.Exec(git, append([]string{"git"}, args...), os.Environ()); err != nil {
			return 127
		}
	}
	script, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 126
	}
	prepared, _, _ := bytes.Cut(script, []byte("commit\x00"))
	cmd := exec.Command(git, args...)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if cmd.Start() != nil {
		return 125
	}
	if _, err := in.Write(prepared); err != nil {
		return 124
	}
	buf := make([]byte, 0, 64)
	for chunk := make([]byte, 64); !bytes.Contains(buf, []byte("prepare: ok")); {
		n, err := out.Read(chunk)
		if err != nil {
			return 123
		}
		buf = append(buf, chunk[:n]...)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
	return 1
}

func TestGitKilledAfterPrepareLeavesNothingThatHolds(t *testing.T) {
	t.Parallel()
	spec := newSpec(t, false)
	before := everythingElse(t, spec.Repo)
	// The truth and a first fence exist: the transaction that dies is the landing.
	dying := spec
	dying.KillAt = PointBeforeTransaction
	cmd, _ := dying.start(t)
	require.Error(t, cmd.Wait())

	real, err := exec.LookPath("git")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	bin, trap := realTemp(t), filepath.Join(realTemp(t), "trap")
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "git")))
	require.NoError(t, os.WriteFile(trap, nil, 0o600))
	// The environment of git is an allow-list, so the wrapper is told through its own folder.
	script := fmt.Sprintf("#!/bin/sh\n%s=%s %s=%s exec %s/git \"$@\"\n", trapEnv, trap, gitEnv, real, bin)
	wrapper := realTemp(t)
	require.NoError(t, os.WriteFile(filepath.Join(wrapper, "git"), []byte(script), 0o755))
	cmd, out := spec.start(t, "PATH="+wrapper+":"+os.Getenv("PATH"))
	require.Error(t, cmd.Wait())
	require.True(t, killed(cmd), "%s", out)
	require.NoFileExists(t, trap)
	locks, err := filepath.Glob(filepath.Join(spec.Repo, ".git/refs/mendflow/*/*.lock"))
	require.NoError(t, err)
	deeper, err := filepath.Glob(filepath.Join(spec.Repo, ".git/refs/mendflow/*/*/*.lock"))
	require.NoError(t, err)
	require.NotEmpty(t, append(locks, deeper...), "the transaction held its locks")

	cmd, out = spec.start(t)
	require.NoError(t, cmd.Wait(), "%s", out)
	expectOneLanding(t, spec, before)
}

func TestKilledAtRandomLandsExactlyOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("MENDFLOW_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MENDFLOW_SEED=%d", seed)
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("MENDFLOW_SOAK_KILLS")); err == nil {
		kills = n
	}
	both(t, func(t *testing.T, url bool) {
		spec := newSpec(t, url)
		before := everythingElse(t, strings.TrimPrefix(spec.Repo, "file://"))
		random := rand.New(rand.NewPCG(seed, 0))
		for range kills {
			cmd, out := spec.start(t)
			timer := time.AfterFunc(time.Duration(random.IntN(250))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			require.True(t, err == nil || killed(cmd), "%s", out)
		}
		cmd, out := spec.start(t)
		require.NoError(t, cmd.Wait(), "%s", out)
		expectOneLanding(t, spec, before)
	})
}
