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

// Pollers keep eight polls on the main queue and eight on the sticky one. A fixed number is
// shared by both, and all of it turns to the sticky queue while the last answer from there spoke
// of a backlog: then nobody here takes a new workflow, or a question to a closed run, until those
// polls end after a minute.
func Pollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 8, MinimumNumberOfPollers: 8, MaximumNumberOfPollers: 16,
	})
}
