package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Runner starts one command in the tree and waits for its end. internal/process
// is behind it: process group, sandbox without secrets, environment, masking.
type Runner interface {
	// Run returns how the command ended. An error means that nothing can be said
	// about the command (the host's fault, ctx over), never that it failed: a
	// program that does not exist is exit code 127 and a line in the output, as in a shell.
	Run(ctx context.Context, job Job) (Exit, error)
}

// Job is one command to start.
type Job struct {
	Command plan.Command
	Dir     string        // from the root of the tree; empty: the root
	Timeout time.Duration // 0: none
	Output  io.Writer     // receives standard output and standard error as they come
}

// Exit is how a command ended.
type Exit struct {
	Code     int // of a signal: 128 + its number
	TimedOut bool
	Elapsed  time.Duration
}

// Log receives the output of one command and becomes an artifact. Discard is
// called instead of Commit when the run could not be finished.
type Log interface {
	io.Writer
	Commit(ctx context.Context) (contract.Artifact, error)
	Discard()
}

// Request is one gate to run.
type Request struct {
	Commands []contract.GateCommand
	Commit   string        // what the tree is a checkout of; named in the result
	Root     string        // absolute path of the tree, to make printed paths relative
	Tree     fs.FS         // the tree, for JUnit files; nil: none are read. Use os.Root.FS: the files are written by code under test
	Timeout  time.Duration // per command; 0: none
	Baseline *Result       // of the base, when its failures are accepted; nil: every failure counts
	All      bool          // run every layer even if one is red: for a baseline, which later gates are compared with
	Once     bool          // no re-run of the first red: a step of a bisect
	Residual []string      // surfaces that the commands do not cover (Discovery)
	// OpenLog opens the log of a run of a command, named like "gate-02" or "gate-02-again"; nil: no logs are kept.
	OpenLog func(ctx context.Context, name string) (Log, error)
}

// Run runs a gate: the layers in order, every command of a layer, and nothing
// after the first red layer. The first red of the gate is run once more on the
// same tree. An error means that the gate has no result: the runner or the log failed, or ctx is over.
func Run(ctx context.Context, runner Runner, req Request) (Result, error) {
	g := &gateRun{runner: runner, req: req}
	result := Result{Kind: KindExecuted, Commit: req.Commit, Commands: make([]CommandResult, len(req.Commands))}
	residual := slices.Clone(req.Residual)
	red := false
	for _, layer := range layers(req.Commands) {
		for _, i := range layer {
			if red && !req.All {
				result.Commands[i] = CommandResult{GateCommand: req.Commands[i], Status: StatusSkipped}
				continue
			}
			c, uncovered, err := g.command(ctx, i)
			if err != nil {
				return Result{}, fmt.Errorf("run %s: %w", Name(req.Commands[i]), err)
			}
			result.Commands[i] = c
			residual = append(residual, uncovered...)
		}
		red = verdictOf(result.Commands) == VerdictRed
	}
	for _, c := range result.Commands {
		result.Seconds += c.Seconds
	}
	slices.Sort(residual)
	result.Residual = slices.Compact(residual)
	result.Verdict = verdictOf(result.Commands)
	return result, nil
}

type gateRun struct {
	runner Runner
	req    Request
	rerun  bool // the one re-run of this gate was taken
}

// command runs one command, again if it is the gate's first red, and judges it.
func (g *gateRun) command(ctx context.Context, i int) (CommandResult, []string, error) {
	c := g.req.Commands[i]
	base := g.req.Baseline.observation(c)
	result, seen, err := g.once(ctx, c, fmt.Sprintf("gate-%02d", i+1))
	if err != nil {
		return CommandResult{}, nil, err
	}
	judged := Judge(seen, base)
	if judged.Status == StatusRed && !g.rerun && !g.req.Once {
		g.rerun = true
		first := result
		result, seen, err = g.once(ctx, c, fmt.Sprintf("gate-%02d-again", i+1))
		if err != nil {
			return CommandResult{}, nil, err
		}
		result.Runs, result.Seconds, result.FirstLog = 2, result.Seconds+first.Seconds, first.Log
		if judged = Judge(seen, base); judged.Status != StatusRed {
			judged.Status = StatusFlaky
			result.Tail = first.Tail // the green run's output explains nothing
		}
	}
	result.Status, result.New = judged.Status, judged.New
	uncovered := make([]string, len(judged.Residual))
	for k, text := range judged.Residual {
		uncovered[k] = Name(c) + ": " + text
	}
	return result, uncovered, nil
}

// observation finds the base's run of a command; nil when there is none.
func (r *Result) observation(c contract.GateCommand) *Observation {
	if r == nil {
		return nil
	}
	for _, b := range r.Commands {
		if b.Runs > 0 && b.Dir == c.Dir && b.Command.Shell == c.Command.Shell && slices.Equal(b.Command.Argv, c.Command.Argv) {
			return &Observation{ExitCode: b.ExitCode, TimedOut: b.TimedOut, Failures: b.Failures}
		}
	}
	return nil
}

// once runs a command one time.
func (g *gateRun) once(ctx context.Context, c contract.GateCommand, name string) (_ CommandResult, _ Observation, err error) {
	var log Log
	kept := &tail{limit: maxKept}
	var out io.Writer = kept
	if g.req.OpenLog != nil {
		if log, err = g.req.OpenLog(ctx, name); err != nil {
			return CommandResult{}, Observation{}, fmt.Errorf("open log: %w", err)
		}
		defer func() {
			if err != nil {
				log.Discard()
			}
		}()
		out = io.MultiWriter(log, kept)
	}
	exit, seen, err := g.start(ctx, c, out, kept)
	if err != nil {
		return CommandResult{}, Observation{}, err
	}
	text, _ := kept.text()
	result := CommandResult{
		GateCommand: c, ExitCode: exit.Code, TimedOut: exit.TimedOut, Runs: 1,
		Seconds: exit.Elapsed.Seconds(), Tail: plainTail(text, TailRunes), Failures: seen.Failures,
	}
	if log != nil {
		artifact, err := log.Commit(ctx)
		if err != nil {
			return CommandResult{}, Observation{}, fmt.Errorf("store log: %w", err)
		}
		result.Log = &artifact
	}
	return result, seen, nil
}

// maxKept bounds the output that is held for the tail and for findings; more than that is not compared.
const maxKept = 2 << 20

// start runs the command and reads its failure ids by the way that suits it.
func (g *gateRun) start(ctx context.Context, c contract.GateCommand, out io.Writer, kept *tail) (Exit, Observation, error) {
	job := Job{Command: c.Command, Dir: c.Dir, Timeout: g.req.Timeout, Output: out}
	argv, events := withJSON(c)
	var reader *testReader
	var before reportFiles
	if events {
		reader = newTestReader(out, slices.Contains(argv, "-v"), g.req.Root, c.Dir)
		job.Command, job.Output = plan.Command{Argv: argv}, reader
	} else if g.req.Tree != nil {
		job.Command = withJUnit(c)
		var err error
		if before, err = listReports(g.req.Tree, c); err != nil {
			return Exit{}, Observation{}, err
		}
	}
	exit, err := g.runner.Run(ctx, job)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Exit{}, Observation{}, err
	}
	seen := Observation{ExitCode: exit.Code, TimedOut: exit.TimedOut}
	if reader != nil {
		if seen.Failures, err = reader.finish(); err != nil {
			return Exit{}, Observation{}, fmt.Errorf("write log: %w", err)
		}
	}
	text, whole := kept.text()
	switch {
	case seen.Green() || exit.TimedOut:
		seen.Failures = Failures{} // a run that was cut short has not said everything
	case reader != nil:
	case isGoFindings(c) && whole:
		seen.Failures = Findings(text, g.req.Root, c.Dir)
	case g.req.Tree != nil:
		// A file that cannot be understood leaves the command without ids, which Judge takes for unknown.
		if f, err := junitFailures(g.req.Tree, c, before, text); err == nil {
			seen.Failures = f
		}
	}
	return exit, seen, nil
}

func isGoFindings(c contract.GateCommand) bool {
	words := program(c.Command)
	return len(words) > 1 && path.Base(words[0]) == "go" && (words[1] == "build" || words[1] == "vet") && !slices.Contains(words, "-json")
}

// ErrNoCommands is returned by Commands when a plan names none and discovery finds none.
var ErrNoCommands = errors.New("find gate commands: the plan names none and none are discovered at the base")

// Commands chooses the commands of a run: none when the plan disables the gate, those of
// the plan, else the discovered ones.
func Commands(g plan.Gate, d Discovery) ([]contract.GateCommand, error) {
	switch {
	case g.Disabled:
		return nil, nil
	case len(g.Commands) > 0:
		return FromPlan(g.Commands), nil
	case len(d.Commands) == 0:
		return nil, ErrNoCommands
	}
	return slices.Clone(d.Commands), nil
}
