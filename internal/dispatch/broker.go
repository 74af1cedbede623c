package dispatch

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// Broker is the state machine of one provider account, shared by all runs: it
// grants slots to waiting tickets, keeps cooldowns and exhaustions, and tells
// its holders (the drives) about both. It has no clock: instants are arguments,
// and they must not go back.
//
// Caps. A pool has at most as many attempts alive as the smallest cap that a
// holder with tickets states for it. The account as a whole has at most as many
// as the widest such holder states over all its pools: a holder with more pools
// widens what the account may run, never what one pool may run, and two runs
// that name one account's pool differently do not double it.
//
// Cooldowns have a key inside the account: a model, or empty for all of it.
// Their end is a probe: one ticket, then 2, 4, … after successes, whatever the
// number of holders. A limit counts only from a launch that started after the
// cooldown began, so that attempts which ran into one wall together count once.
//
// The JSON form is the whole state (continue-as-new). It is bounded by what is
// alive: tickets, holders with a message not yet closed, models, and the last
// 1 000 operator requests.
type Broker struct {
	state brokerState
}

type brokerState struct {
	Account  string                 `json:"account"`
	Holders  []brokerHolder         `json:"holders,omitempty"` // by id
	Tickets  []brokerTicket         `json:"tickets,omitempty"` // by arrival
	Walls    []brokerWall           `json:"walls,omitempty"`   // by model, the account's first
	Windows  []brokerWindow         `json:"windows,omitempty"` // by model and name
	Waiting  []string               `json:"waiting_runs,omitempty"`
	Requests run.Requests[struct{}] `json:"requests,omitzero"`
	Arrivals int64                  `json:"arrivals,omitempty"`
	Settled  contract.Usage         `json:"settled,omitzero"`
	Unsure   int64                  `json:"uncertain_tokens,omitempty"`
	Coverage string                 `json:"coverage,omitempty"`
}

// brokerHolder is a drive that sent a message and is not known to be closed.
type brokerHolder struct {
	ID   string      `json:"id"`
	Run  string      `json:"run"`
	In   int         `json:"in"`  // its last message
	Out  int         `json:"out"` // our last message to it
	Caps []brokerCap `json:"caps,omitempty"`
}

type brokerCap struct {
	Pool string `json:"pool"`
	Cap  int    `json:"cap"`
}

// brokerTicket waits for a slot, or holds one when Granted is set.
type brokerTicket struct {
	ID       string    `json:"id"`
	Holder   string    `json:"holder"`
	Run      string    `json:"run"`
	Pool     string    `json:"pool"`
	Model    string    `json:"model,omitempty"`
	Tokens   int64     `json:"tokens,omitempty"`
	Priority int       `json:"priority,omitempty"`
	Arrival  int64     `json:"arrival"`
	Granted  time.Time `json:"granted,omitzero"`
}

func (t *brokerTicket) alive() bool { return !t.Granted.IsZero() }

// under reports whether the key (a model, or empty for the account) concerns the ticket.
func (t *brokerTicket) under(model string) bool { return model == "" || model == t.Model }

// Push is a message that the caller delivers: to the drive Holder as grants,
// or, when Holder is empty, its States to the run Run as pool-state.
type Push struct {
	Holder string
	Run    string
	Grants contract.Grants
}

// NewBroker returns the broker of an account that knows nothing yet.
func NewBroker(account string) *Broker {
	return &Broker{state: brokerState{Account: account}}
}

// MarshalJSON writes the whole state.
func (b *Broker) MarshalJSON() ([]byte, error) { return json.Marshal(b.state) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Broker) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &b.state) }

// Holders lists the drives that the periodic check asks the server about, in order.
func (b *Broker) Holders() []string {
	ids := make([]string, len(b.state.Holders))
	for i := range b.state.Holders {
		ids[i] = b.state.Holders[i].ID
	}
	return ids
}

// Apply takes one message of a drive: endings, withdrawals and reservations, in
// this order. A message seen before changes nothing, and neither does a ticket seen before.
func (b *Broker) Apply(msg contract.Tickets, now time.Time) []Push {
	o := b.begin(now)
	h, known := b.holder(msg.Holder, msg.Run)
	if known && msg.Seq <= h.In {
		return o.end()
	}
	h.In = msg.Seq
	if !known {
		o.greet(msg.Holder)
	}
	for i := range msg.Settle {
		o.settle(msg.Holder, &msg.Settle[i])
	}
	for _, ticket := range msg.Withdraw {
		b.drop(msg.Holder, ticket)
	}
	for i := range msg.Reserve {
		o.reserve(h, &msg.Reserve[i])
	}
	return o.end()
}

// HolderGone forgets a drive that closed or vanished, with its tickets. While a
// wall stands its run may be what waits behind it.
func (b *Broker) HolderGone(holder string, now time.Time) []Push {
	o := b.begin(now)
	for _, h := range b.state.Holders {
		if h.ID == holder && slices.ContainsFunc(b.state.Walls, func(w brokerWall) bool { return w.stands() }) {
			b.waits(h.Run)
		}
	}
	b.state.Tickets = slices.DeleteFunc(b.state.Tickets, func(t brokerTicket) bool { return t.Holder == holder })
	b.state.Holders = slices.DeleteFunc(b.state.Holders, func(h brokerHolder) bool { return h.ID == holder })
	return o.end()
}

// Tick does what is due at now; the caller calls it at Wake.
func (b *Broker) Tick(now time.Time) []Push { return b.begin(now).end() }

// Wake is the next instant at which something is due; zero when nothing is.
func (b *Broker) Wake() time.Time {
	var at time.Time
	for i := range b.state.Walls {
		if w := &b.state.Walls[i]; w.Phase == wallPaused {
			at = earliest(at, w.Until)
		}
	}
	for i := range b.state.Windows {
		if reset := b.state.Windows[i].ResetAt; reset != nil {
			at = earliest(at, *reset)
		}
	}
	return at
}

// holder finds or makes the record of a drive; known is false for a new one.
func (b *Broker) holder(id, run string) (h *brokerHolder, known bool) {
	at, known := slices.BinarySearchFunc(b.state.Holders, id, func(h brokerHolder, id string) int {
		return strings.Compare(h.ID, id)
	})
	if !known {
		b.state.Holders = slices.Insert(b.state.Holders, at, brokerHolder{ID: id, Run: run})
	}
	return &b.state.Holders[at], known
}

// drop removes a ticket of a holder and returns it.
func (b *Broker) drop(holder, id string) (brokerTicket, bool) {
	at := slices.IndexFunc(b.state.Tickets, func(t brokerTicket) bool { return t.ID == id && t.Holder == holder })
	if at < 0 {
		return brokerTicket{}, false
	}
	t := b.state.Tickets[at]
	b.state.Tickets = slices.Delete(b.state.Tickets, at, at+1)
	return t, true
}
