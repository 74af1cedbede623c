package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// heartbeatTimeout is how long a silent host keeps an attempt: activities beat
// every second, so ten seconds survive a busy machine and a killed worker's
// attempts still come back quickly.
const heartbeatTimeout = 10 * time.Second

// infrastructure retries what is idempotent and short; a whole server restart fits into it.
func infrastructure(attempts int32) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:    time.Second,
		BackoffCoefficient: 2,
		MaximumInterval:    20 * time.Second,
		MaximumAttempts:    attempts,
		NonRetryableErrorTypes: []string{
			contract.ErrorInvalidPlan, contract.ErrorBaseUnknown, contract.ErrorBranchMoved,
			contract.ErrorArtifactMissing, contract.ErrorWorktreeMissing, contract.ErrorSuperseded,
			contract.ErrorProcessAlive, // a second try would meet what the first could not end
		},
	}
}

// withRepositoryOptions is for work on the mirror that may clone a huge
// repository: long, beating, retried.
func withRepositoryOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.QueueMain,
		StartToCloseTimeout:    2 * time.Hour, // a first clone of a very large repository
		ScheduleToStartTimeout: time.Hour,     // no host at all: the run fails with a clear word instead of hanging for ever
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            infrastructure(5),
		Summary:                summary,
	})
}

// withPublishOptions tries a closing action once: the workflow decides about another
// try, after a wait that outlives workers. Any host may take it, whenever one is there.
func withPublishOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:             contract.QueueMain,
		StartToCloseTimeout:   30 * time.Minute, // a push of a large history
		HeartbeatTimeout:      heartbeatTimeout,
		WaitForCancellation:   true,
		RetryPolicy:           &temporal.RetryPolicy{MaximumAttempts: 1},
		DisableEagerExecution: true,
		Summary:               summary,
	})
}

// withNoticeOptions starts the delivery of a notice, which outlives the run.
func withNoticeOptions(ctx workflow.Context, run string, n int, event plan.NotifyOn) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.NotificationID(run, n),
		TaskQueue:             contract.QueueMain,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowTaskTimeout:   10 * time.Second,
		StaticSummary:         fmt.Sprintf("tell: %s is %s", run, event),
	})
}

// withNotifyOptions delivers a notice: a receiver that is down for an hour has missed it.
func withNotifyOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.QueueMain,
		StartToCloseTimeout:    time.Minute, // the activity gives up before
		ScheduleToCloseTimeout: time.Hour,
		HeartbeatTimeout:       heartbeatTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute, MaximumAttempts: 20,
			NonRetryableErrorTypes: []string{contract.ErrorInvalidPlan, contract.ErrorArtifactMissing},
		},
		DisableEagerExecution: true,
		Summary:               summary,
	})
}

// withLightOptions is for a short call that touches the store or the server only.
func withLightOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueueMain,
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         infrastructure(20),
		Summary:             summary,
	})
}

// withStartOptions starts an admitted run. It is retried for hours: the run is
// admitted, and a server or a store that is down comes back.
func withStartOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueueMain,
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         infrastructure(1000),
		Summary:             summary,
	})
}

// withWorkerOptions launches the worker: one attempt only, since the workflow
// decides after a lost heartbeat, so that no second agent starts in a tree
// whose first is dying. A continued tree is reachable on its host alone.
func withWorkerOptions(ctx workflow.Context, in contract.NodeInput) workflow.Context {
	queue, toStart := contract.PoolQueue(in.Pool), 3*time.Minute
	if in.Claim != nil && in.Claim.Host != "" {
		queue, toStart = contract.HostQueue(in.Claim.Host), time.Minute
	}
	if in.Kept != nil {
		queue, toStart = contract.HostQueue(in.Kept.Host), time.Minute
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToStartTimeout: toStart, // nobody serves the pool: the attempt comes back uncharged
		// The activity's own watchdogs end the worker; this only bounds a broken activity.
		StartToCloseTimeout:   time.Duration(in.Limits.Worker)*time.Minute + 30*time.Minute,
		HeartbeatTimeout:      heartbeatTimeout,
		WaitForCancellation:   true, // the answer to a cancel says what was kept
		RetryPolicy:           &temporal.RetryPolicy{MaximumAttempts: 1},
		DisableEagerExecution: true,
		Summary:               fmt.Sprintf("%s a%d on %s", in.Node, in.Attempt, in.Pool),
	})
}

// withGitOptions lands or releases on the host that has the tree. It is
// idempotent, so a crashed host may answer after its restart.
func withGitOptions(ctx workflow.Context, host string, minutes int, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.HostQueue(host),
		ScheduleToStartTimeout: 2 * time.Minute, // the host is gone: start clean elsewhere
		StartToCloseTimeout:    time.Duration(minutes)*time.Minute + 30*time.Minute,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            infrastructure(5),
		DisableEagerExecution:  true,
		Summary:                summary,
	})
}

// withQuietOptions asks a host that was lost to end what is left there. It waits
// for the host as long as the run waits: however long that takes, nothing else
// can answer. What cannot be ended now is tried again and again.
func withQuietOptions(ctx workflow.Context, host string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.HostQueue(host),
		ScheduleToStartTimeout: 365 * 24 * time.Hour,
		StartToCloseTimeout:    5 * time.Minute,
		HeartbeatTimeout:       heartbeatTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: 100_000,
		},
		DisableEagerExecution: true,
		Summary:               "prove that nothing is alive on " + host,
	})
}

// withHostsOptions waits for a host: what fails is tried again and again without an event.
func withHostsOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.QueueMain,
		ScheduleToCloseTimeout: 365 * 24 * time.Hour,
		StartToCloseTimeout:    time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 2 * time.Second, BackoffCoefficient: 1.5, MaximumInterval: 15 * time.Second, MaximumAttempts: 10_000_000,
		},
		Summary: "wait for a host that serves the pools",
	})
}

// withGateOptions runs a whole gate: long, beating; what it did before a crash is cached by commit.
func withGateOptions(ctx workflow.Context, minutes int, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              contract.QueueMain,
		ScheduleToStartTimeout: time.Hour,
		StartToCloseTimeout:    time.Duration(minutes)*time.Minute + 30*time.Minute,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            infrastructure(5),
		DisableEagerExecution:  true,
		Summary:                summary,
	})
}

// withLevelOptions starts a drive. It is abandoned by its parent on purpose:
// continue-as-new applies the parent-close policy, and a drive outlives it.
func withLevelOptions(ctx workflow.Context, in contract.LevelInput) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.LevelID(in.Run, in.Drive),
		TaskQueue:             contract.QueueMain,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowTaskTimeout:   10 * time.Second,
		StaticSummary:         fmt.Sprintf("level %d, drive %d of %s", in.Depth, in.Drive, in.Run),
	})
}

// withNodeOptions starts an attempt, which ends with its drive and is waited for.
func withNodeOptions(ctx workflow.Context, in contract.NodeInput) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.NodeID(in.Run, in.Drive, in.Node, in.Attempt),
		TaskQueue:             contract.QueueMain,
		WaitForCancellation:   true,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowTaskTimeout:   10 * time.Second,
		StaticSummary:         fmt.Sprintf("%s a%d on %s", in.Node, in.Attempt, in.Pool),
	})
}
