package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/run"
)

// partSize bounds one stored part of a run's state; base64 in a payload adds a third.
const partSize = 40 << 10

// inlineSize is how much state may travel in the input of the next execution,
// and messageSize how much of what arrived last; base64 adds a third to both.
const (
	inlineSize  = 20 << 10
	messageSize = 20 << 10
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
}

// mayContinue reports whether the run should continue as new: the server
// suggests it and no job is under way.
func (r *remediation) mayContinue(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.front != nil && r.work == nil && r.baseline == nil
}

// sent reports whether nothing is on its way: every message was acknowledged, every handler is done.
func (r *remediation) sent(ctx workflow.Context) bool {
	if r.probing > 0 {
		return false
	}
	for _, d := range r.drives {
		if !d.box.idle() {
			return false
		}
	}
	return workflow.AllHandlersFinished(ctx)
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
	}
	data, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write carried state: %w", err)
	}
	next := r.in
	next.Carried = &contract.Carried{}
	if len(data) <= inlineSize {
		next.Carried.Inline = data
	} else if next.Carried.Parts, err = r.store(ctx, "carried", data); err != nil {
		return fmt.Errorf("store carried state: %w", err)
	}
	if r.dirty || cancelled() || !r.sent(ctx) {
		return nil
	}
	messages := r.inbox.carry()
	size := 0
	for _, m := range messages {
		size += len(m.Data)
	}
	if size > messageSize {
		r.inbox.deliver(messages)
		r.dirty = true
		return nil
	}
	next.Carried.Messages = messages
	return workflow.NewContinueAsNewError(ctx, contract.WorkflowRemediation, next)
}

// restore reads what the execution before this one carried over.
func (r *remediation) restore(ctx workflow.Context) error {
	if r.in.Carried == nil {
		r.restored = true
		return nil
	}
	data, err := r.load(ctx, r.in.Carried)
	if err != nil {
		return fmt.Errorf("load carried state: %w", err)
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
	r.events, r.start = state.Events, state.Started.At
	for _, d := range r.drives {
		r.connect(d)
	}
	messages := r.in.Carried.Messages
	r.in.Carried, r.restored = nil, true
	r.inbox.deliver(messages)
	return nil
}

// store puts data into the artifact store in parts that fit into payloads, all at once.
func (r *remediation) store(ctx workflow.Context, name string, data []byte) ([]contract.Artifact, error) {
	var saves []workflow.Future
	for part := range slices.Chunk(data, partSize) {
		in := contract.StateInput{Run: r.in.Run, Name: fmt.Sprintf("%s-%03d", name, len(saves)), Data: part}
		saves = append(saves, workflow.ExecuteActivity(withLightOptions(ctx, "store "+in.Name), artifact.SaveState, in))
	}
	parts := make([]contract.Artifact, len(saves))
	for i, save := range saves {
		if err := save.Get(ctx, &parts[i]); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// load brings the carried state together.
func (r *remediation) load(ctx workflow.Context, carried *contract.Carried) ([]byte, error) {
	if len(carried.Parts) == 0 {
		return carried.Inline, nil
	}
	var loads []workflow.Future
	for _, part := range carried.Parts {
		loads = append(loads, workflow.ExecuteActivity(withLightOptions(ctx, "load carried state"), artifact.LoadState, part))
	}
	var data []byte
	for _, load := range loads {
		var part []byte
		if err := load.Get(ctx, &part); err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	return data, nil
}

// record is what the report is made of.
func (r *remediation) record() []byte {
	rec := contract.RunRecord{View: r.view(), Dispositions: r.opened.Dropped, Baseline: r.base, Gate: r.gate}
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
