package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// partSize bounds one stored part of a workflow's state; base64 in a payload adds a third.
const partSize = 40 << 10

// inlineSize is how much state may travel in the input of the next execution,
// and messageSize how much of what arrived last; base64 adds a third to both.
const (
	inlineSize  = 20 << 10
	messageSize = 20 << 10
)

// pack brings a workflow's state into the form that continue-as-new carries.
// owner is the name under which the parts of a large state are stored.
func pack(ctx workflow.Context, owner string, state []byte) (*contract.Carried, error) {
	if len(state) <= inlineSize {
		return &contract.Carried{Inline: state}, nil
	}
	parts, err := saveParts(ctx, owner, "carried", state)
	if err != nil {
		return nil, fmt.Errorf("store carried state: %w", err)
	}
	return &contract.Carried{Parts: parts}, nil
}

// unpack brings the state back together.
func unpack(ctx workflow.Context, carried *contract.Carried) ([]byte, error) {
	if len(carried.Parts) == 0 {
		return carried.Inline, nil
	}
	var loads []workflow.Future
	for _, part := range carried.Parts {
		loads = append(loads, workflow.ExecuteActivity(withLightOptions(ctx, "load carried state"), artifact.LoadState, part))
	}
	var state []byte
	for _, load := range loads {
		var part []byte
		if err := load.Get(ctx, &part); err != nil {
			return nil, fmt.Errorf("load carried state: %w", err)
		}
		state = append(state, part...)
	}
	return state, nil
}

// saveParts puts data into the artifact store in parts that fit into payloads, all at once.
func saveParts(ctx workflow.Context, owner, name string, data []byte) ([]contract.Artifact, error) {
	var saves []workflow.Future
	for part := range slices.Chunk(data, partSize) {
		in := contract.StateInput{Run: owner, Name: fmt.Sprintf("%s-%03d", name, len(saves)), Data: part}
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

// carryMessages takes what has arrived into the next execution; false, with
// everything handled here, when it is too much for its input.
func (b *inbox) carryMessages(next *contract.Carried) bool {
	messages := b.carry()
	size := 0
	for _, m := range messages {
		size += len(m.Data)
	}
	if size > messageSize {
		b.deliver(messages)
		return false
	}
	next.Messages = messages
	return true
}
