package gitrepo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestEnvironmentClearsInheritedGitAndSecrets(t *testing.T) {
	t.Parallel()
	inherited := []string{"PATH=/bin", "HOME=/root", "GIT_DIR=/elsewhere", "GIT_INDEX_FILE=/x", "GIT_CONFIG_COUNT=1",
		"GIT_SSH_COMMAND=evil", "TEMPORAL_API_KEY=secret", "ANTHROPIC_API_KEY=secret", "LANG=de_DE.UTF-8"}
	env := environment(inherited, command{gitDir: "/m", workTree: "/w", index: "/i"})
	got := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		require.NotContains(t, got, k, "set twice")
		got[k] = v
	}
	for k, v := range map[string]string{
		"PATH": "/bin", "HOME": "/root", "GIT_DIR": "/m", "GIT_WORK_TREE": "/w", "GIT_INDEX_FILE": "/i", "LC_ALL": "C",
		"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": sshCommand, "GIT_OPTIONAL_LOCKS": "0", "GIT_LFS_SKIP_SMUDGE": "1",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_PAGER": "cat",
	} {
		require.Equal(t, v, got[k], k)
	}
	require.NotContains(t, got, "TEMPORAL_API_KEY")
	require.NotContains(t, got, "ANTHROPIC_API_KEY")
	require.NotContains(t, got, "LANG")
	config := map[string]string{}
	for k, v := range got {
		if i, ok := strings.CutPrefix(k, "GIT_CONFIG_KEY_"); ok {
			config[v] = got["GIT_CONFIG_VALUE_"+i]
		}
	}
	for k, v := range map[string]string{"core.hooksPath": "/dev/null", "core.quotePath": "false", "commit.gpgSign": "false",
		"core.fsmonitor": "false", "gc.auto": "0"} {
		require.Equal(t, v, config[k], k)
	}
}

func TestUsersIgnoreRulesAndAttributesPlayNoPart(t *testing.T) {
	t.Parallel()
	home := realTemp(t)
	writeFile(t, home, ".config/git/ignore", "*.txt\n")
	writeFile(t, home, ".config/git/attributes", "* text eol=crlf\n")
	s, repo := newStore(t, nil), newHub(t)
	writeFile(t, repo, "new.txt", "x\n")
	cmd := command{args: []string{"status", "--porcelain"}, dir: repo, gitDir: filepath.Join(repo, ".git"), env: []string{"HOME=" + home}}
	res, err := s.git.run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, "?? new.txt", res.text())
	cmd.args = []string{"check-attr", "eol", "--", "new.txt"}
	res, err = s.git.run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, "new.txt: eol: unspecified", res.text())
}

func TestEnvironmentOptsIn(t *testing.T) {
	t.Parallel()
	inherited := []string{"GH_TOKEN=x", "TEMPORAL_TLS_KEY=y"}
	opts := Options{UserConfig: true, LFS: true, Sign: true, CredentialHelper: "gh auth git-credential"}
	local := strings.Join(environment(inherited, command{options: opts}), "\n")
	require.NotContains(t, local, "GH_TOKEN")
	require.NotContains(t, local, "GIT_CONFIG_GLOBAL")
	require.NotContains(t, local, "GIT_LFS_SKIP_SMUDGE")
	require.NotContains(t, local, "gpgSign")
	remote := strings.Join(environment(inherited, command{options: opts, network: true}), "\n")
	require.Contains(t, remote, "GH_TOKEN=x")
	require.NotContains(t, remote, "TEMPORAL_")
	require.Contains(t, remote, "=gh auth git-credential")
}

func TestArgumentsOfCommands(t *testing.T) {
	t.Parallel()
	m := &Mirror{hub: Hub{URL: "https://example.com/r.git"}, dir: "/m"}
	require.Equal(t, []string{"push", "--atomic", "--porcelain", "--quiet", "--no-verify", "--no-follow-tags",
		"--force-with-lease=refs/a:", "--force-with-lease=refs/b:2222", "--force-with-lease=refs/c:3333",
		"--end-of-options", "https://example.com/r.git", "1111:refs/a", "4444:refs/b", ":refs/c"},
		m.pushCommand([]refUpdate{{"refs/a", "", "1111"}, {"refs/b", "2222", "4444"}, {"refs/c", "3333", ""}}).args)
	require.Equal(t, []string{"clone", "--bare", "--quiet", "--template=", "--", "-r", "/d"}, cloneCommand("-r", "/d", Options{}).args)
	require.Equal(t, []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "a", "b"}, mergeTreeCommand("a", "b").args)
	require.Equal(t, []string{"unpack-objects", "-q"}, unpackCommand("/h", 99).args)
	require.Equal(t, []string{"index-pack", "--stdin", "--fix-thin"}, unpackCommand("/h", 100).args)
	require.Equal(t, "start\x00update refs/a\x00new\x00"+strings.Repeat("0", 40)+"\x00prepare\x00commit\x00",
		string(updateRefsScript(formatSHA1, []refUpdate{{"refs/a", "", "new"}})))
}

func TestStageCommandsTakeListedPathsOnly(t *testing.T) {
	t.Parallel()
	cmds := stageCommands([]Change{
		{Path: "-x", Kind: Added}, {Path: "gone", Kind: Deleted, oldBlob: "12"},
		{Path: "eol", Kind: Modified, newMode: "100644", blob: "ab"},
	})
	require.Len(t, cmds, 2)
	require.Equal(t, []string{"update-index", "-z", "--index-info"}, cmds[0].args)
	entries, err := io.ReadAll(cmds[0].stdin)
	require.NoError(t, err)
	require.Equal(t, "0 00\tgone\x00100644 ab\teol\x00", string(entries))
	require.Equal(t, []string{"update-index", "-z", "--add", "--remove", "--replace", "--stdin"}, cmds[1].args)
	files, err := io.ReadAll(cmds[1].stdin)
	require.NoError(t, err)
	require.Equal(t, "-x\x00", string(files), "a path is never an argument")
}

func TestCommandErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for text, kind := range map[string]error{
		"fatal: detected dubious ownership in repository at '/x'": ErrDubiousOwnership,
		"fatal: Unable to create '/x/index.lock': File exists.":   ErrLocked,
		"error: file write error: No space left on device":        ErrDiskFull,
		"ssh: Could not resolve hostname h: x":                    ErrUnreachable,
		"fatal: something else":                                   nil,
		"fatal: '/x' does not appear to be a git repository":      ErrNotRepository,
		"fatal: Could not read from remote repository.":           ErrUnreachable,
	} {
		err := error(&CommandError{Args: []string{"fetch"}, Code: 128, Stderr: text})
		if kind == nil {
			require.Nil(t, classify(text))
			continue
		}
		require.ErrorIs(t, err, kind)
		require.Equal(t, 128, exitCode(err))
	}
	require.EqualError(t, &CommandError{Args: []string{"-c", "fetch"}, Code: 1}, "run git fetch: exit 1")
}

func TestCancelEndsGitAndIsNotAPlainExit(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil)
	repo := newHub(t)
	// Hashing a pipe that nobody writes to lasts until it is ended.
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.git.run(ctx, command{args: []string{"hash-object", fifo}, dir: repo, gitDir: filepath.Join(repo, ".git")})
		ended <- err
	}()
	require.Eventually(t, func() bool { return s.Commands() == 1 }, 5*time.Second, time.Millisecond)
	cancel()
	err := <-ended
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, -1, exitCode(err))
}

func TestAtMostAsManyGitCommandsAsCores(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil)
	repo := newHub(t)
	width := runtime.GOMAXPROCS(0)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, width)
	for i := range width {
		fifo := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, unix.Mkfifo(fifo, 0o600))
		go func() {
			_, err := s.git.run(ctx, command{args: []string{"hash-object", fifo}, dir: repo, gitDir: filepath.Join(repo, ".git")})
			ended <- err
		}()
	}
	require.Eventually(t, func() bool { return s.Commands() == int64(width) }, 5*time.Second, time.Millisecond)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := s.git.run(short, command{args: []string{"version"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, width, s.Commands(), "no further command was started")
	cancel()
	for range width {
		require.Error(t, <-ended)
	}
}

func TestMissingGitIsAnError(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil)
	_, err := s.git.run(t.Context(), command{args: []string{"no-such-command"}})
	require.Equal(t, 1, exitCode(err))
	_, err = s.git.run(t.Context(), command{args: []string{"version"}, dir: filepath.Join(t.TempDir(), "gone")})
	require.Error(t, err)
	require.True(t, errors.Is(err, os.ErrNotExist))
}

// liveGit runs a git command in a repository until stop is called.
func liveGit(t *testing.T, s *Store, gitDir string) (stop func()) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	before := s.Commands()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.git.run(ctx, command{args: []string{"hash-object", fifo}, dir: gitDir, gitDir: gitDir})
	}()
	require.Eventually(t, func() bool { return s.Commands() > before && gitAliveIn(gitDir) }, 5*time.Second, time.Millisecond)
	return func() { cancel(); <-ended }
}

func TestTransfersGiveUpAConnectionInWhichNothingMoves(t *testing.T) {
	t.Parallel()
	require.Subset(t, configuration(command{network: true}), stalled)
	require.NotSubset(t, configuration(command{}), stalled)
}
