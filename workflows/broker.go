package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
)

// holderCheckEvery is how often a broker looks whether its holders still exist.
// A terminated drive tells nobody; its slots come back by this.
const holderCheckEvery = 2 * time.Minute

// Broker grants the slots of one provider account across all runs. It is an
// entity: started when somebody needs it, continued as new, never finished.
func Broker(ctx workflow.Context, in contract.BrokerInput) error {
	b := &broker{account: in.Account, machine: dispatch.NewBroker(in.Account), boxes: map[string]*outbox[contract.Grants]{}}
	if err := b.register(ctx); err != nil {
		return err
	}
	if err := b.restore(ctx, in.Carried); err != nil {
		return err
	}
	return b.run(ctx)
}

type broker struct {
	account string
	machine *dispatch.Broker
	inbox   inbox
	boxes   map[string]*outbox[contract.Grants]
	order   []string // holders that have an outbox, in order of their first push
	waking  int      // runs being told
	gone    []string // holders that could not be reached
	alarm   alarm
	checked time.Time
	dirty   bool

	restored bool // what the execution before this one carried is in
}

func (b *broker) register(ctx workflow.Context) error {
	b.inbox.on(ctx, contract.SignalTickets, func(p *commonpb.Payload) {
		message, err := decode[contract.Tickets](p)
		if err != nil || message.Holder == "" {
			workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.SignalTickets, "error", err)
			return
		}
		b.take(ctx, message)
	})
	b.inbox.on(ctx, contract.CommandReopen, func(p *commonpb.Payload) {
		order, ok := decodeOperator(p)
		if !ok {
			workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.CommandReopen)
			return
		}
		if err := b.reopen(ctx, order); err != nil {
			workflow.GetLogger(ctx).Warn("ignore message", "signal", contract.CommandReopen, "error", err)
		}
	})
	if err := workflow.SetQueryHandler(ctx, contract.QueryStatus, func() (contract.BrokerStatus, error) {
		return b.machine.Status(workflow.Now(ctx)), nil
	}); err != nil {
		return fmt.Errorf("register query: %w", err)
	}
	err := workflow.SetUpdateHandler(ctx, contract.CommandReopen, func(ctx workflow.Context, order contract.Operator) (contract.BrokerStatus, error) {
		// Right after continue-as-new the state may still be on its way.
		if err := workflow.Await(ctx, func() bool { return b.restored }); err != nil {
			return contract.BrokerStatus{}, err
		}
		err := b.reopen(ctx, order)
		return b.machine.Status(workflow.Now(ctx)), err
	})
	if err != nil {
		return fmt.Errorf("register update: %w", err)
	}
	return nil
}

// take applies what a drive says. A holder that should be known and is not has
// been forgotten: this broker is a new one, and the holder is told.
func (b *broker) take(ctx workflow.Context, message contract.Tickets) {
	if message.Seq != 1 && !slices.Contains(b.machine.Holders(), message.Holder) {
		b.box(message.Holder).send(ctx, contract.Grants{Account: b.account, Forgot: true})
	}
	b.push(ctx, b.machine.Apply(message, workflow.Now(ctx))) // a mere question makes the holder known
	for _, end := range message.Settle {
		if len(end.Windows) > 0 {
			b.push(ctx, b.machine.Observe("", end.Windows, workflow.Now(ctx)))
		}
	}
}

// reopen lifts pauses and exhaustions for an operator, or only tries the pauses.
func (b *broker) reopen(ctx workflow.Context, order contract.Operator) error {
	b.dirty = true
	if order.Now {
		b.push(ctx, b.machine.Probe(workflow.Now(ctx)))
		return nil
	}
	pushes, err := b.machine.Reopen(order.RequestID, order.Model, workflow.Now(ctx))
	b.push(ctx, pushes)
	return err
}

func (b *broker) run(ctx workflow.Context) error {
	for {
		b.dirty = false
		b.inbox.drain()
		now := workflow.Now(ctx)
		for _, holder := range b.gone {
			b.push(ctx, b.machine.HolderGone(holder, now))
		}
		b.gone = nil
		if b.alarm.ring() {
			b.push(ctx, b.machine.Tick(now))
			b.checkHolders(ctx, now)
		}
		b.describe(ctx)
		changed := func() bool { return b.dirty || len(b.gone) > 0 }
		renew := workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		ready := func() bool {
			return changed() || b.inbox.pending() || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		}
		if renew {
			// Nothing is taken in any more: a steady stream of messages must not keep the history growing.
			ready = func() bool { return changed() || b.quiet(ctx) }
		}
		b.alarm.set(ctx, b.wake(now), "next window or check of "+b.account)
		if err := wait(ctx, &b.alarm, ready); err != nil {
			return err
		}
		if renew && !changed() && b.quiet(ctx) {
			if err := b.continueAsNew(ctx, changed); err != nil {
				return err
			}
		}
	}
}

// wake is the next instant at which something can change by itself.
func (b *broker) wake(now time.Time) time.Time {
	at := b.machine.Wake()
	if len(b.machine.Holders()) > 0 {
		if b.checked.IsZero() {
			b.checked = now
		}
		if check := b.checked.Add(holderCheckEvery); at.IsZero() || check.Before(at) {
			at = check
		}
	} else {
		b.checked = time.Time{}
	}
	return at
}

// push sends what the machine decided, one message in flight per holder.
func (b *broker) push(ctx workflow.Context, pushes []dispatch.Push) {
	for _, p := range pushes {
		if p.Holder == "" {
			b.wakeRun(ctx, p)
			continue
		}
		b.box(p.Holder).send(ctx, p.Grants)
	}
}

// box is the outbox to a holder. Those of holders that left are forgotten when
// the broker continues as new.
func (b *broker) box(holder string) *outbox[contract.Grants] {
	box, ok := b.boxes[holder]
	if !ok {
		box = &outbox[contract.Grants]{
			target: holder, signal: contract.SignalGrants, merge: mergeGrants,
			lost: func(workflow.Context, contract.Grants, error) { b.gone = append(b.gone, holder) },
		}
		b.boxes[holder] = box
		b.order = append(b.order, holder)
	}
	return box
}

// wakeRun tells a run that waits without a drive that something was lifted early.
// A run that has closed meanwhile needs no word.
func (b *broker) wakeRun(ctx workflow.Context, p dispatch.Push) {
	b.waking++
	workflow.Go(ctx, func(ctx workflow.Context) {
		err := workflow.SignalExternalWorkflow(ctx, contract.RemediationID(p.Run), "", contract.SignalPoolState, p.Grants).Get(ctx, nil)
		if err != nil {
			workflow.GetLogger(ctx).Info("wake run", "run", p.Run, "error", err)
		}
		b.waking--
		b.dirty = true
	})
}

func mergeGrants(older, newer contract.Grants) (contract.Grants, bool) {
	if newer.Forgot {
		return older, false
	}
	older.Seq, older.Coverage = newer.Seq, cmp.Or(newer.Coverage, older.Coverage)
	older.Granted = append(older.Granted, newer.Granted...)
	older.Refused = append(older.Refused, newer.Refused...)
	if newer.States != nil {
		// A lift is told once: it stands unless the newer message speaks of the same key.
		for _, s := range older.States {
			same := func(n contract.AccountState) bool { return n.Model == s.Model }
			if s.State == "live" && !slices.ContainsFunc(newer.States, same) {
				newer.States = append(newer.States, s)
			}
		}
		older.States = newer.States
	}
	return older, true
}

// quiet reports whether nothing is on its way.
func (b *broker) quiet(ctx workflow.Context) bool {
	if b.waking > 0 || !workflow.AllHandlersFinished(ctx) {
		return false
	}
	for _, holder := range b.order {
		if !b.boxes[holder].idle() {
			return false
		}
	}
	return true
}

// checkHolders asks the server about every holder, at most every holderCheckEvery.
func (b *broker) checkHolders(ctx workflow.Context, now time.Time) {
	if b.checked.IsZero() || now.Before(b.checked.Add(holderCheckEvery)) {
		return
	}
	b.checked = now
	holders := b.machine.Holders()
	if len(holders) == 0 {
		return
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		var closed []string
		actx := withLightOptions(ctx, "look for vanished holders of "+b.account)
		if err := workflow.ExecuteActivity(actx, service.ClosedWorkflows, holders).Get(ctx, &closed); err != nil {
			workflow.GetLogger(ctx).Warn("check holders", "error", err)
			return
		}
		b.gone = append(b.gone, closed...)
	})
}

// continueAsNew returns nil when the state changed while it was being stored.
func (b *broker) continueAsNew(ctx workflow.Context, changed func() bool) error {
	data, err := json.Marshal(b.machine)
	if err != nil {
		return fmt.Errorf("write carried state: %w", err)
	}
	carried, err := pack(ctx, contract.BrokerID(b.account), data)
	if err != nil {
		return err
	}
	if changed() || !b.quiet(ctx) || !b.inbox.carryMessages(carried) {
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, contract.WorkflowBroker, contract.BrokerInput{Account: b.account, Carried: carried})
}

// restore reads what the execution before this one carried over.
func (b *broker) restore(ctx workflow.Context, carried *contract.Carried) error {
	if carried != nil {
		data, err := unpack(ctx, carried)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, b.machine); err != nil {
			return fmt.Errorf("read carried state: %w", err)
		}
		b.inbox.deliver(carried.Messages)
	}
	b.restored = true
	return nil
}

// describe shows the account in the Web UI.
func (b *broker) describe(ctx workflow.Context) {
	s := b.machine.Status(workflow.Now(ctx))
	var text strings.Builder
	fmt.Fprintf(&text, "**account %s**: %d of %d slots in use, %d waiting\n", s.Account, s.Running, s.Max, s.Waiting)
	for _, state := range s.States {
		fmt.Fprintf(&text, "\n- %s %s: %s", orAll(state.Model), state.State, state.Reason)
		if state.Until != nil {
			fmt.Fprintf(&text, ", until %s", state.Until.UTC().Format(time.RFC3339))
		}
		if state.State != "live" {
			fmt.Fprintf(&text, "; end it with `starter pools reopen %s`", s.Account)
		}
	}
	workflow.SetCurrentDetails(ctx, text.String())
}

func orAll(model string) string {
	if model == "" {
		return "all models"
	}
	return "model " + model
}
