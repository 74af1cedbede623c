package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"mendflow/activities"
	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// deployment is a scheduler on the farm with the runs that a test submits to it.
type deployment struct {
	*farm
	t    *testing.T
	id   string // workflow id of the scheduler
	name string
	host *host // keeps what the scheduler stores
}

// newDeployment starts a scheduler that lets so many runs work.
func newDeployment(t *testing.T, running int) *deployment {
	t.Helper()
	f, err := openFarm()
	require.NoError(t, err)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	name = strings.TrimLeft(name[max(0, len(name)-40):], "-") // ids have at most 64 characters
	d := &deployment{farm: f, t: t, id: contract.SchedulerID + "/" + name, name: name, host: newHost()}
	f.mu.Lock()
	f.hosts[d.id] = d.host
	f.mu.Unlock()
	_, err = f.client.ExecuteWorkflow(t.Context(), activities.SchedulerOptions(d.id), contract.WorkflowScheduler, contract.SchedulerInput{})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			status, _ := json.MarshalIndent(d.rows(), "", " ")
			t.Logf("%s", status)
		}
		_ = f.client.TerminateWorkflow(context.Background(), d.id, "", "test over")
	})
	d.order(contract.CommandLimits, contract.SchedulerOrder{MaxRunning: &running})
	return d
}

// update gives the scheduler an order and returns its answer.
func update[A any](d *deployment, name string, payload any) (A, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), testkit.Guard)
	defer cancel()
	var answer A
	handle, err := d.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: d.id, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{payload},
	})
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	return answer, err
}

func (d *deployment) order(name string, order contract.SchedulerOrder) contract.SchedulerAnswer {
	d.t.Helper()
	answer, err := update[contract.SchedulerAnswer](d, name, order)
	require.NoError(d.t, err)
	return answer
}

// about orders something about a run.
func (d *deployment) about(name string, l *lab) contract.SchedulerAnswer {
	d.t.Helper()
	answer := d.order(name, contract.SchedulerOrder{Run: l.in.Run, By: "ops"})
	require.Empty(d.t, answer.Refused)
	return answer
}

// prepare makes a run that can be submitted.
func (d *deployment) prepare(name string, h *host) *lab {
	d.t.Helper()
	l := &lab{farm: d.farm, t: d.t, host: h, in: testInput()}
	l.in.Run = d.name + "-" + name
	l.in.Repository = "/repo/" + l.in.Run
	l.id = contract.RemediationID(l.in.Run)
	for i := range l.in.Pools { // accounts are shared on a server: every run has its own
		l.in.Pools[i].Account = l.in.Run + "-" + l.in.Pools[i].ID
	}
	h.opened.Config.URI = "runs/" + l.in.Run + "/config.json"
	d.mu.Lock()
	d.hosts[l.in.Run] = h
	d.mu.Unlock()
	d.store(l, nil)
	d.t.Cleanup(func() {
		if d.t.Failed() {
			l.dump()
		}
		_ = d.client.TerminateWorkflow(context.Background(), l.id, "", "test over")
	})
	return l
}

// store makes a run's input what its start reads; before is called first.
func (d *deployment) store(l *lab, before func(context.Context) error) {
	data, err := json.Marshal(contract.StoredRun{Input: l.in, Plan: "p", Nodes: len(l.host.units)})
	require.NoError(d.t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inputs[d.submission(l).Input.URI] = func(ctx context.Context) ([]byte, error) {
		if before != nil {
			if err := before(ctx); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
}

func (d *deployment) submission(l *lab) contract.Submission {
	return contract.Submission{
		Plan: "p", Repository: l.in.Repository, Base: "main", ID: l.in.Run, Input: contract.Artifact{URI: "runs/" + l.in.Run + "/input.json"},
	}
}

func (d *deployment) submit(l *lab) contract.Submitted {
	d.t.Helper()
	answer, err := update[contract.Submitted](d, contract.CommandSubmit, d.submission(l))
	require.NoError(d.t, err)
	return answer
}

// run submits a run that starts at once.
func (d *deployment) run(name string, h *host) *lab {
	d.t.Helper()
	l := d.prepare(name, h)
	require.Equal(d.t, contract.DecisionStarted, d.submit(l).Decision)
	return l
}

// working submits a run of one node, whose worker is at work until it is released.
func (d *deployment) working(name string) (l *lab, release func()) {
	d.t.Helper()
	h := newHost(unit("a", 0))
	entered, release := h.hold("RunWorker")
	l = d.run(name, h)
	awaitClosed(d.t, "RunWorker", entered)
	return l, release
}

// queue submits a run that waits.
func (d *deployment) queue(name string) *lab {
	d.t.Helper()
	l := d.prepare(name, newHost(unit("a", 0)))
	answer := d.submit(l)
	require.Equal(d.t, contract.DecisionQueued, answer.Decision, answer.Reason)
	return l
}

func ask[A any](d *deployment, query string, args ...any) A {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Guard)
	defer cancel()
	for {
		var answer A
		value, err := d.client.QueryWorkflow(ctx, d.id, "", query, args...)
		if err == nil {
			require.NoError(d.t, value.Get(&answer))
			return answer
		}
		// A busy machine, a state that is being loaded, or a message that came in between while it continued as new.
		busy := strings.Contains(err.Error(), "deadline exceeded") || strings.Contains(err.Error(), "RST_STREAM") || strings.Contains(err.Error(), contract.StateLoading) ||
			strings.Contains(err.Error(), "Workflow Task in failed state")
		require.True(d.t, busy && ctx.Err() == nil, "ask %s: %v", query, err)
	}
}

func (d *deployment) status() contract.SchedulerStatus {
	d.t.Helper()
	return ask[contract.SchedulerStatus](d, contract.QueryStatus)
}

func (d *deployment) rows() []contract.SchedulerRun {
	d.t.Helper()
	return ask[[]contract.SchedulerRun](d, contract.QueryRuns, contract.RunsQuery{Limit: 100})
}

func (d *deployment) row(l *lab) contract.SchedulerRun {
	d.t.Helper()
	return ask[contract.SchedulerRun](d, contract.QueryRun, l.in.Run)
}

// until waits for a status of a run as the scheduler knows it.
func (d *deployment) until(l *lab, status contract.RunStatus) contract.SchedulerRun {
	d.t.Helper()
	var row contract.SchedulerRun
	testkit.Eventually(d.t, fmt.Sprintf("%s is %s for the scheduler", l.in.Run, status), func() bool {
		row = d.row(l)
		return row.Status == status
	})
	return row
}

// ends waits for the end of a run, and for the scheduler to know.
func (d *deployment) ends(l *lab, status contract.RunStatus) {
	d.t.Helper()
	testkit.Eventually(d.t, l.in.Run+" has begun", func() bool { return d.row(l).Begun })
	result := l.wait()
	require.Equal(d.t, status, result.Status, result.Reason)
	require.NotNil(d.t, d.until(l, status).ClosedAt)
}

// executions lists the scheduler's executions, oldest first.
func (d *deployment) executions() []string {
	d.t.Helper()
	described, err := d.client.DescribeWorkflowExecution(patience(d.t), d.id, "")
	require.NoError(d.t, err)
	var ids []string
	for id := described.GetWorkflowExecutionInfo().GetFirstRunId(); id != ""; {
		ids = append(ids, id)
		events := (&lab{farm: d.farm, t: d.t}).history(d.id, id).Events
		id = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return ids
}

// chain returns their histories.
func (d *deployment) chain() []*historypb.History {
	d.t.Helper()
	var chain []*historypb.History
	for _, id := range d.executions() {
		chain = append(chain, (&lab{farm: d.farm, t: d.t}).history(d.id, id))
	}
	return chain
}

// begun lists the runs that the scheduler had started, in its order.
func (d *deployment) begun() []string {
	d.t.Helper()
	var names []string
	for _, h := range d.chain() {
		for _, e := range h.Events {
			scheduled := e.GetActivityTaskScheduledEventAttributes()
			if scheduled.GetActivityType().GetName() != "StartRun" {
				continue
			}
			var in contract.StartRunInput
			require.NoError(d.t, converter.GetDefaultDataConverter().FromPayloads(scheduled.Input, &in))
			names = append(names, strings.TrimPrefix(in.Run, d.name+"-"))
		}
	}
	return names
}

// check replays the scheduler's histories, and bounds what it says.
func (d *deployment) check() {
	d.t.Helper()
	for i, h := range d.chain() {
		if len(h.Events) < 3 {
			continue // started this moment: it has decided nothing that could be replayed
		}
		require.NoError(d.t, newReplayer(d.t).ReplayWorkflowHistory(quietLogger{}, h), "execution %d", i+1)
		for _, e := range h.Events {
			if failed := e.GetWorkflowTaskFailedEventAttributes(); failed != nil {
				require.True(d.t, expectedFailures[failed.Cause], "workflow task failed: %v %v", failed.Cause, failed.Failure)
			}
			if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() != foreignSignal {
				require.LessOrEqual(d.t, largestPayload(e.ProtoReflect()), payloadLimit, "event %d %s", e.EventId, e.EventType)
			}
		}
	}
}

// signal sends the scheduler a signal.
func (d *deployment) signal(name string, payload any) {
	d.t.Helper()
	require.NoError(d.t, d.client.SignalWorkflow(patience(d.t), d.id, "", name, payload))
}

// raw sends a signal whose payload is exactly this.
func (d *deployment) raw(name, encoding, data string) {
	d.t.Helper()
	d.signal(name, converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)}))
}

// Get reads the input of an admitted run.
func (f *farm) Get(ctx context.Context, name string) ([]byte, error) {
	f.mu.Lock()
	read, ok := f.inputs[name]
	f.mu.Unlock()
	if !ok {
		return nil, errors.New("read artifact: there is none")
	}
	return read(ctx)
}

// walled is a host whose provider has a wall until the test opens it.
func walled(open <-chan struct{}) *host {
	h := newHost(unit("a", 0))
	h.work = func(in contract.NodeInput) attemptScript {
		if isClosed(open) {
			return attemptScript{}
		}
		return attemptScript{end: contract.WorkerEnd{
			Outcome: contract.OutcomeRateLimited, Reason: "limit reached", Limit: &contract.Limit{Scope: "account"},
			Kept: &contract.Kept{Attempt: in.Attempt, Host: testHost, Pool: in.Pool, Step: "worker"},
		}}
	}
	return h
}

// Stubs stand in for runs where a thousand are needed: they speak to their
// scheduler as a run does, and do nothing.
const (
	stubWorkflow = "Stub"
	stubMark     = "-stub-"
)

// stubbing starts stubs in place of runs that have the mark in their names.
type stubbing struct{ client.Client }

func (s *stubbing) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, w any, args ...any) (client.WorkflowRun, error) {
	if strings.Contains(o.ID, stubMark) {
		w = stubWorkflow
	}
	return s.Client.ExecuteWorkflow(ctx, o, w, args...)
}

func stubRun(ctx workflow.Context, in contract.RemediationInput) error {
	var order contract.SlotOrder
	workflow.GetSignalChannel(ctx, contract.SignalSlot).Receive(ctx, &order)
	state := contract.RunState{
		Run: in.Run, Execution: workflow.GetInfo(ctx).WorkflowExecution.RunID, Seq: 1, Orders: order.Seq, Grant: order.Grant,
		Path: []contract.RunStatus{
			contract.RunStarting, contract.RunPreparing, contract.RunImplementing, contract.RunClosing, contract.RunCompleted,
		},
		Used: contract.Amount{Tokens: 10},
	}
	return workflow.SignalExternalWorkflow(ctx, in.Scheduler, "", contract.SignalState, state).Get(ctx, nil)
}
