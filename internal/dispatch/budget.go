package dispatch

import (
	"cmp"
	"slices"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Spend is an amount of both things that a budget caps.
type Spend struct {
	Tokens    int64 `json:"tokens,omitempty"`
	USDMicros int64 `json:"usd_micros,omitempty"` // millionths of a dollar
}

func (s Spend) plus(t Spend) Spend {
	return Spend{Tokens: s.Tokens + t.Tokens, USDMicros: s.USDMicros + t.USDMicros}
}

func (s Spend) minus(t Spend) Spend {
	return Spend{Tokens: s.Tokens - t.Tokens, USDMicros: s.USDMicros - t.USDMicros}
}

// Lease is what may be spent; nil means no cap, zero means nothing.
type Lease struct {
	Tokens    *int64 `json:"tokens,omitempty"`
	USDMicros *int64 `json:"usd_micros,omitempty"`
}

// covers reports whether the amount lies within the lease.
func (l Lease) covers(s Spend) bool {
	return (l.Tokens == nil || s.Tokens <= *l.Tokens) && (l.USDMicros == nil || s.USDMicros <= *l.USDMicros)
}

// capped reports whether anything is capped.
func (l Lease) capped() bool { return l.Tokens != nil || l.USDMicros != nil }

// Default allowances of an attempt by tier, in tokens.
const (
	allowanceSmall    = 200_000
	allowanceStandard = 500_000
	allowanceDeep     = 1_500_000
)

// Of the allowance learned on a pool: attempts remembered, and those needed before they count.
const (
	allowanceSeen = 40
	allowanceFrom = 5
)

// Allowance is what an attempt reserves, in tokens (dispatch.md, Budgets): the
// operator's attempt_tokens, else the 90th percentile of what attempts on the
// pool used (once there are enough), else a default by tier.
func Allowance(attemptTokens int, tier plan.Tier, seen []int64) int64 {
	if attemptTokens > 0 {
		return int64(attemptTokens)
	}
	if len(seen) >= allowanceFrom {
		sorted := slices.Sorted(slices.Values(seen))
		return max(sorted[(len(sorted)*9+9)/10-1], 1)
	}
	switch tier {
	case plan.TierSmall:
		return allowanceSmall
	case plan.TierDeep:
		return allowanceDeep
	case plan.TierStandard:
	}
	return allowanceStandard
}

// Price estimates what tokens cost on a pool, three of four being input; 0 when the cost is unknown.
func Price(cost *contract.Cost, tokens int64) int64 {
	if cost == nil {
		return 0
	}
	return tokens * (3*cost.InputMicros + cost.OutputMicros) / 4 / 1_000_000
}

// Charge is what an ended attempt costs: its usage when it told a well-formed
// one, even above the reservation, else the whole reservation, uncertain.
func Charge(reserved Spend, used contract.Usage) (charge Spend, uncertain bool) {
	if !used.Known || used.InputTokens < 0 || used.OutputTokens < 0 || used.USDMicros < 0 {
		return reserved, true
	}
	return Spend{Tokens: used.InputTokens + used.OutputTokens, USDMicros: used.USDMicros}, false
}

// Budget is the budget of a run. Remediation hosts it: it leases amounts to
// drives, charges what their attempts used, and says whether anything is left.
// What is leased and not yet charged counts as reserved, so that settled and
// reserved together never exceed the cap by anything but attempts that used
// more than they had reserved. The zero value caps nothing; its JSON form is its state.
type Budget struct {
	Cap       plan.Budget   `json:"cap"` // 0: no cap
	Settled   Spend         `json:"settled,omitzero"`
	Uncertain []Uncertain   `json:"uncertain,omitempty"` // by attempt
	Leases    []BudgetLease `json:"leases,omitempty"`    // by drive
}

// Uncertain is an attempt that was charged at its reservation.
type Uncertain struct {
	Attempt string `json:"attempt"` // workflow id
	Spend
}

// BudgetLease is what a drive may spend in all since its start, and what of that was charged.
type BudgetLease struct {
	Drive   int   `json:"drive"`
	Limit   Spend `json:"limit"`
	Charged Spend `json:"charged,omitzero"`
}

// open is what the drive may still spend; never negative.
func (l *BudgetLease) open() Spend {
	left := l.Limit.minus(l.Charged)
	return Spend{Tokens: max(left.Tokens, 0), USDMicros: max(left.USDMicros, 0)}
}

// Left is what nobody has been promised; nil fields are not capped. It is negative when attempts used more than reserved.
func (b *Budget) Left() Lease {
	taken := b.Settled.plus(b.Unsure()).plus(b.Reserved())
	var left Lease
	if b.Cap.Tokens > 0 {
		n := b.Cap.Tokens - taken.Tokens
		left.Tokens = &n
	}
	if b.Cap.USDMicros > 0 {
		n := b.Cap.USDMicros - taken.USDMicros
		left.USDMicros = &n
	}
	return left
}

// Unsure is what was charged without knowing.
func (b *Budget) Unsure() Spend {
	var sum Spend
	for _, u := range b.Uncertain {
		sum = sum.plus(u.Spend)
	}
	return sum
}

// Reserved is what drives may still spend of what they were leased; nothing while no cap makes them ask.
func (b *Budget) Reserved() Spend {
	var sum Spend
	for i := range b.Leases {
		sum = sum.plus(b.Leases[i].open())
	}
	return sum
}

// Fits reports whether a reservation still fits.
func (b *Budget) Fits(s Spend) bool { return b.Left().covers(s) }

// Lease tops a drive's lease up so that it may still spend want, as far as that
// is left, and returns the drive's limit in all since its start. Giving the
// drive the same lease again changes nothing.
func (b *Budget) Lease(drive int, want Spend) Lease {
	l := b.lease(drive)
	l.Limit = Spend{Tokens: max(l.Limit.Tokens, l.Charged.Tokens), USDMicros: max(l.Limit.USDMicros, l.Charged.USDMicros)}
	left, open := b.Left(), l.open()
	more := want.minus(open)
	if left.Tokens != nil {
		l.Limit.Tokens += max(min(more.Tokens, *left.Tokens), 0)
	}
	if left.USDMicros != nil {
		l.Limit.USDMicros += max(min(more.USDMicros, *left.USDMicros), 0)
	}
	limit, granted := l.Limit, Lease{}
	if b.Cap.Tokens > 0 {
		granted.Tokens = &limit.Tokens
	}
	if b.Cap.USDMicros > 0 {
		granted.USDMicros = &limit.USDMicros
	}
	return granted
}

func (b *Budget) lease(drive int) *BudgetLease {
	at, found := slices.BinarySearchFunc(b.Leases, drive, func(l BudgetLease, d int) int { return cmp.Compare(l.Drive, d) })
	if !found {
		b.Leases = slices.Insert(b.Leases, at, BudgetLease{Drive: drive})
	}
	return &b.Leases[at]
}

// Settle charges an ended attempt of a drive.
func (b *Budget) Settle(drive int, attempt string, reserved Spend, used contract.Usage) {
	charge, uncertain := Charge(reserved, used)
	l := b.lease(drive)
	l.Charged = l.Charged.plus(charge)
	if !uncertain {
		b.Settled = b.Settled.plus(charge)
		return
	}
	b.Uncertain = append(b.Uncertain, Uncertain{Attempt: attempt, Spend: charge})
	slices.SortFunc(b.Uncertain, func(x, y Uncertain) int { return cmp.Compare(x.Attempt, y.Attempt) })
}

// Close gives back what a drive that ended did not spend.
func (b *Budget) Close(drive int) {
	b.Leases = slices.DeleteFunc(b.Leases, func(l BudgetLease) bool { return l.Drive == drive })
}

// Reconcile replaces an uncertain charge by what an operator found out; false when there is none of that attempt.
func (b *Budget) Reconcile(attempt string, used Spend) bool {
	at := slices.IndexFunc(b.Uncertain, func(u Uncertain) bool { return u.Attempt == attempt })
	if at < 0 {
		return false
	}
	b.Uncertain = slices.Delete(b.Uncertain, at, at+1)
	b.Settled = b.Settled.plus(used)
	return true
}
