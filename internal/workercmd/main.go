// Package workercmd is the program `worker`: it hosts workflows and activities
// on one machine, and is the only place that wires provider adapters in.
package workercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mendflow/internal/config"
	"mendflow/internal/gitrepo"
	"mendflow/internal/provider/openai"
)

// Exit codes of the program.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitUnreachable = 5
)

// garbagePercent trades memory for processor time: the worker's live heap is a
// few tens of megabytes, and collecting it at every doubling was an eighth of
// what the worker did.
const garbagePercent = 300

// Main runs the program with the process's own arguments and streams and exits.
func Main() {
	openai.RunIfAsked()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	os.Exit(Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// Run executes one command line and returns its exit code. SIGTERM and SIGINT
// stop the worker; a second one stops it faster.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var o options
	ran := false
	cmd := newCommand(&o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ran = true
		if err := config.RefuseInsideAttempt(); err != nil {
			return err
		}
		return serve(cmd.Context(), o, signals, out, slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: o.level()})))
	}
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case !ran:
		fmt.Fprintf(errOut, "worker: %v\nsee: worker --help\n", err)
		return exitUsage
	}
	fmt.Fprintln(errOut, "worker:", err)
	var invalid *invalidError
	switch {
	case errors.As(err, &invalid):
		return exitUsage
	case errors.Is(err, config.ErrServerUnreachable):
		return exitUnreachable
	}
	return exitError
}

// options are the flags of the worker.
type options struct {
	connection config.Connection
	stateDir   string
	artifacts  string
	pools      string
	hostName   string
	slots      int
	diskFloor  uint64 // MiB
	metrics    string
	drain      string
	grace      time.Duration
	verbose    bool
}

func (o *options) level() slog.Level {
	if o.verbose {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

func newCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Host workflows and activities",
		Long: "Host workflows and activities on this machine. A worker serves the pools of its pools file;\n" +
			"without one it serves workflows, git and gates only.",
		Example:       "  worker --pools pools.yaml --slots 4",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(*cobra.Command, []string) error { return o.checkDrain() },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.connection.Address, "address", "", "Temporal server (default: the temporal CLI's own settings, else 127.0.0.1:7233)")
	flags.StringVar(&o.connection.Namespace, "namespace", "", "Temporal namespace")
	flags.StringVar(&o.connection.CodecKeys, "codec-keys", "", "`file` with the keys of the payload codec (default: $MENDFLOW_CODEC_KEYS, else $MENDFLOW_CODEC_KEYS_FILE, else none)")
	flags.StringVar(&o.stateDir, "state-dir", "", "state folder (default: $XDG_STATE_HOME/mendflow)")
	flags.StringVar(&o.artifacts, "artifacts", "", "artifact store, a folder or URL (default: $MENDFLOW_ARTIFACTS, else <state>/artifacts)")
	flags.StringVar(&o.pools, "pools", "", "pools file: the pools that this worker serves")
	flags.StringVar(&o.hostName, "host-name", "", "identity of this host (default: made once in the state folder)")
	flags.IntVar(&o.slots, "slots", 0, "attempts at once on this host; 0: as many as its pools allow")
	flags.Uint64Var(&o.diskFloor, "disk-floor", gitrepo.DiskFloor>>20, "start no attempt while fewer MiB are free in the state folder")
	flags.StringVar(&o.metrics, "metrics-address", "", "serve Prometheus metrics at host:port/metrics; OTEL_* variables ask for traces and metrics by OTLP")
	flags.StringVar(&o.drain, "drain", drainInterrupt, "what running attempts do when the worker is asked to stop: interrupt (their work is kept) or finish")
	flags.DurationVar(&o.grace, "drain-grace", defaultGrace, "how long attempts may still run before they are interrupted")
	flags.BoolVar(&o.verbose, "verbose", false, "log what is done")
	return cmd
}

// invalidError marks an input of the user's that cannot be used.
type invalidError struct{ err error }

func (e *invalidError) Error() string { return e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }
