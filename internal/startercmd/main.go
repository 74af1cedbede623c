package startercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"golang.org/x/term"

	"mendflow/internal/artifacts"
	"mendflow/internal/config"
)

// Main runs the program with the process's own arguments and streams and exits.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// Streams are what a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Run executes one command line and returns its exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	a := &app{Streams: streams}
	root := a.command()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.ran {
		err = usage("%s\nsee: starter --help", err.Error())
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	if errors.Is(err, config.ErrServerUnreachable) {
		err = &exitError{code: ExitUnreachable, err: err}
	}
	code, silent := codeOf(err)
	if !silent {
		fmt.Fprintln(streams.Err, "starter:", err)
	}
	return code
}

// app is one invocation: its streams and the flags that every command has.
type app struct {
	Streams
	connection config.Connection
	stateDir   string
	artifacts  string
	json       bool
	verbose    bool
	requestID  string    // of an operator's order
	snap       *snapshot // what `start --include-uncommitted` starts from
	ran        bool      // a command's own code began: what fails now is no usage fault
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "starter",
		Short:         "Repair git repositories with coding agents, durably",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// Cobra itself looks at these after this hook: what they find is a usage fault too.
			if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return err
			}
			a.ran = true
			return config.RefuseInsideAttempt()
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.connection.Address, "address", "", "Temporal server (default: the temporal CLI's own settings, else 127.0.0.1:7233)")
	flags.StringVar(&a.connection.Namespace, "namespace", "", "Temporal namespace")
	flags.StringVar(&a.connection.CodecKeys, "codec-keys", "", "`file` with the keys of the payload codec (default: $MENDFLOW_CODEC_KEYS, else $MENDFLOW_CODEC_KEYS_FILE, else none)")
	flags.StringVar(&a.stateDir, "state-dir", "", "state folder (default: $XDG_STATE_HOME/mendflow)")
	flags.StringVar(&a.artifacts, "artifacts", "", "artifact store, a folder or URL (default: $MENDFLOW_ARTIFACTS, else <state>/artifacts)")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.BoolVar(&a.verbose, "verbose", false, "log what is done")
	for _, add := range []func() *cobra.Command{
		a.devCommand, a.setupCommand, a.doctorCommand, a.planCommand, a.startCommand, a.schedulerCommand,
		a.runsCommand, a.watchCommand, a.statusCommand, a.nodesCommand, a.logsCommand, a.reportCommand, a.diffCommand,
		a.explainCommand, a.pauseCommand, a.resumeCommand, a.cancelCommand, a.triageCommand, a.answerCommand, a.gateCommand, a.publishCommand, a.recoverCommand, a.quiesceCommand,
		a.poolsCommand, a.nodeCommand, a.budgetCommand, a.classifyCommand, a.gcCommand, a.codecCommand, a.versionCommand,
	} {
		root.AddCommand(add())
	}
	return root
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelError
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// dial connects to the server; the caller closes the client.
func (a *app) dial(ctx context.Context) (client.Client, error) {
	return a.connection.Dial(ctx, slog.New(slog.DiscardHandler))
}

// state returns the state folder.
func (a *app) state() (string, error) { return config.StateDir(a.stateDir) }

// store opens the artifact store; the caller closes it.
func (a *app) store(ctx context.Context) (*artifacts.Store, error) {
	state, err := a.state()
	if err != nil {
		return nil, err
	}
	where, err := config.ArtifactsURL(a.artifacts, state)
	if err != nil {
		return nil, err
	}
	return artifacts.Open(ctx, where)
}

// terminal reports whether people read along: progress is then redrawn in place.
func (a *app) terminal() bool {
	f, ok := a.Out.(*os.File)
	return ok && !a.json && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// columns is how wide the terminal is now.
func (a *app) columns() int {
	const usual = 80
	if f, ok := a.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return usual
}
