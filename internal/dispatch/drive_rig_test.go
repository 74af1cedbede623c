package dispatch

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// rig couples one drive with the brokers of its accounts, without delays.
type rig struct {
	t        *testing.T
	now      time.Time
	drive    *Drive
	brokers  map[string]*Broker
	running  []Launch
	launched map[string]time.Time // by ticket
	settled  []contract.Settlement
	stranded []contract.Stranding
	friction []contract.Friction
	claims   []contract.ClaimReport
	wake     time.Time
	drained  bool
	reports  int
}

func commandPool(id string, slots int) contract.Pool {
	return contract.Pool{
		ID: id, Provider: contract.ProviderCommand, Account: id, Tier: plan.TierStandard,
		MaxConcurrent: slots, Cost: &contract.Cost{},
	}
}

func agentPool(id, account, model string, slots int) contract.Pool {
	return contract.Pool{
		ID: id, Provider: contract.ProviderClaude, Account: account, Model: model,
		Tier: plan.TierStandard, MaxConcurrent: slots,
	}
}

func admissions(ids ...string) []contract.Admission {
	all := make([]contract.Admission, len(ids))
	for i, id := range ids {
		all[i] = contract.Admission{Node: id, Opening: 1, NextAttempt: 1, Tier: string(plan.TierStandard)}
	}
	return all
}

func input(pools []contract.Pool, nodes ...contract.Admission) contract.LevelInput {
	in := contract.LevelInput{Run: "r", Drive: 1, Pools: pools, Nodes: nodes}
	for _, p := range pools {
		in.Used = append(in.Used, p.ID)
	}
	return in
}

func newRig(t *testing.T, in contract.LevelInput) *rig {
	t.Helper()
	r := &rig{t: t, now: t0, drive: NewDrive(in), brokers: map[string]*Broker{}, launched: map[string]time.Time{}}
	r.step()
	return r
}

func (r *rig) broker(account string) *Broker {
	if r.brokers[account] == nil {
		r.brokers[account] = NewBroker(account)
	}
	return r.brokers[account]
}

// step decides and delivers until nothing moves at this instant.
func (r *rig) step() {
	r.t.Helper()
	for range 100 {
		a := r.drive.Decide(r.now)
		r.take(&a)
		for _, m := range a.Messages {
			r.push(r.broker(m.Account).Apply(m.Tickets, r.now))
		}
		if len(a.Messages) == 0 {
			return
		}
	}
	require.Fail(r.t, "the drive spins")
}

func (r *rig) take(a *Actions) {
	r.wake, r.drained = a.Wake, r.drained || a.Drained
	for _, rep := range a.Reports {
		r.reports++
		require.Equal(r.t, r.reports, rep.Seq)
		r.settled = append(r.settled, rep.Settled...)
		r.stranded = append(r.stranded, rep.Stranded...)
		r.friction = append(r.friction, rep.Friction...)
		r.claims = append(r.claims, rep.Claims...)
	}
}

func (r *rig) push(pushes []Push) {
	for _, p := range pushes {
		if p.Holder == contract.LevelID("r", 1) {
			for _, l := range r.drive.Receive(p.Grants, r.now) {
				r.running = append(r.running, l)
				r.launched[l.Ticket] = r.now
			}
		}
	}
}

// advance moves the clock, waking drive and brokers when they asked for it.
func (r *rig) advance(by time.Duration) {
	r.t.Helper()
	end := r.now.Add(by)
	for {
		next := r.wake
		for _, b := range r.brokers {
			next = earliest(next, b.Wake())
		}
		if next.IsZero() || next.After(end) {
			break
		}
		require.True(r.t, next.After(r.now), "woken for nothing at %s", next)
		r.now = next
		for _, account := range slices.Sorted(maps.Keys(r.brokers)) {
			r.push(r.brokers[account].Tick(r.now))
		}
		r.step()
	}
	r.now = end
	r.step()
}

// end ends the attempt of a node with a result.
func (r *rig) end(node string, res contract.AttemptResult) {
	r.t.Helper()
	at := slices.IndexFunc(r.running, func(l Launch) bool { return l.Input.Node == node })
	require.GreaterOrEqual(r.t, at, 0, "node %s does not run", node)
	l := r.running[at]
	r.running = slices.Delete(r.running, at, at+1)
	res.Node, res.Opening, res.Attempt, res.Pool = node, l.Input.Opening, l.Input.Attempt, l.Input.Pool
	if res.StartedAt.IsZero() {
		res.StartedAt = r.launched[l.Ticket]
	}
	res.EndedAt = r.now
	require.True(r.t, r.drive.Ended(res, r.now))
	require.False(r.t, r.drive.Ended(res, r.now), "an end counts once")
	r.step()
}

func (r *rig) succeed(nodes ...string) {
	r.t.Helper()
	for _, node := range nodes {
		r.advance(2 * time.Second)
		r.end(node, contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Usage: contract.Usage{InputTokens: 10, Known: true}})
	}
}

func (r *rig) limit(node string, outcome contract.Outcome, reopens time.Duration) {
	r.t.Helper()
	r.advance(2 * time.Second)
	res := contract.AttemptResult{Outcome: outcome, Limit: &contract.Limit{Scope: "account", Evidence: "limit"}, Kept: r.keptTree(node)}
	if reopens > 0 {
		at := r.now.Add(reopens)
		res.Limit.ReopensAt = &at
	}
	r.end(node, res)
}

func (r *rig) keptTree(node string) *contract.Kept {
	for _, l := range r.running {
		if l.Input.Node == node {
			return &contract.Kept{Attempt: l.Input.Attempt, Host: "h", Pool: l.Input.Pool}
		}
	}
	return nil
}

func (r *rig) fail(node string, cause contract.Cause) {
	r.t.Helper()
	r.advance(2 * time.Second)
	r.end(node, contract.AttemptResult{Outcome: contract.OutcomeError, Cause: cause, Reason: "no", Tail: "tail", Salvage: "refs/x"})
}

// at lists the nodes that run on a pool, in the order of their starts.
func (r *rig) at(pool string) []string {
	nodes := []string{}
	for _, l := range r.running {
		if l.Input.Pool == pool {
			nodes = append(nodes, l.Input.Node)
		}
	}
	return nodes
}

func (r *rig) frictions() []contract.FrictionType {
	var types []contract.FrictionType
	for _, f := range r.friction {
		types = append(types, f.Type)
	}
	return types
}
