package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/process"
	"mendflow/internal/provider"
	"mendflow/internal/redact"
)

// work renders the prompt, launches the program and judges how it ended.
func (l *launch) work(ctx context.Context) error {
	adapter, err := l.Host.Providers.Lookup(l.pool.Provider)
	if err != nil {
		return err
	}
	req, err := l.request(ctx)
	if err != nil {
		return err
	}
	built, err := adapter.Build(req)
	if err != nil {
		return err
	}
	l.bare = built.OwnSandbox || !l.Host.Confine
	before := l.lookAround(ctx)
	masker := l.Host.maskerFor(l.opened, l.pool)
	logging, done := afterwards(ctx)
	defer done()
	log, err := l.Host.Artifacts.Writer(logging, fmt.Sprintf("runs/%s/nodes/%s/a%d/worker.log", l.in.Run, l.in.Node, l.in.Attempt), masker)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	l.rec.Started = true
	if err := writeRecord(l.dir, l.rec); err != nil {
		log.Abort()
		return err
	}
	l.heart.step("worker")
	l.Host.reach(PointWorkerStarted)
	report, result, err := l.start(ctx, built, adapter.Read(req), log, masker)
	if err == nil && report.Lost && result.Ended != process.EndCancelled {
		req.Session, req.Before = "", contract.Usage{} // the prompt says what is in the tree
		if built, err = adapter.Build(req); err == nil {
			report, result, err = l.start(ctx, built, adapter.Read(req), log, masker)
		}
	}
	ref, closeErr := log.Finish()
	if err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	l.compare(ctx, before)
	l.Host.reach(PointResult)
	stored := contract.Artifact(ref)
	stored.Tail = clipHead(stored.Tail, 300) // the whole log is the artifact; histories carry a glimpse
	l.end.Log = &stored
	return l.judge(adapter, report, result)
}

// logGrace is how long a log may take to be stored after an attempt was
// interrupted: a stopping worker does not wait for longer.
const logGrace = 20 * time.Second

// afterwards is a context that outlives the given one for a while, so that what
// an interrupted worker said, its session above all, is not lost with it.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(logGrace, cancel) })
	return longer, func() { stop(); cancel() }
}

// start is one launch of the program.
func (l *launch) start(ctx context.Context, built provider.Launch, reader provider.Reader, log io.Writer, masker *redact.Masker) (provider.Report, process.Result, error) {
	if err := furnish(built); err != nil {
		return provider.Report{}, process.Result{}, err
	}
	spec, err := l.spec(built, reader)
	if err != nil {
		return provider.Report{}, process.Result{}, err
	}
	spec.Output, spec.Secrets = log, masker
	result, err := process.Run(ctx, spec)
	if err != nil {
		return provider.Report{}, result, fmt.Errorf("run worker: %w", err)
	}
	return reader.Report(), result, nil
}

// furnish makes the folders and files that a launch needs.
func furnish(built provider.Launch) error {
	for _, folder := range built.Folders {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make folder of the program: %w", err)
		}
	}
	for _, file := range built.Files {
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
			return fmt.Errorf("make folder of the program: %w", err)
		}
		if err := os.WriteFile(file.Path, file.Data, 0o600); err != nil {
			return fmt.Errorf("write file of the program: %w", err)
		}
	}
	return nil
}

// spec is the process that a launch becomes.
func (l *launch) spec(built provider.Launch, reader provider.Reader) (process.Spec, error) {
	policy := l.opened.config.Plan.Policy
	env, err := l.environment()
	if err != nil {
		return process.Spec{}, err
	}
	writable, err := folders(append(slices.Clone(l.pool.Writable), built.Writable...))
	if err != nil {
		return process.Spec{}, err
	}
	spec := process.Spec{
		Argv: built.Argv, Shell: built.Shell, Dir: l.tree.Path(), Stdin: built.Stdin,
		Env:        replace(env, built.Env),
		Sandbox:    l.Host.sandbox(false, append(writable, l.tree.Path(), filepath.Join(l.dir, "tmp"), filepath.Join(l.dir, resultFolder))...),
		Mark:       fmt.Sprintf("%s/%s/%s/a%d", l.Host.Mark(), l.in.Run, l.in.Node, l.in.Attempt),
		StopSignal: stopSignal(built.Interrupt),
		Absolute:   time.Duration(policy.AttemptMinutes) * time.Minute,
		Idle:       time.Duration(policy.IdleMinutes) * time.Minute,
	}
	if built.OwnSandbox {
		spec.Sandbox = nil
	}
	session := ""
	spec.OnLine = func(stream process.Stream, line []byte, truncated bool) process.Verdict {
		verdict := reader.Line(stream, line, truncated)
		if now := reader.Session(); now != session { // known to the workflow at once, so that a lost host does not lose it
			session = now
			l.heart.update(func(b *contract.Beat) { b.Session = now })
		}
		return verdict
	}
	return spec, nil
}

// replace sets variables in an environment in which each name stands once.
func replace(env, set []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(env, set...)
}

// environment is what the worker sees: an allow-list, the pool's own names, and where it is.
func (l *launch) environment() ([]string, error) {
	return l.Host.environment(l.pool.Env, filepath.Join(l.dir, "tmp"), false, map[string]string{
		"MENDFLOW_RUN":      l.in.Run,
		"MENDFLOW_NODE":     l.in.Node,
		"MENDFLOW_ATTEMPT":  strconv.Itoa(l.in.Attempt),
		"MENDFLOW_WORKTREE": l.tree.Path(),
		"MENDFLOW_PROMPT":   filepath.Join(l.dir, "prompt.md"),
		"MENDFLOW_RESULT":   l.resultFile(),
	})
}

func stopSignal(interrupt bool) syscall.Signal {
	if interrupt {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

// deliver takes the result out of an agent's last message where it wrote no
// file. What it says is validated as if the agent had written it.
func (l *launch) deliver(report provider.Report) error {
	block, ok := provider.ResultBlock(report.Final)
	if !ok {
		return nil
	}
	f, err := os.OpenFile(l.resultFile(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil // the file counts
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	_, err = f.Write(block)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
