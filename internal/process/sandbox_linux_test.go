package process_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"mendflow/internal/process"
)

// requireSandbox skips a test only where the kernel itself says that it has no
// Landlock, so that a broken sandbox cannot look like a missing one.
func requireSandbox(t *testing.T) (abi int) {
	t.Helper()
	abi, err := process.SandboxAvailable()
	if err == nil {
		return abi
	}
	require.ErrorIs(t, err, process.ErrNoSandbox)
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		t.Skipf("this kernel has no Landlock: %v", errno)
	}
	t.Fatalf("the kernel has Landlock and there is no sandbox: %v", err)
	return 0
}

// place is a host as a worker finds it.
type place struct {
	root, worktree, other, checkout, home, temp string
	mirror, userHome, checks                    string // what is never a worker's: repository, home and caches of others
	victim                                      int    // a process outside
}

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	p := place{
		root: root, worktree: root + "/worktrees/a1", other: root + "/worktrees/a2",
		mirror: root + "/mirrors/m.git", userHome: root + "/user", checks: root + "/home-of-checks",
		checkout: root + "/checkout", home: root + "/home", temp: root + "/temp",
	}
	for _, folder := range []string{p.worktree, p.other, p.checkout + "/sub", p.home, p.temp, p.userHome, p.checks + "/go-build"} {
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	for _, file := range []string{
		p.worktree + "/mine", p.other + "/theirs", p.checkout + "/file", p.checkout + "/sub/deep", p.userHome + "/.profile", p.checks + "/go-build/cached",
	} {
		require.NoError(t, os.WriteFile(file, []byte("original\n"), 0o644))
	}
	require.NoError(t, os.Symlink(p.checkout+"/file", p.worktree+"/link"))
	require.NoError(t, os.Symlink(p.checkout, p.worktree+"/linkdir"))
	for _, args := range [][]string{{"init", "-q", p.checkout}, {"init", "-q", "--bare", p.mirror}} {
		git := exec.Command("git", args...)
		git.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home}
		require.NoError(t, git.Run())
	}

	victim := exec.Command("sleep", "1000")
	require.NoError(t, victim.Start())
	p.victim = victim.Process.Pid
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	return p
}

func (p place) spec(t *testing.T, confined bool) process.Spec {
	t.Helper()
	spec := base(t)
	spec.Dir = p.worktree
	spec.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.temp, "CHECKOUT=" + p.checkout, "OTHER=" + p.other,
		"MIRROR=" + p.mirror, "USERHOME=" + p.userHome, "CHECKS=" + p.checks,
		"SELF=" + playing(t, "")[0], "VICTIM=" + strconv.Itoa(p.victim), "TEST=" + strconv.Itoa(os.Getpid()),
		"GIT_AUTHOR_NAME=w", "GIT_AUTHOR_EMAIL=w@x", "GIT_COMMITTER_NAME=w", "GIT_COMMITTER_EMAIL=w@x",
	}
	spec.StopGrace = time.Second
	if confined {
		spec.Sandbox = &process.Sandbox{Writable: []string{p.worktree, p.home, p.temp}}
	}
	return spec
}

// fingerprint is the state of all that the worker must not change.
func (p place) fingerprint(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range []string{p.checkout, p.other, p.mirror, p.userHome, p.checks} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fmt.Fprintln(&b, path, d.Type())
			if d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, "%s\n", data)
			}
			return nil
		}))
	}
	return b.String()
}

// escapes are attempts to leave the worktree; each succeeds without a sandbox.
var escapes = map[string]string{
	"absolute path":           `echo x >"$CHECKOUT/file"`,
	"append":                  `echo x >>"$CHECKOUT/file"`,
	"dot dot":                 `echo x >../../checkout/new`,
	"other worktree":          `echo x >../a2/theirs`,
	"symlink to a file":       `echo x >link`,
	"symlink to a folder":     `echo x >linkdir/new`,
	"own symlink":             `ln -s "$CHECKOUT" own && echo x >own/new`,
	"mkdir":                   `mkdir "$CHECKOUT/newdir"`,
	"remove":                  `rm "$CHECKOUT/file"`,
	"remove folder":           `rm -r "$CHECKOUT/sub"`,
	"rename":                  `mv "$CHECKOUT/file" "$CHECKOUT/file2"`,
	"move out":                `mv mine "$CHECKOUT/mine"`,
	"move in":                 `mv "$CHECKOUT/file" .`,
	"hard link in, write":     `ln "$CHECKOUT/file" hard && echo x >hard`,
	"truncate":                `truncate -s 0 "$CHECKOUT/file"`,
	"truncate by name":        `"$SELF" __play truncate "$CHECKOUT/file"`,
	"symlink outside":         `ln -s x "$CHECKOUT/sym"`,
	"fifo outside":            `mkfifo "$CHECKOUT/fifo"`,
	"git -C":                  `git -C "$CHECKOUT" commit -q --allow-empty -m x`,
	"git --git-dir":           `git --git-dir="$CHECKOUT/.git" config a.b c`,
	"mirror's config":         `git --git-dir="$MIRROR" config core.fsmonitor "touch x"`,
	"mirror's hook":           `echo x >"$MIRROR/hooks/reference-transaction"`,
	"mirror's objects":        `echo x | git --git-dir="$MIRROR" hash-object -w --stdin`,
	"mirror's ref":            `echo 0123456789012345678901234567890123456789 >"$MIRROR/refs/heads/theirs"`,
	"home of the user":        `echo x >>"$USERHOME/.profile"`,
	"key of the user":         `mkdir "$USERHOME/.ssh"`,
	"foreign cache":           `echo x >"$CHECKS/go-build/cached"`,
	"new in a foreign cache":  `mkdir -p "$CHECKS/go-build/00"`,
	"from another session":    `setsid sh -c 'echo x >"$CHECKOUT/file"'`,
	"through own descriptor":  `exec 9<"$CHECKOUT/file"; echo x >/proc/self/fd/9`,
	"through proc cwd of kin": `cd "$CHECKOUT"; sh -c 'echo x >/proc/$PPID/cwd/file'`,
}

func TestEveryWayOutOfTheSandboxIsRefused(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	for name, attempt := range escapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, confined := range []bool{false, true} {
				p := newPlace(t)
				before := p.fingerprint(t)
				spec := p.spec(t, confined)
				spec.Shell = attempt
				r, err := process.Run(t.Context(), spec)
				require.NoError(t, err)
				if confined {
					require.NotZero(t, r.ExitCode, "%s", r.StderrTail)
					require.Regexp(t, `(?i)permission denied|cross-device|not permitted|could not lock|unable to|cannot`, r.StderrTail)
					require.Equal(t, before, p.fingerprint(t))
				} else {
					require.True(t, r.Succeeded(), "the attempt must work where nothing stops it: %s", r.StderrTail)
					require.NotEqual(t, before, p.fingerprint(t))
				}
			}
		})
	}
}

func TestSandboxKeepsItsHandsOffOtherProcesses(t *testing.T) {
	t.Parallel()
	abi := requireSandbox(t)
	attempts := map[string]string{
		"environment of the host worker": `tr '\0' '\n' <"/proc/$TEST/environ" | grep -q PATH`,
		"memory of the host worker":      `head -c 0 "/proc/$TEST/mem" && : >>"/proc/$TEST/mem"`,
	}
	if abi >= 6 {
		attempts["signal"] = `kill -0 "$VICTIM"`
	}
	for name, attempt := range attempts {
		for _, confined := range []bool{false, true} {
			p := newPlace(t)
			spec := p.spec(t, confined)
			spec.Shell = attempt
			r, err := process.Run(t.Context(), spec)
			require.NoError(t, err)
			if !confined && strings.HasPrefix(name, "memory") {
				continue // Yama may refuse it without our doing
			}
			require.Equal(t, !confined, r.Succeeded(), "%s, confined %v: %s", name, confined, r.StderrTail)
		}
	}
}

// The thread that starts a confined program is in the same domain as the
// program, which Landlock lets trace it; the supervisor's memory is closed. Of a
// host that is not root's the program has all the rights, so root runs this as
// somebody else.
func TestProgramCannotTraceItsSupervisor(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Argv, spec.Shell = playing(t, "trace-parent"), ""
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, 1, r.ExitCode, r.StderrTail)
}

// asNobody runs the calling test once more without root's rights.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	folder, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o777))
	self, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	binary := filepath.Join(folder, "test")
	writeProgram(t, binary, string(self))
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "TMPDIR="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

func TestDevicesCannotBeMade(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Shell = `mknod disk b 254 0 || mknod null c 1 3`
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.NotZero(t, r.ExitCode)
}

func TestPrivilegesCannotBeGained(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Shell = `grep NoNewPrivs /proc/self/status`
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.Equal(t, "NoNewPrivs:\t1\n", r.StdoutTail)
}

func TestWorkInsideTheSandboxGoesOnAsUsual(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Shell = `set -e
echo x >new; echo y >>mine; mkdir -p a/b c; mv new a/b/new; ln a/b/new c/hard; ln -s mine sym; mkfifo fifo; rm mine; rm -r a
truncate -s 0 c/hard; chmod 755 c/hard; touch -d yesterday c/hard
echo home >"$HOME/file"; mv "$HOME/file" "$TMPDIR/moved"; ln "$TMPDIR/moved" ./linked
echo x >/dev/null; echo x >/dev/shm/mendflow-test-$$; rm /dev/shm/mendflow-test-$$
head -c 3 /dev/zero >zeros; cat "$CHECKOUT/file" >copy; ls / >/dev/null; sh -c true
git init -q repo; cd repo; echo 1 >f; git add f; git commit -q -m m; git log --oneline >/dev/null`
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, r.Succeeded(), "%s: %s", r, r.StderrTail)
}

func TestSandboxDoesNotReachTheSupervisor(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	// A confined program that ignores signals is still ended, with its relatives.
	p := newPlace(t)
	folder := filepath.Join(p.temp, "pids")
	require.NoError(t, os.Mkdir(folder, 0o755))
	spec := p.spec(t, true)
	spec.Argv = playing(t, "hostile", folder, "end")
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, r.Succeeded(), "%s: %s", r, r.StderrTail)
	require.Len(t, r.Left, hostileChildren)
	requireGone(t, left(t, folder)...)
}

func TestSandboxAroundAMissingPlaceIsAStartError(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Shell = "echo ran >file"
	for path, want := range map[string]string{"relative": "not absolute", p.root + "/gone": p.root + "/gone: no such file"} {
		spec.Sandbox.Writable = []string{p.worktree, path}
		_, err := process.Run(t.Context(), spec)
		require.ErrorAs(t, err, new(*process.StartError))
		require.ErrorContains(t, err, want)
	}
	require.NoFileExists(t, p.worktree+"/file")

	spec.Shell, spec.Sandbox.Writable = "", []string{p.worktree}
	spec.Argv = []string{p.worktree + "/broken"}
	writeProgram(t, spec.Argv[0], "#!/no/such\n")
	_, err := process.Run(t.Context(), spec)
	require.ErrorIs(t, err, unix.ENOENT)
}

func TestSingleFileCanBeWritable(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	p := newPlace(t)
	result := filepath.Join(p.root, "result.json")
	require.NoError(t, os.WriteFile(result, nil, 0o644))
	spec := p.spec(t, true)
	spec.Sandbox.Writable = append(spec.Sandbox.Writable, result)
	spec.Shell = `echo '{}' >../../result.json; rm ../../result.json`
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.NotZero(t, r.ExitCode)
	data, err := os.ReadFile(result)
	require.NoError(t, err)
	require.Equal(t, "{}\n", string(data))
}

func TestNetworkStaysUsableInTheSandbox(t *testing.T) {
	t.Parallel()
	requireSandbox(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	got := make(chan []byte, 1)
	go func() {
		if c, err := listener.Accept(); err == nil {
			var b bytes.Buffer
			_, _ = b.ReadFrom(c)
			got <- b.Bytes()
			_ = c.Close()
		}
	}()
	p := newPlace(t)
	spec := p.spec(t, true)
	spec.Argv = playing(t, "dial", listener.Addr().String())
	r, err := process.Run(t.Context(), spec)
	require.NoError(t, err)
	require.True(t, r.Succeeded(), r.StderrTail)
	require.Equal(t, "hello", string(<-got))
}
