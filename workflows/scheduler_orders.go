package workflows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/admission"
	"mendflow/internal/contract"
)

// register makes every handler known before the first blocking call.
func (s *scheduler) register(ctx workflow.Context) error {
	s.inbox.on(ctx, contract.SignalState, func(p *commonpb.Payload) { s.takeState(ctx, p) })
	s.inbox.on(ctx, contract.CommandSubmit, func(p *commonpb.Payload) { s.takeSubmission(ctx, p) })
	err := workflow.SetUpdateHandler(ctx, contract.CommandSubmit,
		func(ctx workflow.Context, in contract.Submission) (contract.Submitted, error) {
			// Right after continue-as-new the state may still be on its way.
			if err := workflow.Await(ctx, func() bool { return s.restored }); err != nil {
				return contract.Submitted{}, err
			}
			return s.submit(ctx, in)
		})
	if err != nil {
		return fmt.Errorf("register %s: %w", contract.CommandSubmit, err)
	}
	for _, command := range schedulerCommands {
		s.inbox.on(ctx, command.name, func(p *commonpb.Payload) { s.takeOrder(ctx, command, p) })
		err := workflow.SetUpdateHandler(ctx, command.name,
			func(ctx workflow.Context, order contract.SchedulerOrder) (contract.SchedulerAnswer, error) {
				if err := workflow.Await(ctx, func() bool { return s.restored }); err != nil {
					return contract.SchedulerAnswer{}, err
				}
				return s.obey(ctx, command, order)
			})
		if err != nil {
			return fmt.Errorf("register %s: %w", command.name, err)
		}
	}
	return s.registerQueries(ctx)
}

// schedulerCommand is an operator's command: a signal and an update of the same name.
type schedulerCommand struct {
	name string
	obey func(m *admission.Scheduler, order contract.SchedulerOrder, now time.Time) contract.SchedulerAnswer
}

var schedulerCommands = []schedulerCommand{
	{contract.CommandEnable, (*admission.Scheduler).Enable},
	{contract.CommandDrain, (*admission.Scheduler).Drain},
	{contract.CommandDisable, (*admission.Scheduler).Disable},
	{contract.CommandHold, (*admission.Scheduler).Hold},
	{contract.CommandRelease, (*admission.Scheduler).Release},
	{contract.CommandCancel, (*admission.Scheduler).Cancel},
	{contract.CommandPriority, (*admission.Scheduler).Prioritize},
	{contract.CommandLimits, (*admission.Scheduler).SetLimits},
	{contract.CommandBudget, (*admission.Scheduler).SetBudget},
}

// errStateLoading answers queries that come before the state is there.
var errStateLoading = errors.New(contract.StateLoading)

func (s *scheduler) registerQueries(ctx workflow.Context) error {
	handlers := []struct {
		name   string
		answer any
	}{
		{contract.QueryStatus, func() (contract.SchedulerStatus, error) {
			if !s.restored {
				return contract.SchedulerStatus{}, errStateLoading
			}
			status := s.machine.Status()
			status.Friction = s.friction.Entries()
			return status, nil
		}},
		{contract.QueryRun, func(name string) (contract.SchedulerRun, error) {
			row, found, known := s.machine.Run(name)
			switch {
			case !s.restored:
				return row, errStateLoading
			case found:
				return row, nil
			case known:
				return row, fmt.Errorf("find run %s: it closed long ago: see `starter report %s`", name, name)
			}
			return row, fmt.Errorf("find run %s: the scheduler knows no such run", name)
		}},
		{contract.QueryRuns, func(q contract.RunsQuery) ([]contract.SchedulerRun, error) {
			if !s.restored {
				return nil, errStateLoading
			}
			return s.machine.Runs(q.Offset, q.Limit), nil
		}},
	}
	for _, h := range handlers {
		if err := workflow.SetQueryHandler(ctx, h.name, h.answer); err != nil {
			return fmt.Errorf("register query %s: %w", h.name, err)
		}
	}
	return nil
}

// submit decides about a run; a repeated request gets the answer that it got before.
func (s *scheduler) submit(ctx workflow.Context, in contract.Submission) (contract.Submitted, error) {
	id, asked := in.RequestID, in
	asked.RequestID, asked.By = "", ""
	reply, known, err := s.requests.Recall(id, payloadText(contract.CommandSubmit, asked))
	if err != nil || known && reply.Submitted != nil {
		var before contract.Submitted
		if reply.Submitted != nil {
			before = *reply.Submitted
		}
		return before, err
	}
	answer := s.machine.Submit(in, workflow.Now(ctx))
	s.requests.Remember(id, payloadText(contract.CommandSubmit, asked), schedulerReply{Submitted: &answer})
	s.dirty = true
	return answer, nil
}

// obey carries out an operator's command, likewise once per request.
func (s *scheduler) obey(ctx workflow.Context, command schedulerCommand, order contract.SchedulerOrder) (contract.SchedulerAnswer, error) {
	id, asked := order.RequestID, order
	asked.RequestID, asked.By = "", ""
	reply, known, err := s.requests.Recall(id, payloadText(command.name, asked))
	if err != nil || known && reply.Answer != nil {
		var before contract.SchedulerAnswer
		if reply.Answer != nil {
			before = *reply.Answer
		}
		return before, err
	}
	answer := command.obey(s.machine, order, workflow.Now(ctx))
	s.requests.Remember(id, payloadText(command.name, asked), schedulerReply{Answer: &answer})
	s.dirty = true
	return answer, nil
}

// payloadText is what a request asked for, as it is compared.
func payloadText(command string, asked any) string {
	data, err := json.Marshal(asked)
	if err != nil { // plain values always marshal
		panic(fmt.Sprintf("marshal request: %v", err))
	}
	return command + " " + string(data)
}

// takeOrder obeys a command that came as a signal, from whatever client.
func (s *scheduler) takeOrder(ctx workflow.Context, command schedulerCommand, payload *commonpb.Payload) {
	order, ok := decodeSchedulerOrder(payload)
	if !ok {
		s.badMessage(command.name, "could not be read: send no payload, a JSON string or a JSON object")
		return
	}
	answer, err := s.obey(ctx, command, order)
	switch {
	case err != nil:
		s.badMessage(command.name, "was refused: "+oneLine(err.Error()))
	case answer.Refused != "":
		s.machine.Note(workflow.Now(ctx), "%s refused: %s", command.name, answer.Refused)
	}
}

// takeSubmission admits a run that came as a signal.
func (s *scheduler) takeSubmission(ctx workflow.Context, payload *commonpb.Payload) {
	in, err := decode[contract.Submission](payload)
	if err != nil {
		s.badMessage(contract.CommandSubmit, "could not be read: send the JSON object of a submission")
		return
	}
	answer, err := s.submit(ctx, in)
	switch {
	case err != nil:
		s.badMessage(contract.CommandSubmit, "was refused: "+oneLine(err.Error()))
	case answer.Decision != contract.DecisionStarted && answer.Decision != contract.DecisionQueued:
		s.machine.Note(workflow.Now(ctx), "submission of %s %s (%s): %s", in.Plan, answer.Decision, answer.Cause, answer.Reason)
	}
}

// takeState applies what a run says of itself.
func (s *scheduler) takeState(ctx workflow.Context, payload *commonpb.Payload) {
	state, err := decode[contract.RunState](payload)
	if err == nil {
		err = s.machine.Report(state, workflow.Now(ctx))
	}
	if err != nil {
		workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalState, "error", err)
		if !errors.Is(err, admission.ErrUnknownRun) {
			s.badMessage(contract.SignalState, oneLine(err.Error()))
		}
		return
	}
	s.dirty = true
}

func (s *scheduler) badMessage(name, what string) {
	s.friction.Add(contract.Friction{
		Type: contract.FrictionBadMessage, Discriminator: name, Severity: "warning", Note: fmt.Sprintf("a %s signal %s", name, what),
	})
}

// decodeSchedulerOrder reads a command as any client sends it: no payload, a
// bare JSON string (the reason) or an object. ok is false for anything else.
func decodeSchedulerOrder(payload *commonpb.Payload) (contract.SchedulerOrder, bool) {
	data := bytes.TrimSpace(payload.GetData())
	if len(data) == 0 || string(data) == "null" {
		return contract.SchedulerOrder{}, true
	}
	var order contract.SchedulerOrder
	switch data[0] {
	case '"':
		return order, json.Unmarshal(data, &order.Reason) == nil
	case '{':
		return order, json.Unmarshal(data, &order) == nil
	default:
		return order, false
	}
}
