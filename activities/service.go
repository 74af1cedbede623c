package activities

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

// Server is the part of the Temporal client that entities are started and looked up with.
type Server interface {
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	DescribeTaskQueue(ctx context.Context, queue string, kind enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error)
}

// Service starts entity workflows and looks whether workflows still run.
type Service struct {
	Server Server
	Blobs  Blobs // where admitted runs have their inputs
}

// EnsureBrokers starts the broker of every account that has none.
func (a *Service) EnsureBrokers(ctx context.Context, accounts []string) error {
	for _, account := range accounts {
		_, err := a.Server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: contract.BrokerID(account), TaskQueue: contract.QueueMain,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:            "slots of account " + account,
		}, contract.WorkflowBroker, contract.BrokerInput{Account: account})
		if err != nil {
			return translate(ctx, fmt.Errorf("start broker of %s: %w", account, err))
		}
	}
	return nil
}

// ClosedWorkflows returns those of the ids that do not run any more, or never did.
func (a *Service) ClosedWorkflows(ctx context.Context, ids []string) ([]string, error) {
	var closed []string
	for _, id := range ids {
		described, err := a.Server.DescribeWorkflowExecution(ctx, id, "")
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing):
			closed = append(closed, id)
		case err != nil:
			return nil, translate(ctx, fmt.Errorf("describe %s: %w", id, err))
		case described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			closed = append(closed, id)
		}
	}
	return closed, nil
}
