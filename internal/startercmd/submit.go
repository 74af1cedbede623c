package startercmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"mendflow/activities"
	"mendflow/internal/admission"
	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// choice is the name under which a run is to be admitted.
type choice struct {
	run        string
	generation int // 0: a name of the user's own
}

// chooseRun finds the name of the next generation; or the decision that there is
// none, which the scheduler would come to as well: it asks the server and the
// artifact store too, which know runs that no scheduler admitted.
func (a *app) chooseRun(ctx context.Context, c client.Client, s contract.Submission) (choice, *contract.Submitted, error) {
	if s.ID != "" {
		open, used, err := a.known(ctx, c, s.ID)
		if err != nil || !used {
			return choice{run: s.ID}, nil, err
		}
		return choice{}, usedName(s.ID, open, contract.RejectedIDInUse), nil
	}
	for generation := 1; ; generation++ {
		id := admission.RunID(s.Repository, s.Plan, generation)
		open, used, err := a.known(ctx, c, id)
		switch {
		case err != nil:
			return choice{}, nil, err
		case !used:
			return choice{run: id, generation: generation}, nil, nil
		case !s.Again:
			return choice{}, usedName(id, open, contract.RejectedGenerationUsed), nil
		}
	}
}

// usedName is the decision about a name that was given before.
func usedName(id string, open bool, cause string) *contract.Submitted {
	if open {
		return &contract.Submitted{Decision: contract.DecisionDuplicate, Run: id, Reason: fmt.Sprintf(
			"%s is open: watch it with `starter watch %s`, or start another behind it with --again, beside it with --again --parallel", id, id)}
	}
	return &contract.Submitted{Decision: contract.DecisionRejected, Cause: cause, Run: id, Reason: fmt.Sprintf(
		"%s ran before: see `starter report %s`, or start it once more with --again", id, id)}
}

// known reports whether a run id was used: by the server, by the scheduler while
// the run waits, or, after the server's retention, by the report in the artifact store.
func (a *app) known(ctx context.Context, c client.Client, id string) (open, used bool, err error) {
	described, err := c.DescribeWorkflow(ctx, contract.RemediationID(id), "")
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, true, nil
	case !errors.As(err, &missing):
		return false, false, fmt.Errorf("look for run %s: %w", id, err)
	}
	row, err := schedulerRow(ctx, c, id)
	switch {
	case err == nil:
		return row.ClosedAt == nil, true, nil
	case !errors.Is(err, errUnknownRun):
		return false, false, err
	}
	store, err := a.store(ctx)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = store.Close() }()
	entries, err := store.List(ctx, "runs/"+id+"/report/")
	return false, len(entries) > 0, err
}

// submit stores what the run is made of and asks the scheduler to admit it. With
// queue it waits while the scheduler takes nothing.
func (a *app) submit(ctx context.Context, c client.Client, p *plan.Plan, pools *contract.PoolsFile, input contract.RemediationInput, s contract.Submission, queue bool) (contract.Submitted, error) {
	var err error
	if s.Input, err = a.storeInputs(ctx, &input, p, pools); err != nil {
		return contract.Submitted{}, err
	}
	if err := a.snap.publish(ctx, input.Run); err != nil {
		return contract.Submitted{}, err
	}
	said := ""
	for {
		s.RequestID = rand.Text()
		answer, err := a.askAdmission(ctx, c, s)
		if err != nil || !queue || answer.Decision != contract.DecisionDeferred {
			return answer, err
		}
		if answer.Reason != said {
			said = answer.Reason
			fmt.Fprintf(a.Err, "starter: waiting: %s\n", said)
		}
		select {
		case <-ctx.Done():
			return contract.Submitted{}, exit(ExitInterrupted)
		case <-time.After(queueEvery):
		}
	}
}

// queueEvery is how often --queue asks again.
const queueEvery = 2 * time.Second

// askAdmission submits a run. An answer that does not come is asked for again:
// the request id makes sure that the run is admitted once.
func (a *app) askAdmission(ctx context.Context, c client.Client, s contract.Submission) (contract.Submitted, error) {
	const tries = 6
	for try := 1; ; try++ {
		answer, err := updateScheduler[contract.Submitted](ctx, c, contract.CommandSubmit, s)
		if try == tries || !errors.Is(err, errNoWorker) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// updateScheduler sends a command to the scheduler, which is started when it does not run.
func updateScheduler[A any](ctx context.Context, c client.Client, command string, payload any) (A, error) {
	var answer A
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	handle, err := c.UpdateWithStartWorkflow(asking, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(
			activities.SchedulerOptions(contract.SchedulerID), contract.WorkflowScheduler, contract.SchedulerInput{}),
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: contract.SchedulerID, UpdateName: command, Args: []any{payload},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(asking, &answer)
	}
	var late *serviceerror.DeadlineExceeded
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return answer, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late):
		return answer, fmt.Errorf("%s: %w", command, errNoWorker)
	}
	return answer, fmt.Errorf("%s: %w", command, err)
}

// ensureScheduler starts the deployment's scheduler when it does not run; it needs no worker for that.
func ensureScheduler(ctx context.Context, c client.Client) error {
	_, err := c.ExecuteWorkflow(ctx, activities.SchedulerOptions(contract.SchedulerID), contract.WorkflowScheduler, contract.SchedulerInput{})
	if err != nil {
		return fmt.Errorf("start scheduler: %w", err)
	}
	return nil
}

// schedulerRow asks the scheduler about a run.
func schedulerRow(ctx context.Context, c client.Client, run string) (contract.SchedulerRun, error) {
	row, err := ask[contract.SchedulerRun](ctx, c, contract.SchedulerID, contract.QueryRun, run)
	var failed *serviceerror.QueryFailed
	if errors.As(err, &failed) {
		return row, fmt.Errorf("%w: %s", errUnknownRun, failed.Message)
	}
	return row, err
}

// sayDecision prints what was decided about a run; one that was not admitted is an error.
func (a *app) sayDecision(answer contract.Submitted) (started, error) {
	told := started{
		Run: answer.Run, Decision: string(answer.Decision), Cause: answer.Cause, Behind: answer.Behind,
		Position: answer.Position, Reason: answer.Reason,
	}
	if answer.Run != "" {
		told.WorkflowID, told.Branch = contract.RemediationID(answer.Run), contract.RunBranch(answer.Run)
	}
	switch answer.Decision {
	case contract.DecisionStarted:
		if !a.json {
			fmt.Fprintf(a.Out, "started run %s (branch %s)\n", told.Run, told.Branch)
		}
		return told, nil
	case contract.DecisionQueued:
		if !a.json {
			fmt.Fprintf(a.Out, "queued run %s (branch %s) at place %d: %s\n", told.Run, told.Branch, told.Position, told.Reason)
		}
		return told, nil
	case contract.DecisionDuplicate, contract.DecisionDeferred, contract.DecisionRejected:
	}
	if a.json {
		if err := json.NewEncoder(a.Out).Encode(told); err != nil {
			return told, err
		}
	}
	decision := string(answer.Decision)
	if answer.Cause != "" {
		decision += " (" + answer.Cause + ")"
	}
	return told, fmt.Errorf("start run: %s: %s", decision, answer.Reason)
}

// awaitBegun waits until an admitted run has a workflow. A run that closed before
// is returned as its row.
func (a *app) awaitBegun(ctx context.Context, c client.Client, run string) (*contract.SchedulerRun, error) {
	every := 50 * time.Millisecond
	said := ""
	for {
		_, err := c.DescribeWorkflow(ctx, contract.RemediationID(run), "")
		if err == nil {
			return nil, nil
		}
		row, rowErr := schedulerRow(ctx, c, run)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(a.Err, "stopped waiting; the run stays admitted: starter watch %s\n", run)
			return nil, exit(ExitInterrupted)
		case rowErr == nil && row.ClosedAt != nil && !row.Begun, rowErr == nil && row.Status == contract.RunFailed:
			return &row, nil
		case rowErr == nil && !row.Begun && row.Reason != said:
			said = row.Reason
			fmt.Fprintf(a.Err, "starter: %s waits: %s\n", run, said)
		case errors.Is(rowErr, errUnknownRun):
			return nil, rowErr
		}
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
		every = min(2*every, watchEvery)
	}
}
