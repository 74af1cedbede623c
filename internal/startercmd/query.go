package startercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

// queryTimeout bounds a question to a run: it is answered by a worker, and there may be none.
const queryTimeout = 10 * time.Second

// errNoWorker says that the server knows the run but nobody can answer for it.
var errNoWorker = errors.New("no worker answers for the run: start one with `worker` or `starter dev`")

// errUnknownRun says that nobody knows a run of this name.
var errUnknownRun = errors.New("the server knows no such run: `starter runs` lists them")

// ask queries a run's workflow.
func ask[T any](ctx context.Context, c client.Client, workflowID, query string, args ...any) (T, error) {
	var answer T
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	value, err := c.QueryWorkflow(ctx, workflowID, "", query, args...)
	for loading(err) && wait(ctx, 100*time.Millisecond) {
		value, err = c.QueryWorkflow(ctx, workflowID, "", query, args...)
	}
	if err != nil {
		var cut *serviceerror.Canceled // the server's way to say that the time is over, when it is first
		if errors.As(err, &cut) && !errors.Is(ctx.Err(), context.Canceled) {
			return answer, errNoWorker
		}
		return answer, explainQuery(workflowID, err)
	}
	if err := value.Get(&answer); err != nil {
		return answer, fmt.Errorf("read answer of %s: %w", workflowID, err)
	}
	return answer, nil
}

// loading reports whether the answer is on its way: the workflow has just continued as new, or a message came in between while it
// did, for which the server has it decide once more.
func loading(err error) bool {
	var failed *serviceerror.QueryFailed
	if errors.As(err, &failed) {
		return failed.Message == contract.StateLoading
	}
	var unready *serviceerror.WorkflowNotReady
	return errors.As(err, &unready) && strings.Contains(unready.Message, "failed state")
}

// wait pauses; false when the context has ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func explainQuery(workflowID string, err error) error {
	var missing *serviceerror.NotFound
	var noPoller *serviceerror.WorkflowNotReady
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("find %s: %w", workflowID, errUnknownRun)
	case errors.As(err, &noPoller), errors.Is(err, context.DeadlineExceeded):
		return errNoWorker
	}
	var deadline *serviceerror.DeadlineExceeded
	if errors.As(err, &deadline) {
		return errNoWorker
	}
	return fmt.Errorf("ask %s: %w", workflowID, err)
}

// view returns the status of a run; of one that waits for its start, as the scheduler knows it.
func view(ctx context.Context, c client.Client, run string) (contract.RunView, error) {
	v, err := ask[contract.RunView](ctx, c, contract.RemediationID(run), contract.QueryStatus)
	switch {
	case err == nil && v.Status == contract.RunQueued:
		if row, rowErr := schedulerRow(ctx, c, run); rowErr == nil {
			v.Reason, v.Position = row.Reason, row.Position
		}
	case errors.Is(err, errUnknownRun):
		if row, rowErr := schedulerRow(ctx, c, run); rowErr == nil {
			return queuedView(row), nil
		}
	}
	return v, err
}

// queuedView is the status of a run that has no workflow.
func queuedView(row contract.SchedulerRun) contract.RunView {
	return contract.RunView{
		Run: row.Run, WorkflowID: contract.RemediationID(row.Run), PlanID: row.Plan, Status: row.Status, Reason: row.Reason,
		Position: row.Position, Holds: append([]contract.Hold{}, row.Holds...), Repository: row.Repository, Branch: contract.RunBranch(row.Run),
		Nodes: map[string]int{"total": 0}, Items: map[string]int{}, Pools: []contract.PoolState{},
		StartedAt: row.SubmittedAt, ClosedAt: row.ClosedAt,
	}
}

// fullView is the status with what only the open drives know: attempts under way, and slots in use per pool.
func fullView(ctx context.Context, c client.Client, run string) (contract.RunView, []contract.RunningNode, error) {
	v, err := view(ctx, c, run)
	if err != nil {
		return v, nil, err
	}
	running := runningNodes(ctx, c, v)
	for i := range v.Pools {
		for _, r := range running {
			if r.Pool == v.Pools[i].ID {
				v.Pools[i].Running++
			}
		}
	}
	return v, running, nil
}

// nodeRows returns the whole node table, page by page.
func nodeRows(ctx context.Context, c client.Client, run string) ([]contract.NodeRow, error) {
	const page = 100
	var rows []contract.NodeRow
	for {
		got, err := ask[[]contract.NodeRow](ctx, c, contract.RemediationID(run), contract.QueryNodes,
			contract.NodesQuery{Offset: len(rows), Limit: page})
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
		if len(got) < page {
			return rows, nil
		}
	}
}

// runningNodes returns the attempts under way, as the open drives tell them.
func runningNodes(ctx context.Context, c client.Client, v contract.RunView) []contract.RunningNode {
	var running []contract.RunningNode
	for _, drive := range v.Drives {
		status, err := ask[contract.LevelStatus](ctx, c, contract.LevelID(v.Run, drive), contract.QueryStatus)
		if err != nil {
			continue // it may have closed between the two questions
		}
		running = append(running, status.Running...)
	}
	return running
}

// outcomeOf reports how a closed run's workflow ended for the server, when no worker can be asked.
func outcomeOf(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "open"
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return "closed"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "terminated"
	default:
		return "failed"
	}
}

// closedCode is the exit code for a run's last status. A green run whose closing
// action did not come about has not done what was asked.
func closedCode(status contract.RunStatus, published *contract.PublicationView) int {
	switch {
	case status == contract.RunCompleted && published != nil && published.State.Wanting():
		return ExitError
	case status == contract.RunCompleted:
		return ExitDone
	}
	return ExitNotGreen
}
