package workflows

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"mendflow/internal/contract"
)

// history reads the events of an execution; the latest run without a run id.
func (l *lab) history(id, runID string) *historypb.History {
	l.t.Helper()
	var h historypb.History
	events := l.client.GetWorkflowHistory(l.t.Context(), id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(l.t, err)
		h.Events = append(h.Events, event)
	}
	return &h
}

// execution is one workflow of a run.
type execution struct{ id, runID string }

// executions lists every workflow of the run that was ever started, by following histories.
func (l *lab) executions() []execution {
	l.t.Helper()
	var all []execution
	var follow func(id, runID string)
	follow = func(id, runID string) {
		all = append(all, execution{id, runID})
		for _, e := range l.history(id, runID).Events {
			if child := e.GetChildWorkflowExecutionStartedEventAttributes(); child != nil {
				follow(child.WorkflowExecution.WorkflowId, child.WorkflowExecution.RunId)
			}
			if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); next != nil {
				follow(id, next.NewExecutionRunId)
			}
		}
	}
	follow(l.id, l.firstRun())
	return all
}

// firstRun is the first execution of the run's chain.
func (l *lab) firstRun() string {
	l.t.Helper()
	described, err := l.client.DescribeWorkflowExecution(patience(l.t), l.id, "")
	require.NoError(l.t, err)
	return described.GetWorkflowExecutionInfo().GetFirstRunId()
}

// payloadLimit is the rule of the design for everything of ours.
const payloadLimit = 64 << 10

// checkHistories makes sure that no workflow task failed (a panic, or code that
// is not deterministic) and that every payload of ours is small.
func (l *lab) checkHistories() {
	l.t.Helper()
	executions := l.executions()
	if l.host.count("LoadUnits") > 0 { // brokers are started before
		for _, account := range l.accounts() {
			executions = append(executions, execution{contract.BrokerID(account), ""})
		}
	}
	for _, x := range executions {
		history := l.history(x.id, x.runID)
		if len(history.GetEvents()) < 3 {
			continue // started this moment: it has decided nothing that could be replayed
		}
		if err := newReplayer(l.t).ReplayWorkflowHistory(quietLogger{}, history); err != nil {
			l.t.Errorf("%s: replay: %v", x.id, err)
		}
		for _, e := range history.Events {
			if failed := e.GetWorkflowTaskFailedEventAttributes(); failed != nil && !expectedFailures[failed.Cause] {
				l.t.Errorf("%s: workflow task failed: %v %v", x.id, failed.Cause, failed.Failure)
			}
			if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == foreignSignal {
				continue
			}
			if size := largestPayload(e.ProtoReflect()); size > payloadLimit {
				l.t.Errorf("%s: event %d %s has a payload of %d bytes", x.id, e.EventId, e.EventType, size)
			}
		}
	}
}

// expectedFailures of a workflow task are the server's way to say that something
// came in meanwhile: the task is done again.
var expectedFailures = map[enumspb.WorkflowTaskFailedCause]bool{
	enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND:   true,
	enumspb.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND: true, // a lot came in: the tests' ballast
}

// foreignSignal is one that tests send only to make a history long.
const foreignSignal = "ballast"

func (l *lab) accounts() []string {
	book := newPoolBook(l.in.Pools)
	return book.accounts()
}

// largestPayload finds the largest payload anywhere in a message.
func largestPayload(m protoreflect.Message) int {
	if p, ok := m.Interface().(*commonpb.Payload); ok {
		return proto.Size(p)
	}
	most := 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Kind() == protoreflect.MessageKind:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				most = max(most, largestPayload(v.Message()))
				return true
			})
		case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				most = max(most, largestPayload(v.List().Get(i).Message()))
			}
		case !fd.IsMap() && !fd.IsList() && fd.Kind() == protoreflect.MessageKind:
			most = max(most, largestPayload(v.Message()))
		}
		return true
	})
	return most
}

// dump logs the end of the run's history.
func (l *lab) dump() {
	events := l.client.GetWorkflowHistory(context.Background(), l.id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var lines []string
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			break
		}
		text := prototext.MarshalOptions{}.Format(e)
		lines = append(lines, text[:min(len(text), 300)])
	}
	if answer, err := l.client.QueryWorkflow(context.Background(), l.id, "", contract.QueryStatus); err == nil {
		var v contract.RunView
		_ = answer.Get(&v)
		l.t.Logf("%s is %s, holds %v, nodes %v, events %v", l.id, v.Status, v.Holds, v.Nodes, v.Events)
	}
	l.t.Logf("last events of %s:\n%s", l.id, strings.Join(lines[max(0, len(lines)-15):], "\n"))
}
