package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// changeRequests: from then on a repeated request is answered as before; earlier
// executions carried every repetition out.
const changeRequests = "answer-repeated-requests"

// reasonSize bounds what operators may write into holds, answers and the report.
const reasonSize = 500

// command carries an operator's order out and says what it did.
type command func(workflow.Context, contract.Operator) contract.OperatorAnswer

// once makes a command answer a request that it has seen as it did then, and
// refuse an id that comes back with another payload.
func once(memory *run.Requests[contract.OperatorAnswer], name string, obey command) func(workflow.Context, contract.Operator) (contract.OperatorAnswer, error) {
	return func(ctx workflow.Context, order contract.Operator) (contract.OperatorAnswer, error) {
		what := asked(name, order)
		answer, known, err := memory.Recall(order.RequestID, what)
		if known && workflow.GetVersion(ctx, changeRequests, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
			return answer, reused(err)
		}
		order.Reason, order.By = clip(order.Reason, reasonSize), clip(order.By, reasonSize)
		answer = obey(ctx, order)
		memory.Remember(order.RequestID, what, answer)
		return answer, nil
	}
}

// asked is what a request asked for: who sent it, and under which id, is no part of that.
func asked(name string, order contract.Operator) string {
	order.RequestID, order.By = "", ""
	data, err := json.Marshal(order)
	if err != nil { // plain values always marshal
		panic(err)
	}
	return name + " " + string(data)
}

// reused is the typed form of a refusal to take a request id for something else.
func reused(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorRequestReused, nil)
}
