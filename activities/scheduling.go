package activities

import (
	"context"
	"encoding/json"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
)

// Blobs is the part of the artifact store that inputs are read from.
type Blobs interface {
	Get(ctx context.Context, name string) ([]byte, error)
}

// StartRun starts an admitted run with what was stored for it. A run that was
// started already, or has ended since, is as good.
func (a *Service) StartRun(ctx context.Context, in contract.StartRunInput) error {
	data, err := a.Blobs.Get(ctx, in.Input.URI)
	if err != nil {
		return translate(ctx, fmt.Errorf("read input of run %s: %w", in.Run, err))
	}
	var stored contract.StoredRun
	if err := json.Unmarshal(data, &stored); err != nil {
		return translate(ctx, fmt.Errorf("read input of run %s: %w: %w", in.Run, errInvalidPlan, err))
	}
	input := stored.Input
	if input.Run != in.Run {
		return translate(ctx, fmt.Errorf("read input of run %s: %w: it is that of run %.100s", in.Run, errInvalidPlan, input.Run))
	}
	input.Scheduler = in.Scheduler
	_, err = a.Server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: contract.RemediationID(in.Run), TaskQueue: contract.QueueMain,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            fmt.Sprintf("%s: %d nodes", stored.Plan, stored.Nodes),
		StaticDetails:            clip(fmt.Sprintf("%s\n\nrepository `%s`", stored.Goal, input.Repository), staticDetails),
		Memo:                     map[string]any{"run": in.Run, "plan": stored.Plan, "repository": input.Repository, "branch": contract.RunBranch(in.Run)},
	}, contract.WorkflowRemediation, input)
	if err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return translate(ctx, fmt.Errorf("start run %s: %w", in.Run, err))
	}
	return nil
}

// staticDetails bounds what a run shows of its plan's goal; the server refuses more than 20 000 bytes.
const staticDetails = 18_000

// EnsureScheduler starts the scheduler of the id when it does not run.
func (a *Service) EnsureScheduler(ctx context.Context, id string) error {
	if _, err := a.Server.ExecuteWorkflow(ctx, SchedulerOptions(id), contract.WorkflowScheduler, contract.SchedulerInput{}); err != nil {
		return translate(ctx, fmt.Errorf("start scheduler: %w", err))
	}
	return nil
}

// SchedulerOptions is how a scheduler is started by whoever needs it.
func SchedulerOptions(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: id, TaskQueue: contract.QueueMain,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "admits runs, and says which of them work",
	}
}
