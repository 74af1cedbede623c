package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// Of windows, in thousandths used (dispatch.md, The broker).
const (
	windowNearly = 950  // from here one attempt at a time
	windowFull   = 1000 // cooldown until the reset
)

// cooldownWindow is the window that Status invents while a cooldown holds and
// no structured fact is known: a budget is zero then, never unknown.
const cooldownWindow = "cooldown"

// Coverage of an account (contract.BrokerStatus).
const (
	coverageNone     = "none"     // nothing was ever learned
	coverageReactive = "reactive" // limits are learned by running into them
	coverageReported = "reported" // the provider reports its windows
)

// brokerWindow is a structured fact about a quota window of the account or one of its models.
type brokerWindow struct {
	Model string `json:"model,omitempty"`
	contract.Window
}

// Observe takes structured facts of a provider about the account's windows, or
// about those of one model. A used-up window closes the key until its reset.
func (b *Broker) Observe(model string, windows []contract.Window, now time.Time) []Push {
	o := b.begin(now)
	for _, fact := range windows {
		if fact.ResetAt != nil && !fact.ResetAt.After(now) {
			continue
		}
		o.seen(coverageReported)
		b.keepWindow(brokerWindow{Model: model, Window: fact})
		if fact.UsedPermill < windowFull || fact.ResetAt == nil {
			continue
		}
		if w := b.wall(model); !w.stands() || w.Phase == wallPaused && w.Until.Before(*fact.ResetAt) {
			w.Series = time.Time{}
			o.cool(w, contract.OutcomeRateLimited, "window "+fact.Name+" is used up", *fact.ResetAt)
		}
	}
	return o.end()
}

func (b *Broker) keepWindow(w brokerWindow) {
	at, found := slices.BinarySearchFunc(b.state.Windows, w, func(a, b brokerWindow) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Name, b.Name))
	})
	if !found {
		b.state.Windows = slices.Insert(b.state.Windows, at, w)
	}
	b.state.Windows[at] = w
}

// Reopen lifts, for an operator, the pauses and exhaustions of the account, or
// of one model only, and forgets its windows. What it reopens is probed by one
// ticket first. A request (its id, empty for none) is carried out once; the
// same id with another model is an error.
func (b *Broker) Reopen(request, model string, now time.Time) ([]Push, error) {
	o := b.begin(now)
	if done, err := b.requested(request, "reopen "+model); done || err != nil {
		return o.end(), err
	}
	for i := range b.state.Walls {
		w := &b.state.Walls[i]
		if !w.stands() || model != "" && model != w.Model {
			continue
		}
		*w = brokerWall{Model: w.Model, Phase: wallOpen, Began: now}
		o.lift(w, "")
	}
	b.state.Windows = slices.DeleteFunc(b.state.Windows, func(w brokerWindow) bool { return model == "" || w.Model == model })
	return o.end(), nil
}

// Probe ends, for an operator who does not want to wait, the pauses of the
// account and forgets its used-up windows: one ticket tries whether the wall
// still stands. Exhaustions stay, and so does what a run has settled.
func (b *Broker) Probe(now time.Time) []Push {
	o := b.begin(now)
	for i := range b.state.Walls {
		if w := &b.state.Walls[i]; w.Phase == wallPaused {
			o.lift(w, w.Outcome)
		}
	}
	b.state.Windows = slices.DeleteFunc(b.state.Windows, func(w brokerWindow) bool { return w.UsedPermill >= windowFull })
	return o.end()
}

// Reconcile replaces what was charged without knowing by what an operator found out.
func (b *Broker) Reconcile(request string, used contract.Usage) error {
	if done, err := b.requested(request, fmt.Sprintf("reconcile %+v", used)); done || err != nil {
		return err
	}
	b.state.Unsure = 0
	b.settled(used)
	return nil
}

// requested remembers a request and reports whether it was carried out before.
func (b *Broker) requested(id, what string) (done bool, err error) {
	_, done, err = b.state.Requests.Recall(id, what)
	b.state.Requests.Remember(id, what, struct{}{})
	return done, err
}

// charge counts what a ticket used: as told, else its whole reservation.
func (o *brokerOp) charge(t *brokerTicket, end *contract.TicketEnd) {
	if !t.alive() || end.StartedAt.IsZero() && !end.Usage.Known {
		return // never started
	}
	if !end.Usage.Known {
		o.b.state.Unsure += t.Tokens
		return
	}
	o.b.settled(end.Usage)
}

func (b *Broker) settled(used contract.Usage) {
	s := &b.state.Settled
	s.InputTokens += used.InputTokens
	s.OutputTokens += used.OutputTokens
	s.USDMicros += used.USDMicros
	s.Known = true
}

// seen raises what is known about the account's coverage.
func (o *brokerOp) seen(coverage string) {
	if o.b.state.Coverage != coverageReported {
		o.b.state.Coverage = coverage
	}
}

// Status answers the status query.
func (b *Broker) Status(now time.Time) contract.BrokerStatus {
	o := &brokerOp{b: b, now: now}
	running := o.alive(anyTicket)
	s := contract.BrokerStatus{
		Account: b.state.Account, States: o.states(), Running: running, Max: b.accountCap(),
		Waiting: len(b.state.Tickets) - running, Settled: b.state.Settled,
		Coverage: cmp.Or(b.state.Coverage, coverageNone),
	}
	for i := range b.state.Windows {
		w := b.state.Windows[i].Window
		if o.closed(b.state.Windows[i].Model) {
			w.UsedPermill = windowFull
		}
		s.Windows = append(s.Windows, w)
	}
	for i := range b.state.Walls {
		w := &b.state.Walls[i]
		if !w.stands() || slices.ContainsFunc(b.state.Windows, func(x brokerWindow) bool { return x.Model == w.Model }) {
			continue
		}
		zero := contract.Window{Name: cooldownWindow, UsedPermill: windowFull}
		if w.Phase == wallPaused {
			until := w.Until
			zero.ResetAt = &until
		}
		s.Windows = append(s.Windows, zero)
	}
	return s
}

// closed reports whether the account or the model is walled.
func (o *brokerOp) closed(model string) bool {
	return slices.ContainsFunc(o.b.state.Walls, func(w brokerWall) bool {
		return w.stands() && (w.Model == "" || w.Model == model)
	})
}

// Uncertain is what was charged at the full reservation because nothing usable
// was told, in tokens, until Reconcile.
func (b *Broker) Uncertain() int64 { return b.state.Unsure }

// Reserved is what the attempts alive have reserved, in tokens.
func (b *Broker) Reserved() int64 {
	var sum int64
	for i := range b.state.Tickets {
		if t := &b.state.Tickets[i]; t.alive() {
			sum += t.Tokens
		}
	}
	return sum
}
