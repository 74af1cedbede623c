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
	w := &world{env: suite.NewTestWorkflowEnvironment(), host: h, in: testInput(pools...)}
	w.began = w.env.Now()
	w.env.SetTestTimeout(hang)
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: hang, Interceptors: []interceptor.WorkerInterceptor{&timerWatch{}}})
	Register(w.env)
	w.env.RegisterWorkflowWithOptions(w.live, workflow.RegisterOptions{Name: "World"})
	h.register(w.env, true)
	h.later = func(ctx context.Context, takes time.Duration, end contract.WorkerEnd) error {
		info := activity.GetInfo(ctx)
		end.StartedAt = w.env.Now()
		w.env.RegisterDelayedCallback(func() {
			end.EndedAt = w.env.Now()
			require.NoError(t, w.env.CompleteActivity(info.TaskToken, end, nil))
			// The environment gives the workflow task to the root; the signal gives the child its own.
			require.NoError(t, w.env.SignalWorkflowByID(info.WorkflowExecution.ID, "wake", nil))
		}, takes)
		return activity.ErrResultPending
	}
	w.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Return(func(string, string, string, string, any) error { return serviceerror.NewNotFound("no such workflow") }).Maybe()
	return w
}

// live starts the brokers and the run, and ends with the run.
func (w *world) live(ctx workflow.Context) (contract.RemediationResult, error) {
	book := newPoolBook(w.in.Pools)
	for _, account := range book.accounts() {
		options := workflow.ChildWorkflowOptions{
			WorkflowID: contract.BrokerID(account), TaskQueue: contract.QueueMain,
			ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_TERMINATE,
		}
		broker := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), contract.WorkflowBroker, contract.BrokerInput{Account: account})
		if err := broker.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
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
