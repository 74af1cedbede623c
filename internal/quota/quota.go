package quota

import "time"

// Outcome is how a launch ended; the list is closed.
type Outcome string

// The outcomes of an attempt. Classify gives all of them but Interrupted,
// which only the caller can know (it ended the launch itself).
const (
	Success           Outcome = "success"
	Error             Outcome = "error"
	Timeout           Outcome = "timeout"
	RateLimited       Outcome = "rate_limited"
	Overloaded        Outcome = "overloaded"
	CreditExhausted   Outcome = "credit_exhausted"
	AuthFailed        Outcome = "auth_failed"
	ModelUnavailable  Outcome = "model_unavailable"
	PacketTooLarge    Outcome = "packet_too_large"
	QuotaUnclassified Outcome = "quota_unclassified"
	Interrupted       Outcome = "interrupted"
)

// Hard says whether waiting does not help: an operator must act.
func (o Outcome) Hard() bool {
	return o == CreditExhausted || o == AuthFailed || o == ModelUnavailable
}

// Precision is the smallest unit in which a reset was stated.
type Precision string

// Precisions. Exact means seconds or finer; None means no reset.
const (
	Exact  Precision = "exact"
	Minute Precision = "minute"
	Hour   Precision = "hour"
	Day    Precision = "day"
	None   Precision = "none"
)

// Scope is what a refusal holds for.
type Scope string

// Scopes. ScopeNone belongs to outcomes that say nothing about an account.
const (
	ScopeAccount Scope = "account"
	ScopeModel   Scope = "model"
	ScopeNone    Scope = "none"
)

// Channel is where the text of a launch was seen.
type Channel string

// Channels. An unknown channel is read like Stdout, the strictest one.
const (
	Stdout     Channel = "stdout"
	Stderr     Channel = "stderr"
	StreamJSON Channel = "stream-json" // JSON Lines of a CLI
	HTTP       Channel = "http"        // body of one response
)

// ZoneLookup finds an IANA zone by name; time.LoadLocation is one.
type ZoneLookup func(name string) (*time.Location, error)

// Launch is one finished launch as the classifier sees it.
type Launch struct {
	ID       string
	Provider string // name of the producer; unknown names are generic
	Channel  Channel
	// ExitCode is nil when the supervisor killed the program at its deadline;
	// always nil for HTTP.
	ExitCode *int
	// HTTPStatus is nil when no response came; nil for the other channels.
	HTTPStatus *int
	Headers    map[string][]string // names in any case
	Text       []byte
	ObservedAt time.Time      // when the text was seen
	LocalZone  *time.Location // zone of the worker; nil means UTC
	Zone       ZoneLookup     // nil means that no named zone but UTC exists
	HasResult  bool           // the worker delivered a valid result
	Patterns   Patterns       // the user's own rules, tried before the built-in ones
}

// Verdict says how a launch ended.
type Verdict struct {
	Outcome Outcome
	// ResetAt is the instant that the provider stated, in UTC and without any
	// margin; nil when none was stated or it could not be read. It may lie in
	// the past.
	ResetAt        *time.Time
	ResetPrecision Precision
	Scope          Scope
	Hard           bool
	// Rule is the stable name of the rule that decided: where it looked and what
	// it saw, such as "text:limit-reached", "field:rate-limit", "status:429",
	// "pattern:0" (a user's own), "result", "deadline" or "exit" (nothing said).
	Rule     string
	Evidence string // scrubbed text that decided, at most 2000 characters
}
