package workercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/sdk/client"

	"mendflow/activities"
	"mendflow/internal/artifacts"
	"mendflow/internal/config"
	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/gitrepo"
	"mendflow/internal/process"
	"mendflow/internal/telemetry"
)

// serve runs the worker until a signal stops it.
func serve(ctx context.Context, o options, signals <-chan os.Signal, out io.Writer, log *slog.Logger) error {
	state, err := config.StateDir(o.stateDir)
	if err != nil {
		return err
	}
	unlock, err := lockState(ctx, state)
	if err != nil {
		return err
	}
	defer unlock()
	pools, err := servedPools(o.pools)
	if err != nil {
		return err
	}
	host, err := openHost(ctx, o, state, pools, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := host.Git.Close(); err != nil {
			log.Warn("close git store", "error", err)
		}
		_ = host.Artifacts.Close()
	}()
	if err := clearHost(ctx, host); err != nil {
		return err
	}
	telling, err := telemetry.Start(ctx, telemetry.Settings{Service: "mendflow-worker", MetricsAddress: o.metrics, Log: log})
	if err != nil {
		return err
	}
	defer func() {
		if err := telling.Close(); err != nil {
			log.Warn("end telemetry", "error", err)
		}
	}()
	dial := o.connection
	dial.Configure = telling.Configure
	connected, err := dial.Dial(ctx, log)
	if err != nil {
		return err
	}
	defer connected.Close()
	options, err := dial.Options(log)
	if err != nil {
		return err
	}
	if err := telling.WatchRuns(connected, options.Namespace); err != nil {
		return err
	}
	queues := newQueues(connected, activitySet(host, connected, options.Namespace), pools, o.slots)
	if err := queues.start(); err != nil {
		return err
	}
	if address := telling.Address(); address != "" {
		fmt.Fprintf(out, "worker metrics: http://%s/metrics\n", address)
	}
	fmt.Fprintf(out, "worker ready: host=%s state=%s pools=%s\n", host.ID, state, strings.Join(poolIDs(pools), ","))
	end := &drainer{host: host, finish: o.drain == drainFinish, grace: o.grace, signals: signals, log: log}
	select {
	case <-ctx.Done():
	case <-signals:
	case err := <-queues.failed:
		end.finish, end.grace = false, 0
		end.stop(queues)
		return err
	}
	end.stop(queues)
	return nil
}

// How long a worker waits for the lock of its state folder, and how often it tries.
const (
	lockPatience = 5 * time.Second
	lockRetry    = 50 * time.Millisecond
)

// lockState keeps two workers from sharing a state folder: they would take each
// other's attempts for left-overs.
// A program that a killed worker was just starting holds its lock for a moment longer.
func lockState(ctx context.Context, state string) (func(), error) {
	lock := flock.New(filepath.Join(state, "worker.lock"))
	patience, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	ok, err := lock.TryLockContext(patience, lockRetry)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("lock state folder: another worker uses %s: stop it, or give --state-dir", state)
	}
	return func() { _ = lock.Unlock() }, nil
}

// servedPools reads this worker's own pools file.
func servedPools(path string) ([]contract.Pool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &invalidError{fmt.Errorf("read pools: %w", err)}
	}
	file, faults := dispatch.ParsePools(path, data)
	if err := faults.Err(); err != nil {
		return nil, &invalidError{err}
	}
	if err := CheckOptions(path, file.Pools); err != nil {
		return nil, &invalidError{err}
	}
	return file.Pools, nil
}

func poolIDs(pools []contract.Pool) []string {
	ids := make([]string, len(pools))
	for i, p := range pools {
		ids[i] = p.ID
	}
	return ids
}

// openHost brings together what activities share.
func openHost(ctx context.Context, o options, state string, pools []contract.Pool, log *slog.Logger) (*activities.Host, error) {
	id := o.hostName
	if id == "" {
		var err error
		if id, err = config.HostID(state); err != nil {
			return nil, err
		}
	}
	where, err := config.ArtifactsURL(o.artifacts, state)
	if err != nil {
		return nil, err
	}
	store, err := artifacts.Open(ctx, where)
	if err != nil {
		return nil, err
	}
	host := &activities.Host{
		ID: id, StateDir: state, Artifacts: store, Providers: Providers(),
		Pools: map[string]contract.Pool{}, Environ: os.Environ, DiskFloor: o.diskFloor << 20, Log: log,
	}
	if host.Hook, err = testHook(host); err != nil {
		return nil, err
	}
	host.Git, err = gitrepo.NewStore(gitrepo.Settings{
		StateDir: state, HostID: id, Log: log, Hook: host.Hook, ShareSalvage: config.ArtifactsShared(where, state),
	})
	if err != nil {
		return nil, err
	}
	for _, p := range pools {
		host.Pools[p.ID] = p
	}
	if _, err := process.SandboxAvailable(); err != nil {
		log.Warn("programs of runs are not confined", "error", err)
	} else {
		host.Confine = true
	}
	return host, nil
}

// clearHost ends what a killed worker left on this host and makes its folders.
func clearHost(ctx context.Context, host *activities.Host) error {
	if err := process.BecomeSubreaper(ctx); err != nil {
		return err
	}
	left, err := process.Sweep(ctx, host.Mark())
	if err != nil {
		return fmt.Errorf("end what an earlier worker left: %w", err)
	}
	for _, p := range left {
		host.Log.Warn("ended a process that an earlier worker left", "process", p)
	}
	return host.MakeFolders()
}

func activitySet(host *activities.Host, connected client.Client, namespace string) activities.Set {
	return activities.Set{
		Repository:  &activities.Repository{Host: host, Server: connected.OperatorService(), Namespace: namespace, Now: time.Now},
		Attempt:     &activities.Attempt{Host: host, Now: time.Now, Jitter: rand.Float64, Local: time.UTC},
		Landing:     &activities.Landing{Host: host},
		Gate:        &activities.Gate{Host: host},
		Artifacts:   &activities.Artifacts{Host: host},
		Publication: &activities.Publication{Host: host, Now: time.Now},
		Service:     &activities.Service{Server: connected, Blobs: host.Artifacts},
	}
}
