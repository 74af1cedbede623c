package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"

	// startTimeout is for a start on a slow, busy machine; it takes well under a second on an idle one.
	startTimeout = 60 * time.Second
	// stopTimeout is how long an orderly stop may take. What is left after it is ended by the exit, which loses nothing.
	stopTimeout = 4 * time.Second
)

// serve runs the server until ctx ends.
func serve(ctx context.Context, opts options, std streams) (err error) {
	if opts.stopWithParent {
		if ctx, err = untilParentEnds(ctx); err != nil {
			return err
		}
	}
	tuneRuntime()
	logger := newLogger(std.err, opts.logLevel)

	db, err := openStore(ctx, opts, logger)
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() { err = errors.Join(err, db.close()) }()
	chosen, err := choosePorts(opts)
	if err != nil {
		return err
	}
	if !opts.ip.IsLoopback() {
		logger.out.Warn("listening beyond loopback without authentication", "ip", opts.ip.String())
	}
	server, err := startServer(ctx, opts, db, chosen, logger)
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() {
		logger.silence()
		if stopServer(server) {
			err = errors.Join(err, db.checkpoint(logger))
		}
	}()
	return stopped(ctx, serveUI(ctx, opts, db, chosen, std))
}

// serveUI adds the Web UI to a started server, says that everything is ready, and waits for ctx to end.
func serveUI(ctx context.Context, opts options, db store, p ports, std streams) error {
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	ready := readyLine{Ready: true, Address: hostPort(opts.ip, p.frontend), Namespace: opts.namespace, Database: db.name()}
	if err := awaitServer(startCtx, ready.Address, opts.namespace); err != nil {
		return err
	}
	if !opts.headless {
		ui := startUI(opts, p.ui, ready.Address)
		defer ui.Stop()
		ready.UI = "http://" + hostPort(opts.ip, p.ui)
		if err := awaitUI(startCtx, ready.UI); err != nil {
			return err
		}
	}
	if err := ready.write(std.out, opts.json); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// stopped turns the failure of a start that a stop signal cut short into an orderly end.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a start that was cut short by a stop signal is an orderly end
	}
	return err
}

func startServer(ctx context.Context, opts options, db store, p ports, logger *serverLogger) (temporal.Server, error) {
	cfg := serverConfig(opts, db, p)
	if err := seedNamespace(ctx, &cfg.Persistence, opts, logger); err != nil {
		return nil, err
	}
	if err := db.finish(ctx, logger); err != nil {
		return nil, err
	}
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(hostPort(opts.ip, p.frontend)),
		primitives.HistoryService:  static.SingleLocalHost(hostPort(net.ParseIP(internalIP), p.history)),
		primitives.MatchingService: static.SingleLocalHost(hostPort(net.ParseIP(internalIP), p.matching)),
		primitives.WorkerService:   static.SingleLocalHost(hostPort(net.ParseIP(internalIP), p.worker)),
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts), // no gossip between services that share a process
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
		temporal.WithDynamicConfigClient(tuning()),
	)
	if err != nil {
		return nil, fmt.Errorf("build server: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return server, nil
}

// stopServer stops the services in order, but not for longer than a user waits for a prompt.
// It reports whether they all did.
func stopServer(server temporal.Server) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Stop() // it logs its own failures
	}()
	select {
	case <-done:
		return true
	case <-time.After(stopTimeout):
		return false
	}
}

func serverConfig(opts options, db store, p ports) *config.Config {
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	return &config.Config{
		Persistence: db.persistence(),
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled:                true,
				InitialFailoverVersion: 1,
				RPCAddress:             hostPort(opts.ip, p.frontend),
			}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(opts.ip.String(), p.frontend),
			string(primitives.HistoryService):  service(internalIP, p.history),
			string(primitives.MatchingService): service(internalIP, p.matching),
			string(primitives.WorkerService):   service(internalIP, p.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: disabled},
	}
}

func service(ip string, port int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: ip}}
}

// hostPort is the address at which this machine reaches a listener on ip.
func hostPort(ip net.IP, port int) string {
	return net.JoinHostPort(reachableIP(ip), strconv.Itoa(port))
}
