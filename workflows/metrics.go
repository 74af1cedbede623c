package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// What workflows measure is told by the SDK's handler, which is silent during a
// replay: nothing counts twice.

// tags is a metric's tags as the SDK takes them.
type tags = map[string]string

func count(ctx workflow.Context, name string, t tags) {
	workflow.GetMetricsHandler(ctx).WithTags(t).Counter(name).Inc(1)
}

// measure tells how the attempt ended.
func (n *node) measure(ctx workflow.Context) {
	r := &n.result
	count(ctx, contract.MetricAttempts, tags{contract.TagPool: r.Pool, contract.TagOutcome: string(r.Outcome), contract.TagCause: string(r.Cause)})
	if !r.StartedAt.IsZero() {
		took := r.EndedAt.Sub(r.StartedAt)
		workflow.GetMetricsHandler(ctx).WithTags(tags{contract.TagPool: r.Pool}).Timer(contract.MetricAttempt).Record(took)
	}
	if r.Commit != "" && r.Outcome == contract.OutcomeSuccess {
		count(ctx, contract.MetricLandings, tags{contract.TagPool: r.Pool})
	}
}

// measured is what was told of a run already.
type measured struct {
	status contract.RunStatus
	holds  []contract.Hold
}

// measure tells the statuses and holds that a run comes to, and how long a hold lasted.
func (r *remediation) measure(ctx workflow.Context) {
	if r.told.status != r.status {
		count(ctx, contract.MetricRunStatus, tags{contract.TagStatus: string(r.status)})
	}
	now := r.holdRows()
	has := func(list []contract.Hold, h contract.Hold) bool {
		return slices.ContainsFunc(list, func(o contract.Hold) bool { return o.Kind == h.Kind && o.Since.Equal(h.Since) })
	}
	for _, h := range now {
		if !has(r.told.holds, h) {
			count(ctx, contract.MetricHolds, tags{contract.TagHold: string(h.Kind)})
		}
	}
	for _, h := range r.told.holds {
		if !has(now, h) {
			lasted := workflow.Now(ctx).Sub(h.Since)
			workflow.GetMetricsHandler(ctx).WithTags(tags{contract.TagHold: string(h.Kind)}).Timer(contract.MetricHold).Record(lasted)
		}
	}
	r.told = measured{r.status, now}
}

// countNode tells that a node settled or was stranded.
func countNode(ctx workflow.Context, state contract.NodeState, cause contract.StrandCause) {
	count(ctx, contract.MetricNodes, tags{contract.TagState: string(state), contract.TagCause: string(cause)})
}
