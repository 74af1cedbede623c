package workflows

import (
	"slices"

	"mendflow/internal/contract"
)

// poolBook is what a run knows of its pools: their definitions and the last
// state that any drive reported.
type poolBook struct {
	pools  []contract.Pool
	states []contract.PoolState // as pools
	seen   []bool               // had a success in this run
}

func newPoolBook(pools []contract.Pool) poolBook {
	b := poolBook{pools: pools, states: make([]contract.PoolState, len(pools)), seen: make([]bool, len(pools))}
	for i, p := range pools {
		b.states[i] = contract.PoolState{ID: p.ID, Account: p.Account, Model: p.Model, State: "live", Max: p.MaxConcurrent}
	}
	return b
}

// slots is how many attempts the pools can run at once.
func (b *poolBook) slots() int {
	n := 0
	for _, p := range b.pools {
		n += p.MaxConcurrent
	}
	return n
}

// accounts lists the accounts in the order of the pools.
func (b *poolBook) accounts() []string {
	var accounts []string
	for _, p := range b.pools {
		if !slices.Contains(accounts, p.Account) {
			accounts = append(accounts, p.Account)
		}
	}
	return accounts
}

func (b *poolBook) update(states []contract.PoolState) {
	for _, s := range states {
		if i := slices.IndexFunc(b.pools, func(p contract.Pool) bool { return p.ID == s.ID }); i >= 0 {
			b.states[i] = s
			b.seen[i] = b.seen[i] || s.Used
		}
	}
}

// reopened takes the early end of pauses and exhaustions of an account. What the
// run has settled is open again only when an operator said so.
func (b *poolBook) reopened(account string, states []contract.AccountState) {
	for i := range b.states {
		p := &b.states[i]
		lifted := func(s contract.AccountState) bool {
			return s.State == "live" && (s.Model == "" || s.Model == p.Model) && (p.State != "settled" || s.Outcome == "")
		}
		if p.Account == account && p.State != "excluded" && slices.ContainsFunc(states, lifted) {
			p.State, p.Reason, p.Until = "live", "", nil
		}
	}
}

// recomposed is the book of another composition: what is known of pools that
// are the same in both stays known.
func (b *poolBook) recomposed(pools []contract.Pool, redefined []string) poolBook {
	next := newPoolBook(pools)
	for i, p := range pools {
		at := slices.IndexFunc(b.pools, func(old contract.Pool) bool { return old.ID == p.ID })
		if at < 0 || slices.Contains(redefined, p.ID) || b.states[at].State == "excluded" {
			continue
		}
		next.states[i], next.seen[i] = b.states[at], b.seen[at]
		next.states[i].Max = p.MaxConcurrent
	}
	return next
}

// settled lists the pools that are not offered again in this run.
func (b *poolBook) settled() []string {
	return b.where(func(i int) bool { return b.states[i].State == "settled" })
}

// used lists the pools that had a success in this run: a new drive does not ramp them.
func (b *poolBook) used() []string { return b.where(func(i int) bool { return b.seen[i] }) }

// ids lists all pools.
func (b *poolBook) ids() []string { return b.where(func(int) bool { return true }) }

func (b *poolBook) where(is func(int) bool) []string {
	var ids []string
	for i, p := range b.pools {
		if is(i) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
