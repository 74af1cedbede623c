package gitrepo

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testTime is the date of every commit that a test makes through the package.
var testTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// plainGit runs git as a user would, with no configuration of the machine.
func plainGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return plainGitInput(t, dir, "", args...)
}

func plainGitInput(t testing.TB, dir, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=User", "GIT_AUTHOR_EMAIL=user@example.com", "GIT_COMMITTER_NAME=User", "GIT_COMMITTER_EMAIL=user@example.com",
		"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimRight(string(out), "\n")
}

// seedFiles are the files of the repository that most tests start from.
var seedFiles = map[string]string{
	"README.md":         "# Seed\n\nline\n",
	"src/a.txt":         "a1\na2\na3\na4\na5\na6\na7\na8\n",
	"src/b.txt":         "b1\nb2\nb3\n",
	"src/c.txt":         "c1\nc2\nc3\n",
	"docs/list.md":      "- one\n- two\n",
	"bin/run.sh":        "#!/bin/sh\nexit 0\n",
	".gitignore":        "*.log\n/build/\nnode_modules/\nhidden*.txt\n",
	"dir with ü/f 1.md": "x\n",
}

var seedOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gitrepo-seed-")
	if err != nil {
		return "", err
	}
	seedDirs = append(seedDirs, dir)
	for name, text := range seedFiles {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(filepath.Join(dir, "bin/run.sh"), 0o755); err != nil {
		return "", err
	}
	script := "git init -q -b main --template= && git add -A && git -c user.name=U -c user.email=u@x commit -qm base --date=@1700000000"
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_COMMITTER_DATE=@1700000000 +0000")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

var seedDirs []string

// newHub copies the seed repository; its path is canonical.
func newHub(t testing.TB) string {
	t.Helper()
	seed, err := seedOnce()
	require.NoError(t, err)
	dir := filepath.Join(realTemp(t), "hub")
	require.NoError(t, os.CopyFS(dir, os.DirFS(seed)))
	require.NoError(t, os.Chmod(filepath.Join(dir, "bin/run.sh"), 0o755))
	plainGit(t, dir, "reset", "-q")
	return dir
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func newStore(t testing.TB, change func(*Settings)) *Store {
	t.Helper()
	settings := Settings{StateDir: filepath.Join(realTemp(t), "state"), HostID: "host-1"}
	if change != nil {
		change(&settings)
	}
	s, err := NewStore(settings)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newMirror(t testing.TB, s *Store, repo string, opts Options) *Mirror {
	t.Helper()
	hub, err := ResolveHub(t.Context(), repo)
	require.NoError(t, err)
	m, err := s.Mirror(t.Context(), hub, opts)
	require.NoError(t, err)
	return m
}

// bench is a run that was opened on a fresh hub.
type bench struct {
	t      testing.TB
	repo   string // folder of the hub, also where it is used by URL
	store  *Store
	mirror *Mirror
	base   string
}

const testRun = "run-1"

// openRun opens a run on a copy of the seed; by URL when url is set.
func openRun(t testing.TB, url bool, change func(*Settings)) *bench {
	t.Helper()
	return openRunOn(t, newHub(t), url, Options{}, change)
}

func openRunOn(t testing.TB, repo string, url bool, opts Options, change func(*Settings)) *bench {
	t.Helper()
	b := &bench{t: t, repo: repo, store: newStore(t, change)}
	name := repo
	if url {
		name = "file://" + repo
	}
	b.mirror = newMirror(t, b.store, name, opts)
	var err error
	b.base, err = b.mirror.ResolveBase(t.Context(), "")
	require.NoError(t, err)
	truth, err := b.mirror.OpenTruth(t.Context(), testRun, b.base)
	require.NoError(t, err)
	require.Equal(t, b.base, truth)
	return b
}

func attempt(node string, number int) Attempt {
	return Attempt{Run: testRun, Node: node, Opening: 1, Number: number, Findings: []string{"F-" + node}}
}

// both runs a test on a hub by path and on a hub by URL.
func both(t *testing.T, test func(t *testing.T, url bool)) {
	t.Helper()
	for name, url := range map[string]bool{"path": false, "url": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url)
		})
	}
}

func (b *bench) truth() string {
	b.t.Helper()
	truth, err := b.mirror.Truth(b.t.Context(), testRun)
	require.NoError(b.t, err)
	return truth
}

// start gives an attempt its fence and tree.
func (b *bench) start(a Attempt) (Fence, *Worktree) {
	b.t.Helper()
	fence, err := b.mirror.SetFence(b.t.Context(), a)
	require.NoError(b.t, err)
	w, err := b.mirror.AddWorktree(b.t.Context(), a, b.truth(), WorktreeOptions{})
	require.NoError(b.t, err)
	return fence, w
}

// land commits what is in the tree, merges and lands it.
func (b *bench) land(a Attempt, fence Fence, w *Worktree) LandResult {
	b.t.Helper()
	res, err := b.tryLand(a, fence, w)
	require.NoError(b.t, err)
	return res
}

func (b *bench) tryLand(a Attempt, fence Fence, w *Worktree) (LandResult, error) {
	ctx := b.t.Context()
	work, err := w.Collect(ctx, Scope{})
	if err != nil {
		return LandResult{}, err
	}
	commit, err := w.Commit(ctx, CommitRequest{Attempt: a, Work: work, Message: "Repair " + a.Node, When: testTime})
	if err != nil {
		return LandResult{}, err
	}
	for lost := 0; ; lost++ {
		if lost == 3 {
			unlock, err := b.store.LandingLock(ctx, b.mirror)
			if err != nil {
				return LandResult{}, err
			}
			defer unlock()
		}
		truth, err := b.mirror.Truth(ctx, a.Run)
		if err != nil {
			return LandResult{}, err
		}
		merged, err := b.mirror.Merge(ctx, MergeRequest{Truth: truth, Base: w.Base(), Commit: commit})
		if err != nil {
			return LandResult{}, err
		}
		if !merged.Clean {
			return LandResult{}, fmt.Errorf("conflict in %v", merged.Conflicts)
		}
		res, err := b.mirror.Land(ctx, LandRequest{Attempt: a, Fence: fence, Base: b.base, ExpectTruth: truth,
			Tree: merged.Tree, Message: "Repair " + a.Node, When: testTime})
		if err != nil || res.Status != LostRace {
			return res, err
		}
	}
}

// tree reads all files of a commit of the hub, links as "-> target", executables with a "+x " mark.
func (b *bench) tree(commit string) map[string]string {
	b.t.Helper()
	files := map[string]string{}
	for _, record := range strings.Split(plainGit(b.t, b.repo, "ls-tree", "-r", "-z", commit), "\x00") {
		head, path, ok := strings.Cut(record, "\t")
		if !ok {
			continue
		}
		f := strings.Fields(head)
		if f[1] == "commit" {
			files[path] = "submodule " + f[2]
			continue
		}
		out, err := exec.Command("git", "-C", b.repo, "cat-file", "blob", f[2]).Output()
		require.NoError(b.t, err)
		switch f[0] {
		case "120000":
			files[path] = "-> " + string(out)
		case "100755":
			files[path] = "+x " + string(out)
		default:
			files[path] = string(out)
		}
	}
	return files
}

// expectTree compares a commit of the hub with the seed and changes on it; an empty text is a deletion.
func (b *bench) expectTree(commit string, changes map[string]string) {
	b.t.Helper()
	want := maps.Clone(seedFiles)
	want["bin/run.sh"] = "+x " + want["bin/run.sh"]
	for p, text := range changes {
		if text == "" {
			delete(want, p)
		} else {
			want[p] = text
		}
	}
	require.Equal(b.t, want, b.tree(commit))
}

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
}

func readFile(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}
