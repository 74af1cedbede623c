package workflows

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// The tests against the real server share one server and one worker process of
// the real workflows. Every history that a run leaves is replayed at its end:
// what is not deterministic shows.

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait for a server, not for processors
		panic(err)
	}
	code := m.Run()
	if theFarm != nil {
		theFarm.close()
	}
	os.Exit(code)
}

var (
	theFarm  *farm
	openFarm = sync.OnceValues(newFarm)
)

// farm is the server with workers on every queue; activities go to the host of their run.
type farm struct {
	server  *testkit.Server
	client  client.Client
	dir     string
	workers []worker.Worker

	mu     sync.Mutex
	hosts  map[string]*host
	inputs map[string]func(context.Context) ([]byte, error) // of admitted runs, by key
}

func newFarm() (*farm, error) {
	dir, err := os.MkdirTemp("", "mendflow-workflows-")
	if err != nil {
		return nil, err
	}
	f := &farm{dir: dir, hosts: map[string]*host{"broker": newHost()}, inputs: map[string]func(context.Context) ([]byte, error){}}
	if f.server, err = testkit.StartServer(dir, false); err != nil {
		return nil, err
	}
	theFarm = f
	if f.client, err = client.Dial(client.Options{HostPort: f.server.Address, Logger: quietLogger{}}); err != nil {
		return nil, err
	}
	queues := []string{contract.QueueMain, contract.HostQueue(testHost), contract.PoolQueue("main"), contract.PoolQueue("other")}
	for _, queue := range queues {
		w := worker.New(f.client, queue, worker.Options{
			MaxHeartbeatThrottleInterval: time.Second, DefaultHeartbeatThrottleInterval: time.Second,
			DisableWorkflowWorker: queue != contract.QueueMain, DeadlockDetectionTimeout: hang, Interceptors: Interceptors(),
			WorkflowTaskPollerBehavior: Pollers(),
		})
		if queue == contract.QueueMain {
			Register(w)
			w.RegisterActivity(&activities.Service{Server: &stubbing{Client: f.client}, Blobs: f})
			w.RegisterWorkflowWithOptions(stubRun, workflow.RegisterOptions{Name: stubWorkflow})
		}
		f.register(w)
		if err := w.Start(); err != nil {
			return nil, err
		}
		f.workers = append(f.workers, w)
	}
	return f, nil
}

func (f *farm) close() {
	for _, w := range f.workers {
		w.Stop()
	}
	if f.client != nil {
		f.client.Close()
	}
	f.server.Kill()
	_ = os.RemoveAll(f.dir)
}

func (f *farm) of(run string) *host {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(run, "broker") { // the state of brokers, which belong to no run
		run = "broker"
	}
	return f.hosts[run]
}

// byURI finds the host of an artifact, whose key begins with runs/RUN/.
func (f *farm) byURI(uri string) *host {
	parts := strings.Split(uri, "/")
	if parts[1] == contract.SchedulerID { // every test has a scheduler of its own
		return f.of(parts[1] + "/" + parts[2])
	}
	return f.of(parts[1])
}

func (f *farm) register(w worker.Worker) {
	f.registerClosing(w)
	f.registerAttended(w)
	f.registerGates(w)
	for name, code := range map[string]any{
		"OpenRun": func(ctx context.Context, in contract.OpenRunInput) (contract.OpenRunResult, error) {
			return f.of(in.Run).OpenRun(ctx, in)
		},
		"LoadUnits": func(ctx context.Context, in contract.LoadUnitsInput) (contract.LoadUnitsResult, error) {
			return f.byURI(in.Config.URI).LoadUnits(ctx, in)
		},
		"RunWorker": func(ctx context.Context, in contract.NodeInput) (contract.WorkerEnd, error) {
			return f.of(in.Run).RunWorker(ctx, in)
		},
		"LandWork": func(ctx context.Context, in contract.LandInput) (contract.LandEnd, error) {
			return f.of(in.Run).LandWork(ctx, in)
		},
		"ReleaseWorktree": func(ctx context.Context, in contract.ReleaseInput) (contract.ReleaseEnd, error) {
			return f.of(in.Run).ReleaseWorktree(ctx, in)
		},
		"RunGate": func(ctx context.Context, in contract.GateInput) (contract.GateEnd, error) {
			return f.of(in.Run).RunGate(ctx, in)
		},
		"SaveState": func(ctx context.Context, in contract.StateInput) (contract.Artifact, error) {
			return f.of(in.Run).SaveState(ctx, in)
		},
		"LoadState": func(ctx context.Context, part contract.Artifact) ([]byte, error) {
			return f.byURI(part.URI).LoadState(ctx, part)
		},
		"ProveQuiet": func(ctx context.Context, in contract.QuietInput) error { return f.of(in.Run).ProveQuiet(ctx, in) },
		"RestoreTruth": func(ctx context.Context, in contract.RestoreInput) (contract.RestoreEnd, error) {
			return f.of(in.Run).RestoreTruth(ctx, in)
		},
		"WriteReport": func(ctx context.Context, in contract.ReportInput) (contract.ReportEnd, error) {
			return f.of(in.Run).WriteReport(ctx, in)
		},
	} {
		w.RegisterActivityWithOptions(code, activity.RegisterOptions{Name: name})
	}
}

// lab is one run on the farm.
type lab struct {
	*farm
	t    *testing.T
	host *host
	in   contract.RemediationInput
	id   string
}

// newLab prepares a run on the real server; begin starts it.
func newLab(t *testing.T, h *host, pools ...contract.Pool) *lab {
	t.Helper()
	f, err := openFarm()
	require.NoError(t, err)
	l := &lab{farm: f, t: t, host: h, in: testInput(pools...)}
	l.in.Run = strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	l.id = contract.RemediationID(l.in.Run)
	for i := range l.in.Pools { // accounts are shared on a server: every run has its own
		l.in.Pools[i].Account = l.in.Run + "-" + l.in.Pools[i].ID
	}
	h.opened.Config.URI = "runs/" + l.in.Run + "/config.json"
	f.mu.Lock()
	f.hosts[l.in.Run] = h
	f.mu.Unlock()
	return l
}

func (l *lab) begin() *lab {
	l.t.Helper()
	_, err := l.client.ExecuteWorkflow(l.t.Context(), client.StartWorkflowOptions{ID: l.id, TaskQueue: contract.QueueMain}, contract.WorkflowRemediation, l.in)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { // a failed test says where the run stands, and leaves nothing that runs on
		if l.t.Failed() {
			l.dump()
		}
		_ = l.client.TerminateWorkflow(context.Background(), l.id, "", "test over")
	})
	return l
}

// wait waits for the end of the run and checks every history of it.
func (l *lab) wait() contract.RemediationResult {
	l.t.Helper()
	ctx := patience(l.t)
	var result contract.RemediationResult
	require.NoError(l.t, l.client.GetWorkflow(ctx, l.id, "").Get(ctx, &result))
	l.checkHistories()
	return result
}

// patience is the context of one call. With a deadline of its own the client asks
// again when a busy machine lets an attempt time out; without, it gives up after ten seconds.
func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Guard)
	t.Cleanup(cancel)
	return ctx
}

func (l *lab) signal(name string, payload any) {
	l.t.Helper()
	require.NoError(l.t, l.client.SignalWorkflow(patience(l.t), l.id, "", name, payload))
}

// raw sends a signal whose payload is exactly this.
func (l *lab) raw(name, encoding, data string) {
	l.t.Helper()
	payload := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)}
	l.signal(name, converter.NewRawValue(payload))
}

// update gives an operator's order and returns the answer.
func (l *lab) update(name string, order contract.Operator) (contract.OperatorAnswer, error) {
	l.t.Helper()
	ctx := patience(l.t)
	handle, err := l.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: l.id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{order},
	})
	var answer contract.OperatorAnswer
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	return answer, err
}

func (l *lab) ordered(name string, order contract.Operator) contract.OperatorAnswer {
	l.t.Helper()
	answer, err := l.update(name, order)
	require.NoError(l.t, err)
	return answer
}

func (l *lab) view() contract.RunView {
	l.t.Helper()
	answer, err := l.client.QueryWorkflow(patience(l.t), l.id, "", contract.QueryStatus)
	require.NoError(l.t, err)
	var v contract.RunView
	require.NoError(l.t, answer.Get(&v))
	return v
}

func (l *lab) until(what string, holds func(contract.RunView) bool) contract.RunView {
	l.t.Helper()
	var v contract.RunView
	testkit.Eventually(l.t, what, func() bool {
		v = l.view()
		return holds(v)
	})
	return v
}

func (l *lab) untilStatus(status contract.RunStatus) contract.RunView {
	l.t.Helper()
	return l.until("status "+string(status), func(v contract.RunView) bool { return v.Status == status })
}

// hold makes the host's activities of a name wait until release; entered is
// closed when the first has begun. A cancelled activity does not wait.
func (h *host) hold(name string) (entered <-chan struct{}, release func()) { return h.holdNth(name, 1) }

// holdNth does so from the nth activity of the name on.
func (h *host) holdNth(name string, n int) (entered <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	var once, open sync.Once
	previous := h.hook
	h.hook = func(ctx context.Context, began string) error {
		if previous != nil {
			if err := previous(ctx, began); err != nil {
				return err
			}
		}
		if began != name || h.count(name) < n {
			return nil
		}
		once.Do(func() { close(in) })
		if !waitBeating(ctx, out) {
			return ctx.Err()
		}
		return nil
	}
	return in, func() { open.Do(func() { close(out) }) }
}

func awaitClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testkit.Guard):
		t.Fatalf("wait for %s: it did not come", what)
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%04d", i) }

// holdGate makes gates of a purpose wait; entered is closed when the first begins.
func holdGate(purpose string, entered, release chan struct{}) func(context.Context, contract.GateInput) (contract.GateEnd, error) {
	var once sync.Once
	return func(ctx context.Context, in contract.GateInput) (contract.GateEnd, error) {
		if in.Purpose == purpose {
			once.Do(func() { close(entered) })
			if !waitBeating(ctx, release) {
				return contract.GateEnd{}, ctx.Err()
			}
		}
		return contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth"}, nil
	}
}

// signalled counts the signals of a name that the run's history has.
func (l *lab) signalled(name string) int {
	n := 0
	for _, e := range l.history(l.id, "").Events {
		if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == name {
			n++
		}
	}
	return n
}
