package workflows

import (
	"bytes"
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// inbox is the one listener of a workflow: it owns the signal channels and is
// drained by the main loop, so that nothing else writes state. Signals are
// taken as raw payloads: one that does not decode is handed on as malformed
// instead of being dropped.
type inbox struct {
	routes []route
}

type route struct {
	name    string
	channel workflow.ReceiveChannel
	handle  func(payload *commonpb.Payload)
}

// on routes a signal to a handler. Routes are drained in the order of registration.
func (b *inbox) on(ctx workflow.Context, name string, handle func(payload *commonpb.Payload)) {
	b.routes = append(b.routes, route{name, workflow.GetSignalChannel(ctx, name), handle})
}

// drain hands over everything that has arrived.
func (b *inbox) drain() {
	for i := range b.routes {
		b.routes[i].receive(b.routes[i].handle)
	}
}

// receive takes everything that has arrived on the route.
func (r *route) receive(take func(payload *commonpb.Payload)) {
	for {
		var raw converter.RawValue
		if !r.channel.ReceiveAsync(&raw) {
			return
		}
		take(raw.Payload())
	}
}

// carry takes everything that has arrived for the next execution of the workflow to handle.
func (b *inbox) carry() []contract.CarriedMessage {
	var messages []contract.CarriedMessage
	for i := range b.routes {
		r := &b.routes[i]
		r.receive(func(p *commonpb.Payload) {
			messages = append(messages, contract.CarriedMessage{Signal: r.name, Metadata: p.GetMetadata(), Data: p.GetData()})
		})
	}
	return messages
}

// deliver hands over what the execution before this one carried.
func (b *inbox) deliver(messages []contract.CarriedMessage) {
	for _, m := range messages {
		for _, r := range b.routes {
			if r.name == m.Signal {
				r.handle(&commonpb.Payload{Metadata: m.Metadata, Data: m.Data})
			}
		}
	}
}

// pending reports whether a signal waits to be drained.
func (b *inbox) pending() bool {
	for _, r := range b.routes {
		if r.channel.Len() > 0 {
			return true
		}
	}
	return false
}

// decode reads an internal message: JSON of a known type. Internal senders are
// of our own making, so an error means a foreign or damaged message.
func decode[T any](payload *commonpb.Payload) (T, error) {
	var v T
	err := converter.GetDefaultDataConverter().FromPayload(payload, &v)
	return v, err
}

// decodeOperator reads an operator command as any client sends it: no payload,
// a bare JSON string (the reason) or an object. ok is false for anything else.
func decodeOperator(payload *commonpb.Payload) (contract.Operator, bool) {
	data := bytes.TrimSpace(payload.GetData())
	if len(data) == 0 || string(data) == "null" {
		return contract.Operator{}, true
	}
	var reason string
	if json.Unmarshal(data, &reason) == nil {
		return contract.Operator{Reason: reason}, true
	}
	var command contract.Operator
	if err := json.Unmarshal(data, &command); err != nil || data[0] != '{' {
		return contract.Operator{}, false
	}
	return command, true
}
