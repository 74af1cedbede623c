package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/admission"
	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// carriedScheduler is everything of a scheduler that outlives continue-as-new.
type carriedScheduler struct {
	Machine  *admission.Scheduler         `json:"machine"`
	Requests run.Requests[schedulerReply] `json:"requests,omitzero"`
	Friction *run.FrictionBook            `json:"friction"`
}

// mayContinue reports whether the scheduler should continue as new: the server
// suggests it, and no run is being started. A start may take long when no
// worker is there, and others are served meanwhile.
func (s *scheduler) mayContinue(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && len(s.starting) == 0 && !s.paging
}

// quiet reports whether nothing is on its way.
func (s *scheduler) quiet(ctx workflow.Context) bool {
	if len(s.starting) > 0 || s.paging || !workflow.AllHandlersFinished(ctx) {
		return false
	}
	for _, name := range s.order {
		if !s.boxes[name].idle() {
			return false
		}
	}
	return true
}

// continueAsNew returns nil when the state changed while it was being stored.
func (s *scheduler) continueAsNew(ctx workflow.Context, changed func() bool) error {
	data, err := json.Marshal(carriedScheduler{Machine: s.machine, Requests: s.requests, Friction: s.friction})
	if err != nil {
		return fmt.Errorf("write carried state: %w", err)
	}
	carried, err := pack(ctx, s.id, data)
	if err != nil {
		return err
	}
	if changed() || !s.quiet(ctx) || !s.inbox.carryMessages(carried) {
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, contract.WorkflowScheduler, contract.SchedulerInput{Carried: carried})
}

// restore reads what the execution before this one carried over.
func (s *scheduler) restore(ctx workflow.Context, carried *contract.Carried) error {
	if carried != nil {
		data, err := unpack(ctx, carried)
		if err != nil {
			return err
		}
		state := carriedScheduler{Machine: s.machine, Friction: s.friction}
		if err := json.Unmarshal(data, &state); err != nil {
			return fmt.Errorf("read carried state: %w", err)
		}
		s.requests = state.Requests
		s.inbox.deliver(carried.Messages)
	}
	s.restored = true
	return nil
}
