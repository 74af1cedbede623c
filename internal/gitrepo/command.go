package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

// A command is one git invocation, described and not yet run.
type command struct {
	args     []string
	dir      string   // working directory; empty: the state folder
	gitDir   string   // GIT_DIR; empty: git discovers, which is allowed for a hub that was just named only
	workTree string   // GIT_WORK_TREE
	index    string   // GIT_INDEX_FILE
	env      []string // additions, last wins
	stdin    io.Reader
	ok       []int // expected exit codes besides 0
	network  bool  // talks to another repository: gets the wider environment
	options  Options
	config   []string // additional key=value configuration
}

// runner runs git commands, at most width at once.
type runner struct {
	slots *semaphore.Weighted
	width int64
	dir   string
	count atomic.Int64
	log   *slog.Logger
}

func newRunner(dir string, log *slog.Logger) *runner {
	width := int64(runtime.GOMAXPROCS(0))
	return &runner{slots: semaphore.NewWeighted(width), width: width, dir: dir, log: log}
}

// killGrace is the time between TERM and KILL: git removes its lock files on TERM.
const killGrace = 5 * time.Second

// stderrLimit bounds what is kept of git's error text.
const stderrLimit = 4 << 10

// result is what a command printed and its exit code, which is 0 or one of command.ok.
type result struct {
	stdout []byte
	stderr string
	code   int
}

func (r result) text() string { return strings.TrimRight(string(r.stdout), "\n") }

func (r *runner) run(ctx context.Context, c command) (result, error) {
	if err := r.slots.Acquire(ctx, 1); err != nil {
		return result{code: -1}, fmt.Errorf("wait for a git slot: %w", err)
	}
	defer r.slots.Release(1)
	var stdout bytes.Buffer
	res, err := r.start(ctx, c, &stdout)
	res.stdout = stdout.Bytes()
	return res, err
}

// start runs the command to its end with its output going to w. The caller holds a slot.
func (r *runner) start(ctx context.Context, c command, w io.Writer) (result, error) {
	r.count.Add(1)
	cmd := exec.CommandContext(ctx, "git", c.args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = r.dir
	}
	cmd.Env = environment(os.Environ(), c)
	cmd.Stdin = c.stdin
	cmd.Stdout = w
	stderr := &headWriter{limit: stderrLimit}
	cmd.Stderr = stderr
	// A group of its own, so that git's own children end with it; the parent-death signal keeps a
	// git command from working on in a tree after its host worker was killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	started := time.Now()
	err := runLocked(cmd)
	code := -1
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	res := result{stderr: stderr.String(), code: code}
	r.log.LogAttrs(ctx, slog.LevelDebug, "git", slog.Any("args", c.args), slog.Int("exit_code", code),
		slog.Int64("duration_ms", time.Since(started).Milliseconds()))
	if err == nil {
		return res, nil
	}
	ce := &CommandError{Args: c.args, Code: code, Stderr: res.stderr}
	if ctx.Err() != nil {
		ce.Err = context.Cause(ctx)
		ce.Code = -1
		return res, ce
	}
	exit, isExit := errors.AsType[*exec.ExitError](err)
	if !isExit || exit.ExitCode() < 0 {
		ce.Err = err
		return res, ce
	}
	for _, expected := range c.ok {
		if code == expected {
			return res, nil
		}
	}
	return res, ce
}

// runLocked keeps the goroutine on its thread: the parent-death signal is tied to the thread that forked.
func runLocked(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if cmd.Process != nil && err != nil {
		// What did not listen to TERM; the group is empty in every other case.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// pipe runs from and to at the same time, the output of one being the input of the other. They take
// two slots where there are two. choose sees the head of the stream and may decline it (ok false).
func (r *runner) pipe(ctx context.Context, from command, choose func(head []byte) (to command, ok bool), head int) error {
	weight := min(2, r.width)
	if err := r.slots.Acquire(ctx, weight); err != nil {
		return fmt.Errorf("wait for a git slot: %w", err)
	}
	defer r.slots.Release(weight)
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer reader.Close()
	fromEnd := make(chan error, 1)
	go func() {
		_, err := r.start(ctx, from, writer)
		writer.Close()
		fromEnd <- err
	}()
	first := make([]byte, head)
	n, readErr := io.ReadFull(reader, first)
	if readErr == nil {
		if to, ok := choose(first); ok {
			to.stdin = io.MultiReader(bytes.NewReader(first[:n]), reader)
			_, err = r.start(ctx, to, io.Discard)
		} else {
			_, err = io.Copy(io.Discard, reader) // so that the sender ends well
		}
	}
	reader.Close()
	if senderErr := <-fromEnd; err == nil {
		err = cmp.Or(senderErr, readErr)
	}
	return err
}

// environment builds the whole environment of a git command from the allowed part of ours.
func environment(inherited []string, c command) []string {
	env := make([]string, 0, 48)
	wide := c.network && (c.options.CredentialHelper != "" || c.options.UserConfig)
	for _, kv := range inherited {
		name, _, _ := strings.Cut(kv, "=")
		if inheritable(name, wide) {
			env = append(env, kv)
		}
	}
	env = append(env,
		"LC_ALL=C", "GIT_PAGER=cat", "PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
		"GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND="+sshCommand, "GIT_OPTIONAL_LOCKS=0",
		// No ext:: and no helper of the machine: what a URL names is never a command.
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_ATTR_NOSYSTEM=1", "GIT_CONFIG_NOSYSTEM=1",
	)
	if !c.options.UserConfig {
		env = append(env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	if !c.options.LFS {
		env = append(env, "GIT_LFS_SKIP_SMUDGE=1")
	}
	if c.gitDir != "" {
		env = append(env, "GIT_DIR="+c.gitDir)
	}
	if c.workTree != "" {
		env = append(env, "GIT_WORK_TREE="+c.workTree)
	}
	if c.index != "" {
		env = append(env, "GIT_INDEX_FILE="+c.index)
	}
	if c.gitDir == "" && c.dir != "" {
		env = append(env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir))
	}
	pairs := configuration(c)
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(pairs)))
	for i, kv := range pairs {
		key, value, _ := strings.Cut(kv, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return append(env, c.env...)
}

// sshCommand asks nobody anything, and gives a host up that is silent for a minute.
const sshCommand = "ssh -o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"

// stalled ends a transfer by http in which nothing moves for two minutes: git's servers send something
// every five seconds while they work, and by default a cut connection is waited for without end.
var stalled = []string{"http.lowSpeedLimit=1", "http.lowSpeedTime=120"}

// configuration is what every command is told instead of the system's and the user's configuration.
func configuration(c command) []string {
	pairs := []string{
		"core.hooksPath=" + os.DevNull, "core.quotePath=false", "core.fsmonitor=false", "core.untrackedCache=false",
		"gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false",
		"submodule.recurse=false", "fetch.recurseSubmodules=false", "push.recurseSubmodules=no", "core.logAllRefUpdates=false",
		"init.defaultBranch=main",
	}
	if !c.options.UserConfig {
		// These two have a place of their own below HOME, whatever GIT_CONFIG_GLOBAL says.
		pairs = append(pairs, "core.excludesFile="+os.DevNull, "core.attributesFile="+os.DevNull)
	}
	if !c.options.Sign {
		pairs = append(pairs, "commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false")
	}
	if c.network {
		pairs = append(pairs, stalled...)
	}
	if c.options.CredentialHelper != "" {
		pairs = append(pairs, "credential.helper=", "credential.helper="+c.options.CredentialHelper)
	}
	if c.options.LFS {
		pairs = append(pairs, "filter.lfs.clean=git-lfs clean -- %f", "filter.lfs.smudge=git-lfs smudge -- %f",
			"filter.lfs.process=git-lfs filter-process", "filter.lfs.required=true")
	}
	return append(pairs, c.config...)
}

// inheritable says whether a variable of our own environment reaches git. Nothing named GIT_* or
// TEMPORAL_* ever does; a credential helper may need variables of its own, so commands that talk to
// another repository get the rest where one is configured.
func inheritable(name string, wide bool) bool {
	if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "TEMPORAL_") {
		return false
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "XDG_CONFIG_HOME",
		"XDG_RUNTIME_DIR", "GNUPGHOME", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
		return true
	}
	return wide
}

// headWriter keeps the first limit bytes and counts nothing else.
type headWriter struct {
	limit int
	buf   bytes.Buffer
}

func (w *headWriter) Write(p []byte) (int, error) {
	if room := w.limit - w.buf.Len(); room > 0 {
		w.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (w *headWriter) String() string { return w.buf.String() }
