package startercmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mendflow/internal/codec"
)

// How long a request to the codec endpoint, and its stop, may take.
const (
	codecRequestTimeout = 10 * time.Second
	codecStopTimeout    = 2 * time.Second
)

func (a *app) codecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Make keys for encrypted histories, and decrypt them for the Web UI",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.codecKeyCommand(), a.codecServeCommand())
	return cmd
}

func (a *app) codecKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key ID",
		Short: "Print a new key, as a line of a key file",
		Long: "Print a new key, as a line of a key file. The first key of a file encrypts, all of them decrypt:\n" +
			"to exchange keys give every worker and starter the file with the new key added last, then with the new key first.",
		Example: "  (umask 077; starter codec key 2026-11 >codec-keys)\n  starter dev --codec-keys codec-keys",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			line, err := codec.NewKey(args[0])
			if err != nil {
				return usage("%v", err)
			}
			fmt.Fprintln(a.Out, line)
			return nil
		},
	}
}

func (a *app) codecServeCommand() *cobra.Command {
	var listen string
	var origins []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Decrypt payloads for the Web UI and the temporal CLI",
		Long: "Decrypt payloads for the Web UI and the temporal CLI. Who can reach the address can read every history:\n" +
			"keep it on loopback, or behind a proxy that asks who is there.",
		Example: "  starter codec serve --codec-keys codec-keys --ui http://127.0.0.1:8233\n" +
			"  temporal workflow show --codec-endpoint http://127.0.0.1:8234 -w remediation/RUN",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.codecServe(cmd.Context(), listen, origins) },
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8234", "address to listen on")
	cmd.Flags().StringArrayVar(&origins, "ui", []string{"http://127.0.0.1:8233"}, "`ORIGIN` of a Web UI whose pages may ask (repeatable)")
	return cmd
}

func (a *app) codecServe(ctx context.Context, listen string, origins []string) error {
	for _, origin := range origins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Path != "" {
			return usage("--ui %q is not scheme://host:port", origin)
		}
	}
	c, err := a.connection.Codec()
	if err != nil {
		return err
	}
	if c.Empty() {
		return usage("there are no codec keys: give --codec-keys, or set MENDFLOW_CODEC_KEYS")
	}
	e, err := listenCodec(ctx, c, listen)
	if err != nil {
		return err
	}
	defer e.close()
	e.serve(origins...)
	fmt.Fprintf(a.Out, "codec ready: endpoint=%s ui=%v\n", e.url(), origins)
	select {
	case <-ctx.Done():
		return nil
	case err := <-e.failed:
		return fmt.Errorf("serve codec: %w", err)
	}
}

// codecEndpoint is a listening codec endpoint; nil is none.
type codecEndpoint struct {
	codec    *codec.Codec
	listener net.Listener
	server   *http.Server
	failed   chan error
}

// openCodec listens where the Web UI of `starter dev` will ask; nil without keys or Web UI.
func (a *app) openCodec(ctx context.Context, o devOptions) (*codecEndpoint, error) {
	c, err := a.connection.Codec()
	if err != nil || c.Empty() || o.headless {
		return nil, err
	}
	return listenCodec(ctx, c, net.JoinHostPort("127.0.0.1", strconv.Itoa(o.codecPort)))
}

func listenCodec(ctx context.Context, c *codec.Codec, address string) (*codecEndpoint, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve codec: %w", err)
	}
	return &codecEndpoint{codec: c, listener: listener, failed: make(chan error, 1)}, nil
}

// url is what the Web UI is told.
func (e *codecEndpoint) url() string {
	if e == nil {
		return ""
	}
	return "http://" + e.listener.Addr().String()
}

// serve answers pages of the given origins from now on.
func (e *codecEndpoint) serve(origins ...string) {
	if e == nil {
		return
	}
	e.server = &http.Server{Handler: e.codec.Endpoint(origins...), ReadTimeout: codecRequestTimeout, WriteTimeout: codecRequestTimeout}
	go func() {
		if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
			e.failed <- err
		}
	}()
}

func (e *codecEndpoint) close() {
	if e == nil {
		return
	}
	if e.server == nil {
		_ = e.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), codecStopTimeout)
	defer cancel()
	_ = e.server.Shutdown(ctx) // what is not answered by then is cut off by the exit
}
