// Package config finds what the programs need from their environment: the
// connection to the Temporal server (the ecosystem's own variables and
// profiles), the state folder, the host's identity and the artifact store.
//
// It holds no settings of a run; those stand in plan and pools files.
package config

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// ErrServerUnreachable says that no Temporal server answers at the address.
var ErrServerUnreachable = errors.New("server unreachable")

// Connection says where the Temporal server is; empty fields come from the
// environment and profiles that the temporal CLI uses too.
type Connection struct {
	Address   string
	Namespace string
	// Configure changes the client's options at the end, for telemetry; nil: nothing.
	Configure func(*client.Options) error
	CodecKeys string // file with the keys of the payload codec; empty: from the environment, where none need be
}

// dialTimeout bounds the first contact, so that a command without a server answers soon.
const dialTimeout = 5 * time.Second

// Options returns the client options for the connection.
func (c Connection) Options(logger *slog.Logger) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return client.Options{}, fmt.Errorf("load connection settings: %w", err)
	}
	if c.Address != "" {
		options.HostPort = c.Address
	}
	if c.Namespace != "" {
		options.Namespace = c.Namespace
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = log.NewStructuredLogger(logger)
	if err := c.encrypt(&options); err != nil {
		return client.Options{}, err
	}
	// A short back-off, so that work goes on within a second or two of a server restart.
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
	if loopback(options.HostPort) {
		// On one machine both ends only pay for compressing small messages: a
		// twentieth of their processor time.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	if c.Configure != nil {
		if err := c.Configure(&options); err != nil {
			return client.Options{}, err
		}
	}
	return options, nil
}

// loopback reports whether an address is on this machine for sure.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Dial connects and makes sure that the server answers. The error is
// ErrServerUnreachable, with the address and what to do, when nothing does.
func (c Connection) Dial(ctx context.Context, logger *slog.Logger) (client.Client, error) {
	options, err := c.Options(logger)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	connected, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("%w: nothing answers at %s: start one with `starter dev`, or set TEMPORAL_ADDRESS or --address",
			ErrServerUnreachable, options.HostPort)
	}
	return connected, nil
}

// StateDir returns the state folder: the flag, else $XDG_STATE_HOME/mendflow,
// else ~/.local/state/mendflow. It is absolute and exists.
func StateDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find state folder: %w: give --state-dir", err)
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "mendflow")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find state folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make state folder: %w", err)
	}
	return dir, nil
}

// HostID returns the identity of this host, made once in the state folder, so
// that a restarted container is the same host. It is a fit part of a queue name.
func HostID(stateDir string) (string, error) {
	path := filepath.Join(stateDir, "host-id")
	for range 2 {
		data, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(data)); err == nil && id != "" {
			return id, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("read host id: %w", err)
		}
		if err := writeHostID(path); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("read host id: %s is empty: remove it", path)
}

func writeHostID(path string) error {
	name, err := os.Hostname()
	if err != nil {
		name = "host"
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	id := hostWord(name) + "-" + hex.EncodeToString(random)
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temp, []byte(id+"\n"), 0o600); err != nil {
		return fmt.Errorf("write host id: %w", err)
	}
	defer func() { _ = os.Remove(temp) }()
	// A link fails when another process was first; its id then counts.
	return os.Link(temp, path)
}

func hostWord(name string) string {
	name = strings.ToLower(name)
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name)
	word = strings.TrimLeft(word, "-")
	return cmp.Or(strings.TrimRight(word[:min(len(word), 32)], "-"), "host")
}

// ArtifactsURL returns where artifacts are kept: the flag, else
// MENDFLOW_ARTIFACTS, else a folder in the state folder. A plain path is taken as a folder.
func ArtifactsURL(flag, stateDir string) (string, error) {
	where := flag
	if where == "" {
		where = os.Getenv("MENDFLOW_ARTIFACTS")
	}
	if where == "" {
		where = filepath.Join(stateDir, "artifacts")
	}
	if strings.Contains(where, "://") {
		return where, nil
	}
	abs, err := filepath.Abs(where)
	if err != nil {
		return "", fmt.Errorf("find artifact store: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("make artifact store: %w", err)
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

// ArtifactsShared reports whether an artifact store, as [ArtifactsURL] returns
// it, lies outside of the state folder: then this host need not be the only one.
func ArtifactsShared(where, stateDir string) bool {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "file" {
		return true
	}
	rel, err := filepath.Rel(stateDir, u.Path)
	return err != nil || !filepath.IsLocal(rel)
}
