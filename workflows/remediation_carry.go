package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/run"
)

// carriedState is everything that outlives continue-as-new.
type carriedState struct {
	Stage    stage                  `json:"stage"`
	Status   contract.RunStatus     `json:"status"`
	Verdict  contract.RunStatus     `json:"verdict,omitempty"`
	Reason   string                 `json:"reason,omitempty"`
	Opened   contract.OpenRunResult `json:"opened"`
	Front    *dispatch.Frontier     `json:"front"`
	Holds    *run.Holds             `json:"holds"`
	Friction *run.FrictionBook      `json:"friction"`
	Drives   []*drive               `json:"drives,omitempty"`
	Launched int                    `json:"launched"`
	Pools    []contract.PoolState   `json:"pools"`
	Used     []bool                 `json:"used"`
	Usage    contract.UsageView     `json:"usage"`
	Budget   dispatch.Budget        `json:"budget"`
	Base     *contract.GateEnd      `json:"base,omitempty"`
	Gate     *contract.GateEnd      `json:"gate,omitempty"`
	Round    int                    `json:"round,omitempty"`
	Pause    *contract.StopMode     `json:"pause,omitempty"`
	Cancel   bool                   `json:"cancel,omitempty"`
	Events   []contract.Event       `json:"events,omitempty"`
	Started  contract.Event         `json:"started"`
	Notices  noticeBook             `json:"notices,omitzero"`
	Claims   claimBook              `json:"claims,omitzero"`

	Gates gateBook `json:"gates,omitzero"`

	Scheduling *scheduling `json:"scheduling,omitempty"`

	Requests run.Requests[contract.OperatorAnswer] `json:"requests,omitzero"`
	Unproven []contract.Unproven                   `json:"unproven,omitempty"`
	Unserved bool                                  `json:"unserved,omitempty"`
}

// mayContinue reports whether the run should continue as new: the server
// suggests it and no job is under way.
func (r *remediation) mayContinue(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.front != nil && r.work == nil && r.baseline == nil
}

// sent reports whether nothing is on its way: every message was acknowledged, every handler is done.
func (r *remediation) sent(ctx workflow.Context) bool {
	if r.notices.starting > 0 || r.probing > 0 || !r.claims.idle() {
		return false
	}
	for _, d := range r.drives {
		if !d.box.idle() {
			return false
		}
	}
	return r.toldScheduler() && workflow.AllHandlersFinished(ctx)
}

// continueAsNew returns nil when the state changed while it was being stored
// (an update, a cancel): the loop takes that first and tries again. Signals do
// not change it, they are carried as they arrived.
func (r *remediation) continueAsNew(ctx workflow.Context, cancelled func() bool) error {
	state := carriedState{
		Stage: r.stage, Status: r.status, Verdict: r.verdict, Reason: r.reason, Opened: r.opened, Front: r.front,
		Holds: r.holds, Friction: r.friction, Drives: r.drives, Launched: r.launched,
		Pools: r.pools.states, Used: r.pools.seen, Usage: r.usage, Budget: r.budget, Base: r.base, Gate: r.gate, Round: r.round,
		Pause: r.pause, Cancel: r.cancel, Events: r.events, Started: contract.Event{At: r.start},
		Requests: r.requests, Gates: r.gates, Unproven: r.unproven(), Unserved: r.hosts.wanted,
		Scheduling: r.scheduling,
	}
	state.Claims = r.claims
	state.Notices = r.notices
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write carried state: %w", err)
	}
	next := r.in
	if next.Carried, err = pack(ctx, r.in.Run, data); err != nil {
		return err
	}
	if r.dirty || cancelled() || !r.sent(ctx) {
		return nil
	}
	if !r.inbox.carryMessages(next.Carried) {
		r.dirty = true
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, contract.WorkflowRemediation, next)
}

// restore reads what the execution before this one carried over.
func (r *remediation) restore(ctx workflow.Context) error {
	if r.in.Carried == nil {
		r.restored = true
		return nil
	}
	data, err := unpack(ctx, r.in.Carried)
	if err != nil {
		return err
	}
	state := carriedState{Front: dispatch.NewFrontier(nil, dispatch.FrontierOptions{}), Holds: r.holds, Friction: r.friction}
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("read carried state: %w", err)
	}
	r.stage, r.status, r.verdict, r.reason = state.Stage, state.Status, state.Verdict, state.Reason
	r.opened, r.front = state.Opened, state.Front
	r.holds, r.friction, r.drives, r.launched = state.Holds, state.Friction, state.Drives, state.Launched
	r.pools.states, r.pools.seen, r.usage, r.budget = state.Pools, state.Used, state.Usage, state.Budget
	r.base, r.gate, r.round, r.pause, r.cancel = state.Base, state.Gate, state.Round, state.Pause, state.Cancel
	r.events, r.start, r.requests = state.Events, state.Started.At, state.Requests
	for _, d := range r.drives {
		r.connect(d)
	}
	r.claims = state.Claims
	r.gates = state.Gates
	r.restoreScheduling(state.Scheduling)
	r.hosts.wanted = state.Unserved
	for _, u := range state.Unproven {
		r.loose = append(r.loose, &loose{Unproven: u})
	}
	r.notices = state.Notices
	r.told = measured{r.status, r.holdRows()} // the execution before this one told it
	messages := r.in.Carried.Messages
	r.in.Carried, r.restored = nil, true
	r.inbox.deliver(messages)
	return nil
}

// record is what the report is made of.
func (r *remediation) record() []byte {
	rec := contract.RunRecord{View: r.view(), Baseline: r.base, Gate: r.gate}
	if len(r.gates.Rounds) > 1 || len(r.gates.attributions()) > 0 {
		rec.Gates = r.gates.Rounds
	}
	rec.View.Status, rec.View.ClosedAt = r.verdict, r.closed // the report tells how the run closes
	if r.front != nil {
		rec.Nodes = r.front.Nodes(0, r.front.Progress().Total)
		rec.Items = r.front.Items()
	}
	data, err := json.Marshal(rec)
	if err != nil { // plain values always marshal
		panic(fmt.Sprintf("marshal run record: %v", err))
	}
	return data
}
