package startercmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
)

// repeatable gives a command that orders something a request id: one of its own
// each time, unless the user gives one to repeat an order whose answer was lost.
func (a *app) repeatable(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.requestID, "request-id", "",
		"name of this order: repeated with the same name it is answered as before and not carried out again (default: a new one)")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(a.requestID) > 200 {
			return usage("%s: a request id has at most 200 characters", cmd.CommandPath())
		}
		if a.requestID == "" {
			a.requestID = rand.Text()
		}
		return run(cmd, args)
	}
	return cmd
}

// order sends an operator command to a run as an update and prints what it did.
func (a *app) order(ctx context.Context, run, command string, order contract.Operator) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := a.send(ctx, c, run, command, order)
	if err != nil {
		return err
	}
	if a.json {
		return json.NewEncoder(a.Out).Encode(answer)
	}
	a.sayAnswer(run, answer)
	return nil
}

// send gives an order to a run and returns what it answered.
func (a *app) send(ctx context.Context, c client.Client, run, command string, order contract.Operator) (contract.OperatorAnswer, error) {
	order.By, order.RequestID = operatorName(), a.requestID
	answer, err := sendOrder(ctx, c, contract.RemediationID(run), command, order)
	if errors.Is(err, errUnknownRun) {
		return sendQueued(ctx, c, run, command, order, err)
	}
	return answer, err
}

func (a *app) sayAnswer(run string, answer contract.OperatorAnswer) {
	fmt.Fprintf(a.Out, "%s: %s\n", run, answer.Status)
	for _, done := range answer.Done {
		fmt.Fprintf(a.Out, "  %s\n", done)
	}
	for _, h := range answer.Holds {
		fmt.Fprintf(a.Out, "  held by %s\n", holdLine(h))
	}
}

func sendOrder(ctx context.Context, c client.Client, workflowID, command string, order contract.Operator) (contract.OperatorAnswer, error) {
	var answer contract.OperatorAnswer
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	handle, err := c.UpdateWorkflow(asking, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: command, Args: []any{order},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(asking, &answer)
	}
	var missing *serviceerror.NotFound
	var late *serviceerror.DeadlineExceeded
	var refused *temporal.ApplicationError
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &missing):
		return answer, fmt.Errorf("%s %s: %w", command, workflowID, whyMissing(ctx, c, workflowID))
	case errors.As(err, &refused):
		return answer, fmt.Errorf("%s %s: %s", command, workflowID, refused.Message())
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late):
		return answer, fmt.Errorf("%s %s: %w; what was sent may still be obeyed: repeat it with --request-id %s", command, workflowID, errNoWorker, order.RequestID)
	}
	return answer, fmt.Errorf("%s %s: %w", command, workflowID, err)
}

// whyMissing tells a run that has closed from one that never was.
func whyMissing(ctx context.Context, c client.Client, workflowID string) error {
	described, err := c.DescribeWorkflow(ctx, workflowID, "")
	if err != nil || described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return errUnknownRun
	}
	how := outcomeOf(described.Status)
	if how == "closed" {
		if v, err := ask[contract.RunView](ctx, c, workflowID, contract.QueryStatus); err == nil {
			how = "closed as " + string(v.Status)
		}
	}
	return fmt.Errorf("the run has ended (%s at %s): nothing can be changed any more",
		how, described.WorkflowCloseTime.Local().Format(time.DateTime))
}
