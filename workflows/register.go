package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// Register makes the workflows known to a worker under their wire names.
func Register(registry worker.WorkflowRegistry) {
	for _, w := range []struct {
		name string
		code any
	}{
		{contract.WorkflowRemediation, Remediation},
		{contract.WorkflowLevel, Level},
		{contract.WorkflowNode, Node},
		{contract.WorkflowBroker, Broker},
		{contract.WorkflowPublication, Publication},
		{contract.WorkflowNotification, Notification},
		{contract.WorkflowScheduler, Scheduler},
	} {
		registry.RegisterWorkflowWithOptions(w.code, workflow.RegisterOptions{
			Name: w.name,
			// Runs last for days: they move on to the newest build, which replays them (GetVersion).
			VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		})
	}
}
