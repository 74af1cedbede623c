package contract

import "time"

// BrokerInput starts or continues the broker of an account.
type BrokerInput struct {
	Account string   `json:"account"`
	Carried *Carried `json:"carried,omitempty"` // set by continue-as-new only
}

// Tickets is one message of a drive to a broker. Seq counts the messages of the
// holder to this broker from 1; 0 only asks whether the broker still knows the holder.
type Tickets struct {
	Holder   string        `json:"holder"` // workflow id of the drive
	Run      string        `json:"run"`
	Seq      int           `json:"seq"`
	Reserve  []Reservation `json:"reserve,omitempty"`
	Withdraw []string      `json:"withdraw,omitempty"`
	Settle   []TicketEnd   `json:"settle,omitempty"`
}

// Reservation asks for a slot.
type Reservation struct {
	Ticket   string `json:"ticket"` // workflow id of the attempt
	Pool     string `json:"pool"`
	Model    string `json:"model,omitempty"`
	Cap      int    `json:"cap"` // the pool's max_concurrent as the holder states it
	Tokens   int64  `json:"tokens,omitempty"`
	Priority int    `json:"priority,omitempty"`
}

// TicketEnd gives a slot back with what was learned.
type TicketEnd struct {
	Ticket    string    `json:"ticket"`
	Outcome   Outcome   `json:"outcome"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Limit     *Limit    `json:"limit,omitempty"`
	Windows   []Window  `json:"windows,omitempty"`
	Usage     Usage     `json:"usage,omitzero"`
}

// Grants is one message of a broker to a holder.
type Grants struct {
	Account string   `json:"account"`
	Seq     int      `json:"seq"`
	Granted []string `json:"granted,omitempty"`
	// Coverage of the account, as in BrokerStatus; told with grants.
	Coverage string          `json:"coverage,omitempty"`
	Refused  []TicketRefusal `json:"refused,omitempty"`
	States   []AccountState  `json:"states,omitempty"` // all pauses and exhaustions that hold now, when they changed
	// Forgot: the broker knew nothing of the holder when it wrote this; what waited there is lost.
	Forgot bool `json:"forgot,omitempty"`
}

// TicketRefusal says why a ticket will not be granted now.
type TicketRefusal struct {
	Ticket string     `json:"ticket"`
	Cause  string     `json:"cause"` // paused | exhausted | budget
	Until  *time.Time `json:"until,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// AccountState is a pause or an exhaustion of an account (Model empty) or of one model of it.
type AccountState struct {
	Account string     `json:"account"`
	Model   string     `json:"model,omitempty"`
	State   string     `json:"state"` // live | paused | exhausted
	Outcome Outcome    `json:"outcome,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // paused: when it is tried again
	Since   time.Time  `json:"since,omitzero"`
	Reason  string     `json:"reason,omitempty"`
}

// BrokerStatus answers the status query of a broker.
type BrokerStatus struct {
	Account  string         `json:"account"`
	States   []AccountState `json:"states,omitempty"`
	Running  int            `json:"running"`
	Max      int            `json:"max"`
	Waiting  int            `json:"waiting"`
	Settled  Usage          `json:"settled,omitzero"`
	Coverage string         `json:"coverage"` // reported | reactive | none
	Windows  []Window       `json:"windows,omitempty"`
}

// Window is a structured fact about a provider's quota window.
type Window struct {
	Name        string     `json:"name"`
	UsedPermill int        `json:"used_permill"`
	ResetAt     *time.Time `json:"reset_at,omitempty"`
}
