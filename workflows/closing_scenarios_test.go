package workflows

import (
	"context"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// closingScenarios are runs that end in a closing action and tell about themselves.
func closingScenarios() []scenario {
	second := func(_ context.Context, n int, in contract.PublishInput) (contract.PublishEnd, error) {
		if n%2 == 1 {
			return contract.PublishEnd{State: contract.PublishUncertain, RetryAfter: 1, Detail: "502"}, nil
		}
		return contract.PublishEnd{State: contract.PublishSucceeded, Commit: in.Head, URL: "https://forge/1"}, nil
	}
	return []scenario{
		{name: "publish", host: func() *host {
			h := closingHost(plan.ClosePullRequest)
			h.opened.Notify = [][]plan.NotifyOn{everyEvent()}
			h.closing.answer = second
			return h
		}, more: func(l *lab) []execution {
			id := contract.PublicationID(l.in.Run)
			in := contract.PublicationInput{Action: "push", Publish: contract.PublishInput{Run: l.in.Run, Config: l.host.opened.Config, Head: "abc"}}
			handle, err := l.client.ExecuteWorkflow(l.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: contract.QueueMain}, contract.WorkflowPublication, in)
			require.NoError(l.t, err)
			require.NoError(l.t, handle.Get(l.t.Context(), nil))
			return []execution{{id, ""}}
		}},
		{name: "publish-skipped", host: func() *host {
			h := closingHost(plan.CloseMerge)
			h.work = func(contract.NodeInput) attemptScript {
				return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "no"}}
			}
			return h
		}},
	}
}
