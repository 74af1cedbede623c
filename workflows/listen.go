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
	ctx    workflow.Context
	came   *arrivals // nil: nobody notes the order
}

type route struct {
	name    string
	channel workflow.ReceiveChannel
	handle  func(payload *commonpb.Payload)
	order   bool // an operator's command
}

// on routes a signal to a handler. Routes are drained in the order of registration.
func (b *inbox) on(ctx workflow.Context, name string, handle func(payload *commonpb.Payload)) {
	b.ctx, b.came = ctx, arrivalsOf(ctx)
	b.routes = append(b.routes, route{name: name, channel: workflow.GetSignalChannel(ctx, name), handle: handle})
}

// onOrder routes an operator's command: where one waits beside other signals they
// are taken in the order in which they came.
func (b *inbox) onOrder(ctx workflow.Context, name string, handle func(payload *commonpb.Payload)) {
	b.on(ctx, name, handle)
	b.routes[len(b.routes)-1].order = true
}

// drain hands over everything that has arrived, in the order in which it came
// where several routes have something.
func (b *inbox) drain() {
	if b.mixed() && workflow.GetVersion(b.ctx, changeArrival, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		for {
			name, ok := b.came.next(b.routed)
			if !ok {
				break
			}
			r := b.route(name)
			r.receiveOne(r.handle)
		}
	}
	for i := range b.routes {
		b.routes[i].receive(b.routes[i].handle)
	}
	if b.came != nil {
		b.came.names = nil
	}
}

// mixed reports whether an order waits beside signals of other names, and it is
// known which came first. Among workflows the order of names does not matter.
func (b *inbox) mixed() bool {
	waiting, orders := 0, 0
	for i := range b.routes {
		if b.routes[i].channel.Len() > 0 {
			if waiting++; b.routes[i].order {
				orders++
			}
		}
	}
	return waiting > 1 && orders > 0 && b.came != nil
}

func (b *inbox) routed(name string) bool { return b.route(name) != nil }

func (b *inbox) route(name string) *route {
	for i := range b.routes {
		if b.routes[i].name == name {
			return &b.routes[i]
		}
	}
	return nil
}

// receive takes everything that has arrived on the route.
func (r *route) receive(take func(payload *commonpb.Payload)) {
	for r.receiveOne(take) {
	}
}

// receiveOne takes the oldest message on the route, if there is one.
func (r *route) receiveOne(take func(payload *commonpb.Payload)) bool {
	var raw converter.RawValue
	if !r.channel.ReceiveAsync(&raw) {
		return false
	}
	take(raw.Payload())
	return true
}

// carry takes everything that has arrived for the next execution of the workflow to handle.
func (b *inbox) carry() []contract.CarriedMessage {
	var messages []contract.CarriedMessage
	take := func(r *route) func(*commonpb.Payload) {
		return func(p *commonpb.Payload) {
			messages = append(messages, contract.CarriedMessage{Signal: r.name, Metadata: p.GetMetadata(), Data: p.GetData()})
		}
	}
	for b.came != nil {
		name, ok := b.came.next(b.routed)
		if !ok {
			break
		}
		r := b.route(name)
		r.receiveOne(take(r))
	}
	for i := range b.routes {
		b.routes[i].receive(take(&b.routes[i]))
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
