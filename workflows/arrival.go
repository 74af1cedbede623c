package workflows

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// The SDK has a channel per signal name, and within one workflow task the order
// of signals of different names is lost: of a pause and a resume by two operators
// at once the last word would not count. An interceptor sees them in the order of
// the history, and notes it for the inbox.

// changeArrival: from then on signals of one task are taken in the order in which they came.
const changeArrival = "take-signals-as-they-came"

// Interceptors are what a worker needs to host the workflows.
func Interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&arrivalInterceptor{}}
}

// arrivals are the names of the signals that came and were not taken yet, in their order.
type arrivals struct{ names []string }

type arrivalsKey struct{}

// arrivalsOf is the order of a workflow's signals; nil where nobody notes it.
func arrivalsOf(ctx workflow.Context) *arrivals {
	a, _ := ctx.Value(arrivalsKey{}).(*arrivals)
	return a
}

// next returns the name of the signal that came first, of those that are routed.
func (a *arrivals) next(routed func(string) bool) (string, bool) {
	for len(a.names) > 0 {
		name := a.names[0]
		a.names = a.names[1:]
		if routed(name) {
			return name, true
		}
	}
	return "", false
}

type arrivalInterceptor struct {
	interceptor.WorkerInterceptorBase
}

func (*arrivalInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &arrivalInbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type arrivalInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	came arrivals
}

func (i *arrivalInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, arrivalsKey{}, &i.came), in)
}

func (i *arrivalInbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.came.names = append(i.came.names, in.SignalName)
	return i.Next.HandleSignal(ctx, in)
}
