package workflows

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// world runs a whole run with its drives, attempts and brokers in the SDK's test
// environment, where hours pass in moments. Every workflow is the real one.
type world struct {
	env    *testsuite.TestWorkflowEnvironment
	host   *host
	in     contract.RemediationInput
	began  time.Time
	level  func(workflow.Context, contract.LevelInput) error // Level, unless a test replaces it
	before func(ctx workflow.Context) error                  // runs when the brokers are there
	result contract.RemediationResult
}

const testRun = "r"

// hang is only a guard: no test waits for it.
const hang = 10 * time.Minute

func testPool(id string, slots int) contract.Pool {
	return contract.Pool{ID: id, Provider: contract.ProviderCommand, Account: id, Tier: plan.TierStandard, MaxConcurrent: slots, Cost: &contract.Cost{}}
}

func testInput(pools ...contract.Pool) contract.RemediationInput {
	if len(pools) == 0 {
		pools = []contract.Pool{testPool("main", 2)}
	}
	return contract.RemediationInput{
		Run: testRun, Repository: "/repo", Plan: contract.Artifact{URI: "plan"}, PoolsFile: contract.Artifact{URI: "pools"}, Pools: pools,
	}
}

func newWorld(t *testing.T, h *host, pools ...contract.Pool) *world {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLogger{})
	w := &world{env: suite.NewTestWorkflowEnvironment(), host: h, in: testInput(pools...), level: Level}
	w.began = w.env.Now()
	w.env.SetTestTimeout(hang)
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: hang, Interceptors: append(Interceptors(), &timerWatch{})})
	for name, code := range map[string]any{
		contract.WorkflowRemediation: Remediation, contract.WorkflowNode: Node, contract.WorkflowBroker: Broker,
		contract.WorkflowLevel: func(ctx workflow.Context, in contract.LevelInput) error { return w.level(ctx, in) },
	} {
		w.env.RegisterWorkflowWithOptions(code, workflow.RegisterOptions{Name: name})
	}
	w.env.RegisterWorkflowWithOptions(w.live, workflow.RegisterOptions{Name: "World"})
	h.register(w.env, true)
	h.later = func(ctx context.Context, takes time.Duration, end contract.WorkerEnd) error {
		info := activity.GetInfo(ctx)
		end.StartedAt = w.env.Now()
		w.env.RegisterDelayedCallback(func() {
			end.EndedAt = w.env.Now()
			require.NoError(t, w.env.CompleteActivity(info.TaskToken, end, nil))
			// The environment gives the workflow task to the root; the signal gives the child its own.
			_ = w.env.SignalWorkflowByID(info.WorkflowExecution.ID, "wake", nil)
		}, takes)
		return activity.ErrResultPending
	}
	w.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Return(func(_, id, _, _ string, _ any) error {
			if id == otherDrive {
				return nil
			}
			return serviceerror.NewNotFound("no such workflow")
		}).Maybe()
	h.ensure = func(account string) { w.ensure(t, account) }
	return w
}

// otherDrive is a drive of another run, which takes what it is sent.
const otherDrive = "remediation/other/L01"

// ensureSignal has the world start a broker that is not there.
const ensureSignal = "ensure"

func (w *world) ensure(t *testing.T, account string) {
	require.NoError(t, w.env.SignalWorkflowByID(worldID, ensureSignal, account))
}

const worldID = "world"

// live starts the brokers and the run, and ends with the run.
func (w *world) live(ctx workflow.Context) (contract.RemediationResult, error) {
	start := func(ctx workflow.Context, account string) error {
		options := workflow.ChildWorkflowOptions{
			WorkflowID: contract.BrokerID(account), TaskQueue: contract.QueueMain,
			ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		}
		broker := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), contract.WorkflowBroker, contract.BrokerInput{Account: account})
		return broker.GetChildWorkflowExecution().Get(ctx, nil)
	}
	book := newPoolBook(w.in.Pools)
	for _, account := range book.accounts() {
		if err := start(ctx, account); err != nil {
			return contract.RemediationResult{}, err
		}
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var account string
			workflow.GetSignalChannel(ctx, ensureSignal).Receive(ctx, &account)
			_ = start(ctx, account) // one that runs already is as good
		}
	})
	if w.before != nil {
		if err := w.before(ctx); err != nil {
			return contract.RemediationResult{}, err
		}
	}
	options := workflow.ChildWorkflowOptions{WorkflowID: contract.RemediationID(testRun), TaskQueue: contract.QueueMain}
	var result contract.RemediationResult
	err := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), contract.WorkflowRemediation, w.in).Get(ctx, &result)
	return result, err
}

func (w *world) run(t *testing.T) contract.RemediationResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: worldID, TaskQueue: contract.QueueMain})
	w.env.ExecuteWorkflow("World")
	require.True(t, w.env.IsWorkflowCompleted())
	require.NoError(t, w.env.GetWorkflowError())
	require.NoError(t, w.env.GetWorkflowResult(&w.result))
	return w.result
}

// at does something at an instant of the run's time.
func (w *world) at(after time.Duration, do func()) { w.env.RegisterDelayedCallback(do, after) }

// status asks the run.
func (w *world) status(t *testing.T) contract.RunView {
	t.Helper()
	answer, err := w.env.QueryWorkflowByID(contract.RemediationID(testRun), contract.QueryStatus)
	require.NoError(t, err)
	var v contract.RunView
	require.NoError(t, answer.Get(&v))
	return v
}

func (w *world) signal(t *testing.T, name string, payload any) {
	t.Helper()
	require.NoError(t, w.env.SignalWorkflowByID(contract.RemediationID(testRun), name, payload))
}

// timerWatch panics when workflows set one timer after the other in no time: they spin.
type timerWatch struct {
	interceptor.WorkerInterceptorBase
	short atomic.Int64
}

func (w *timerWatch) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &timerWatchInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, w}
}

type timerWatchInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	watch *timerWatch
}

func (i *timerWatchInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&timerWatchOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.watch})
}

type timerWatchOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	watch *timerWatch
}

func (o *timerWatchOutbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	if d < 100*time.Millisecond && o.watch.short.Add(1) > 100 {
		panic("a workflow spins: timer after timer for " + options.Summary)
	}
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

// quietLogger drops what workflows log.
type quietLogger struct{}

func (quietLogger) Debug(string, ...any) {}
func (quietLogger) Info(string, ...any)  {}
func (quietLogger) Warn(string, ...any)  {}
func (quietLogger) Error(string, ...any) {}

var _ log.Logger = quietLogger{}
