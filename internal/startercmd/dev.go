package startercmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mendflow/internal/process"
)

// devOptions are the flags of `starter dev`.
type devOptions struct {
	port, uiPort int
	codecPort    int
	headless     bool
	memory       bool
	pools        string
	slots        int
}

func (a *app) devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the embedded server, its Web UI and one worker in the foreground",
		Long: "Run the embedded Temporal server, its Web UI and one worker on this machine, in the foreground.\n" +
			"Runs and their history are kept in <state>/dev.db; Ctrl-C stops both programs and loses nothing.",
		Example: "  starter dev --pools pools.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.port, "port", 7233, "port of the server; 0: a free one")
	cmd.Flags().IntVar(&o.uiPort, "ui-port", 8233, "port of the Web UI; 0: a free one")
	cmd.Flags().IntVar(&o.codecPort, "codec-port", 8234, "port at which the Web UI has payloads decrypted, where there are codec keys; 0: a free one")
	cmd.Flags().BoolVar(&o.headless, "headless", false, "no Web UI")
	cmd.Flags().BoolVar(&o.memory, "memory", false, "keep nothing after the end")
	cmd.Flags().StringVar(&o.pools, "pools", "", "the worker's pools file (default: what each run's own pools file says)")
	cmd.Flags().IntVar(&o.slots, "slots", 0, "attempts at once on this machine; 0: as many as the pools allow")
	return cmd
}

// devReady is the ready line of the embedded server.
type devReady struct {
	Ready     bool   `json:"ready"`
	Address   string `json:"address"`
	UI        string `json:"ui"`
	Namespace string `json:"namespace"`
	DB        string `json:"db"`
}

// dev starts the server, then the worker, and stops the worker first.
func (a *app) dev(ctx context.Context, o devOptions) error {
	state, err := a.state()
	if err != nil {
		return err
	}
	codec, err := a.openCodec(ctx, o)
	if err != nil {
		return err
	}
	defer codec.close()
	server, ready, err := a.startServer(ctx, o, state, codec.url())
	if err != nil {
		return err
	}
	defer server.Stop(stopTimeout)
	codec.serve(ready.UI)
	worker, err := a.startWorker(o, state, ready)
	if err != nil {
		return err
	}
	defer worker.Stop(stopTimeout)
	if err := a.schedule(ctx, ready); err != nil {
		return err
	}
	if err := a.sayReady(ready, state); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err, "stopping: the worker first, then the server")
		return nil
	case <-server.Ended():
		return fmt.Errorf("the server ended: %w", server.Err())
	case <-worker.Ended():
		return fmt.Errorf("the worker ended: %w", worker.Err())
	}
}

// schedule starts the scheduler of a new server, so that it is there to be seen and ordered about.
func (a *app) schedule(ctx context.Context, ready devReady) error {
	connection := a.connection
	connection.Address, connection.Namespace = ready.Address, ready.Namespace
	c, err := connection.Dial(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer c.Close()
	return ensureScheduler(ctx, c)
}

func (a *app) sayReady(ready devReady, state string) error {
	if a.json {
		return json.NewEncoder(a.Out).Encode(ready)
	}
	kept := ready.DB
	if kept == "" {
		kept = "in memory only"
	}
	fmt.Fprintf(a.Out, "mendflow is up\n  server   %s (namespace %s)\n  web ui   %s\n  history  %s\n  state    %s\n"+
		"start a run with: starter start --address %s --repo … --plan … --pools …\nstop with Ctrl-C\n",
		ready.Address, ready.Namespace, orNone(ready.UI), kept, state, ready.Address)
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// startServer starts the embedded server and waits for its ready line.
func (a *app) startServer(ctx context.Context, o devOptions, state, codec string) (*process.Daemon, devReady, error) {
	var ready devReady
	program, err := sibling("devserver")
	if err != nil {
		return nil, ready, err
	}
	args := []string{"--json", "--stop-with-parent", "--port", strconv.Itoa(o.port), "--ui-port", strconv.Itoa(o.uiPort)}
	if a.connection.Namespace != "" {
		args = append(args, "--namespace", a.connection.Namespace)
	}
	if !o.memory {
		args = append(args, "--db", filepath.Join(state, "dev.db"))
	}
	if o.headless {
		args = append(args, "--headless")
	}
	if codec != "" {
		args = append(args, "--codec-endpoint", codec)
	}
	out, in := io.Pipe()
	server, err := process.StartDaemon(program, args, in, a.Err)
	if err != nil {
		return nil, ready, err
	}
	line := make(chan devReady, 1)
	go func() {
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			var r devReady
			if json.Unmarshal(scanner.Bytes(), &r) == nil && r.Ready {
				line <- r
			}
		}
	}()
	select {
	case ready := <-line:
		return server, ready, nil
	case <-server.Ended():
		return nil, ready, fmt.Errorf("start server: %w", server.Err())
	case <-ctx.Done():
		server.Stop(stopTimeout)
		return nil, ready, ctx.Err()
	}
}

func (a *app) startWorker(o devOptions, state string, ready devReady) (*process.Daemon, error) {
	program, err := sibling("worker")
	if err != nil {
		return nil, err
	}
	args := []string{"--address", ready.Address, "--namespace", ready.Namespace, "--state-dir", state, "--slots", strconv.Itoa(o.slots), "--drain-grace", "0s"}
	if o.pools != "" {
		args = append(args, "--pools", o.pools)
	}
	if a.artifacts != "" {
		args = append(args, "--artifacts", a.artifacts)
	}
	if a.connection.CodecKeys != "" {
		args = append(args, "--codec-keys", a.connection.CodecKeys)
	}
	return process.StartDaemon(program, args, a.Err, a.Err)
}

// sibling finds a program of ours beside this one, else on the PATH.
func sibling(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	path, err := process.LookPath(name, os.TempDir(), os.Environ())
	if err != nil {
		return "", fmt.Errorf("find program %s: it is neither beside starter nor on the PATH: run `make build`", name)
	}
	return path, nil
}

// stopTimeout is how long a program may take to end before it is killed; a
// worker interrupts its attempts and salvages their work in that time.
const stopTimeout = 30 * time.Second
