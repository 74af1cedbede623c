package dispatch

import (
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
)

// Phases of a wall. An open wall remembers what happened until successes prove
// that it is over.
const (
	wallOpen      = "live"
	wallPaused    = "paused"
	wallExhausted = "exhausted"
)

// wallMemory is how long an open wall that nobody used is remembered.
const wallMemory = 24 * time.Hour

// rampEnd is where the ramp of an account ends: beyond it only caps limit.
const rampEnd = 64

// brokerWall is the pause or exhaustion of an account (Model empty) or of one of its models.
type brokerWall struct {
	Model   string           `json:"model,omitempty"`
	Phase   string           `json:"phase"`
	Outcome contract.Outcome `json:"outcome,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Until   time.Time        `json:"until,omitzero"`  // of a pause
	Began   time.Time        `json:"began,omitzero"`  // only launches after it prove anything
	Series  time.Time        `json:"series,omitzero"` // first of the limits in a row that stated no reset
	Count   int              `json:"count,omitempty"` // limits in a row
	Ramp    ramp             `json:"ramp,omitzero"`
}

// stands reports whether the wall keeps tickets out.
func (w *brokerWall) stands() bool { return w.Phase != wallOpen }

// wire is the wall as the drives see it. Since is set when the provider stated
// no reset: since then nobody has succeeded.
func (w *brokerWall) wire(account string) contract.AccountState {
	s := contract.AccountState{
		Account: account, Model: w.Model, State: w.Phase,
		Outcome: w.Outcome, Since: w.Series, Reason: w.Reason,
	}
	if w.Phase == wallPaused {
		until := w.Until
		s.Until = &until
	}
	return s
}

// wall finds or makes the wall of a key.
func (b *Broker) wall(model string) *brokerWall {
	at, found := slices.BinarySearchFunc(b.state.Walls, model, func(w brokerWall, key string) int { return strings.Compare(w.Model, key) })
	if !found {
		b.state.Walls = slices.Insert(b.state.Walls, at, brokerWall{Model: model, Phase: wallOpen})
	}
	return &b.state.Walls[at]
}

// wallOver is the wall that keeps the ticket out; of several the one that lasts longest.
func (o *brokerOp) wallOver(t *brokerTicket) *brokerWall {
	var worst *brokerWall
	for i := range o.b.state.Walls {
		w := &o.b.state.Walls[i]
		if !t.under(w.Model) || !w.stands() {
			continue
		}
		if worst == nil || worst.Phase == wallPaused && (w.Phase == wallExhausted || w.Until.After(worst.Until)) {
			worst = w
		}
	}
	return worst
}

// expire ends the pauses whose time has come, drops windows that were reset,
// and forgets walls that nothing depends on.
func (o *brokerOp) expire() {
	state := &o.b.state
	for i := range state.Walls {
		if w := &state.Walls[i]; w.Phase == wallPaused && !w.Until.After(o.now) {
			w.Phase = wallOpen
			w.Ramp.start(o.now)
		}
	}
	state.Windows = slices.DeleteFunc(state.Windows, func(w brokerWindow) bool { return w.ResetAt != nil && !w.ResetAt.After(o.now) })
	state.Walls = slices.DeleteFunc(state.Walls, func(w brokerWall) bool {
		idle := w.Count == 0 && !w.Ramp.ramping() || o.now.Sub(later(w.Began, w.Ramp.Since)) > wallMemory
		return !w.stands() && idle
	})
	if !slices.ContainsFunc(state.Walls, func(w brokerWall) bool { return w.stands() }) {
		state.Waiting = nil
	}
}

// settle frees a slot and learns from what happened.
func (o *brokerOp) settle(holder string, end *contract.TicketEnd) {
	t, found := o.b.drop(holder, end.Ticket)
	if !found {
		return
	}
	o.charge(&t, end)
	started := later(end.StartedAt, t.Granted)
	switch end.Outcome {
	case contract.OutcomeSuccess:
		o.success(&t, started)
	case contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeQuotaUnclassified:
		o.pause(&t, end, started)
	case contract.OutcomeCreditExhausted, contract.OutcomeAuthFailed:
		o.exhaust(&t, end, started)
	case contract.OutcomeError, contract.OutcomeTimeout, contract.OutcomeInterrupted,
		contract.OutcomeModelUnavailable, contract.OutcomePacketTooLarge:
		// The node's or the run's matter: they say nothing about the account.
	}
}

// success ends what older limits had left, for launches that began after them.
func (o *brokerOp) success(t *brokerTicket, started time.Time) {
	for i := range o.b.state.Walls {
		w := &o.b.state.Walls[i]
		if !t.under(w.Model) || w.Phase == wallExhausted || !started.After(w.Began) {
			continue
		}
		w.Count, w.Series = 0, time.Time{}
		if w.Phase == wallPaused {
			o.lift(w, contract.OutcomeSuccess)
			continue
		}
		w.Ramp.success(started, rampEnd)
	}
}

// pause starts or renews the cooldown of a limit, if it is evidence.
func (o *brokerOp) pause(t *brokerTicket, end *contract.TicketEnd, started time.Time) {
	o.seen(coverageReactive)
	w := o.b.wall(limitModel(end.Outcome, end.Limit, t.Model))
	if w.Phase == wallExhausted || !w.Began.IsZero() && !started.After(w.Began) {
		return
	}
	w.Count++
	until, stated := reopening(end.Outcome, end.Limit, w.Count, o.now)
	switch {
	case stated:
		w.Series = time.Time{}
	case w.Series.IsZero():
		w.Series = o.now
	}
	o.cool(w, end.Outcome, evidence(end.Limit), until)
}

// cool closes a wall until an instant. One that has come already leaves the wall open for a probe.
func (o *brokerOp) cool(w *brokerWall, outcome contract.Outcome, reason string, until time.Time) {
	w.Outcome, w.Reason, w.Began = outcome, reason, o.now
	if !until.After(o.now) {
		w.Phase = wallOpen
		w.Ramp.start(o.now)
		return
	}
	w.Phase, w.Until, w.Ramp = wallPaused, until, ramp{}
	o.told = true
	o.refuseWaiting(w)
}

// exhaust closes a wall until an operator reopens it. A cooldown is no reason
// to doubt it; only an exhaustion or a reopening that is newer than the launch is.
func (o *brokerOp) exhaust(t *brokerTicket, end *contract.TicketEnd, started time.Time) {
	o.seen(coverageReactive)
	model := ""
	if end.Limit != nil && end.Limit.Scope == scopeModel {
		model = t.Model
	}
	w := o.b.wall(model)
	reopened := w.Phase == wallOpen && w.Outcome == "" && !w.Began.IsZero() && !started.After(w.Began)
	if w.Phase == wallExhausted || reopened {
		return
	}
	*w = brokerWall{Model: model, Phase: wallExhausted, Outcome: end.Outcome, Reason: evidence(end.Limit), Began: o.now, Series: o.now}
	o.told = true
	o.refuseWaiting(w)
}

// lift ends a wall before its time: by a success behind it, or by an operator (no outcome).
func (o *brokerOp) lift(w *brokerWall, by contract.Outcome) {
	w.Phase, w.Until = wallOpen, time.Time{}
	w.Ramp.start(o.now)
	o.told = true
	o.lifted = append(o.lifted, contract.AccountState{
		Account: o.b.state.Account, Model: w.Model, State: wallOpen, Outcome: by, Since: o.now,
	})
}

// evidence is the one line of a limit that operators see.
func evidence(limit *contract.Limit) string {
	if limit == nil {
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(limit.Evidence), "\n")
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
