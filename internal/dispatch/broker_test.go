package dispatch

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

func ask(holder string, seq int, tickets ...string) contract.Tickets {
	m := contract.Tickets{Holder: holder, Run: "run-" + holder, Seq: seq}
	for _, id := range tickets {
		m.Reserve = append(m.Reserve, contract.Reservation{Ticket: id, Pool: "p", Model: "m", Cap: 3, Tokens: 100})
	}
	return m
}

func settle(holder string, seq int, ends ...contract.TicketEnd) contract.Tickets {
	return contract.Tickets{Holder: holder, Run: "run-" + holder, Seq: seq, Settle: ends}
}

func ended(ticket string, outcome contract.Outcome, started time.Time) contract.TicketEnd {
	return contract.TicketEnd{Ticket: ticket, Outcome: outcome, StartedAt: started, Limit: &contract.Limit{Scope: "account", Evidence: "text"}}
}

func granted(pushes []Push) []string {
	var ids []string
	for _, p := range pushes {
		ids = append(ids, p.Grants.Granted...)
	}
	return ids
}

// desk drives one broker for one holder A that always asks anew.
type desk struct {
	t    *testing.T
	b    *Broker
	now  time.Time
	seq  int
	next int
}

func newDesk(t *testing.T) *desk { return &desk{t: t, b: NewBroker("x"), now: t0} }

// ask reserves n tickets and returns those granted at once.
func (d *desk) ask(n int) []string {
	d.seq++
	var ids []string
	for range n {
		d.next++
		ids = append(ids, fmt.Sprint("t", d.next))
	}
	return granted(d.b.Apply(ask("A", d.seq, ids...), d.now))
}

// end settles a ticket that started just now, a second later.
func (d *desk) end(ticket string, outcome contract.Outcome) []Push {
	d.seq++
	started := d.now
	d.now = d.now.Add(time.Second)
	return d.b.Apply(settle("A", d.seq, ended(ticket, outcome, started)), d.now)
}

// pause is how long the account is paused.
func (d *desk) pause() time.Duration {
	states := d.b.Status(d.now).States
	require.Len(d.t, states, 1)
	require.Equal(d.t, "paused", states[0].State)
	return states[0].Until.Sub(d.now)
}

func (d *desk) reopen() { d.now = d.b.Wake(); d.b.Tick(d.now) }

func TestBrokerNeverHasMoreAliveThanTheCapOverTwoRuns(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	require.Equal(t, []string{"a1", "a2"}, granted(b.Apply(ask("A", 1, "a1", "a2"), t0)))
	require.Equal(t, []string{"b1"}, granted(b.Apply(ask("B", 1, "b1", "b2", "b3"), t0)))
	require.Empty(t, b.Apply(ask("B", 1, "b1", "b2", "b3"), t0), "a repeated message changes nothing")
	require.Empty(t, b.Apply(ask("B", 2, "b1", "b2"), t0), "a repeated ticket changes nothing")

	require.Equal(t, []string{"b2"}, granted(b.Apply(settle("A", 2, ended("a1", contract.OutcomeSuccess, t0)), t0)))
	require.Equal(t, []string{"b3"}, granted(b.HolderGone("A", t0)), "a holder that vanished loses its tickets")
	require.Equal(t, []string{"B"}, b.Holders())
	s := b.Status(t0)
	require.Equal(t, []int{3, 3, 0}, []int{s.Running, s.Max, s.Waiting})
}

func TestBrokerTakesTheSmallestCapThatALiveHolderStates(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	low := ask("L", 1, "l1")
	low.Reserve[0].Cap = 1
	require.Len(t, granted(b.Apply(low, t0)), 1)
	require.Empty(t, granted(b.Apply(ask("A", 1, "a1", "a2", "a3", "a4"), t0)))
	require.Equal(t, []string{"a1", "a2", "a3"}, granted(b.Apply(settle("L", 2, ended("l1", contract.OutcomeSuccess, t0)), t0)),
		"without a ticket the holder states nothing")
}

func TestBrokerCapsEveryPoolAndTheAccount(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	m := ask("A", 1, "p1", "p2", "p3", "p4", "q1", "q2", "q3")
	for i := range m.Reserve[4:] {
		m.Reserve[4+i].Pool, m.Reserve[4+i].Cap = "q", 2
	}
	require.Equal(t, []string{"p1", "p2", "p3", "q1", "q2"}, granted(b.Apply(m, t0)), "pools of one account have their own caps")

	other := NewBroker("x")
	require.Len(t, granted(other.Apply(ask("A", 1, "a1", "a2", "a3"), t0)), 3)
	renamed := ask("B", 1, "b1")
	renamed.Reserve[0].Pool = "another name"
	require.Empty(t, granted(other.Apply(renamed, t0)), "the same account under another pool id does not double it")
}

func TestBrokerServesByPriorityAndArrival(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	b.Apply(ask("A", 1, "a1", "a2", "a3"), t0)
	b.Apply(ask("B", 1, "b1"), t0)
	b.Apply(ask("C", 1, "c1"), t0)
	urgent := ask("D", 1, "d1")
	urgent.Reserve[0].Priority = -1
	b.Apply(urgent, t0)
	var order []string
	for i := range 3 {
		order = append(order, granted(b.Apply(settle("A", 2+i, ended(fmt.Sprint("a", i+1), contract.OutcomeSuccess, t0)), t0))...)
	}
	require.Equal(t, []string{"d1", "b1", "c1"}, order)
}

func TestBrokerWithdrawsWaitingAndGrantedTickets(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	b.Apply(ask("A", 1, "a1", "a2", "a3", "a4", "a5"), t0)
	m := contract.Tickets{Holder: "A", Seq: 2, Withdraw: []string{"a4", "a1"}}
	require.Equal(t, []string{"a5"}, granted(b.Apply(m, t0)))
	require.Zero(t, b.Status(t0).Settled.InputTokens+b.Uncertain(), "what never started is not charged")
	foreign := contract.Tickets{Holder: "B", Seq: 1, Withdraw: []string{"a2"}}
	b.Apply(foreign, t0)
	require.Equal(t, 3, b.Status(t0).Running, "nobody withdraws another's ticket")
}

func TestCooldownsGrowUntilASuccess(t *testing.T) {
	t.Parallel()
	min := time.Minute
	for outcome, want := range map[contract.Outcome][]time.Duration{
		contract.OutcomeRateLimited:       {min, 2 * min, 4 * min, 8 * min, 15 * min, 15 * min},
		contract.OutcomeQuotaUnclassified: {min, 2 * min, 4 * min, 8 * min, 15 * min, 15 * min},
		contract.OutcomeOverloaded:        {2 * min, 4 * min, 8 * min, 16 * min, 30 * min, 30 * min},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			for _, pause := range want {
				d.now = d.now.Add(time.Second)
				got := d.ask(2)
				d.end(got[0], outcome)
				require.Equal(t, pause, d.pause())
				if len(got) > 1 {
					d.end(got[1], contract.OutcomeInterrupted)
				}
				d.reopen()
			}
			d.end(d.ask(1)[0], contract.OutcomeSuccess)
			d.now = d.now.Add(time.Second)
			d.end(d.ask(1)[0], outcome)
			require.Equal(t, want[0], d.pause())
		})
	}
}

func TestResetIsProbedByOneTicketAndThenRamped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.ask(3)
	pushes := d.end(got[0], contract.OutcomeRateLimited)
	require.Equal(t, "paused", pushes[0].Grants.States[0].State)
	d.seq++
	refused := d.b.Apply(ask("A", d.seq, "no"), d.now)[0].Grants.Refused
	require.Equal(t, []contract.TicketRefusal{{Ticket: "no", Cause: "paused", Until: refused[0].Until, Reason: "text"}}, refused)
	d.reopen()
	probe := d.ask(3)
	require.Len(t, probe, 1, "old attempts do not count, new ones do")
	d.seq++
	d.b.Apply(settle("A", d.seq, ended(got[1], contract.OutcomeSuccess, t0)), d.now)
	require.Equal(t, 2, d.b.Status(d.now).Running, "an old success proves nothing")
	d.end(probe[0], contract.OutcomeSuccess)
	require.Equal(t, 3, d.b.Status(d.now).Running, "two after the first success")
}

func TestLimitsThatStartedBeforeThePauseCountOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.ask(3)
	for _, ticket := range got {
		d.seq++
		d.now = d.now.Add(time.Second)
		d.b.Apply(settle("A", d.seq, ended(ticket, contract.OutcomeRateLimited, t0)), d.now)
	}
	require.Equal(t, time.Minute-2*time.Second, d.pause(), "three attempts that ran into one wall are one limit")
	d.reopen()
	d.end(d.ask(1)[0], contract.OutcomeRateLimited)
	require.Equal(t, 2*time.Minute, d.pause())
}

func TestOldSuccessNeverEndsANewerPauseButANewOneDoes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.ask(3)
	d.end(got[0], contract.OutcomeRateLimited)
	d.seq++
	d.b.Apply(settle("A", d.seq, ended(got[1], contract.OutcomeSuccess, t0)), d.now)
	require.Equal(t, time.Minute, d.pause())
	d.seq++
	pushes := d.b.Apply(settle("A", d.seq, ended(got[2], contract.OutcomeSuccess, d.now.Add(time.Second))), d.now.Add(2*time.Second))
	require.Empty(t, d.b.Status(d.now).States)
	require.Equal(t, contract.OutcomeSuccess, pushes[0].Grants.States[0].Outcome)
	require.Equal(t, "live", pushes[0].Grants.States[0].State)
}

func TestStatedResets(t *testing.T) {
	t.Parallel()
	limited := func(d *desk, reset time.Time) {
		end := ended(d.ask(1)[0], contract.OutcomeRateLimited, d.now)
		d.now = d.now.Add(time.Second)
		end.Limit.ReopensAt = &reset
		d.seq++
		d.b.Apply(settle("A", d.seq, end), d.now)
	}
	d := newDesk(t)
	limited(d, t0.Add(5*time.Hour))
	require.Equal(t, t0.Add(5*time.Hour), *d.b.Status(d.now).States[0].Until)
	require.Zero(t, d.b.Status(d.now).States[0].Since, "the provider said when it is back")
	d.reopen()
	limited(d, t0) // stated wrongly again: a probe, then a back-off
	require.Equal(t, time.Minute, d.pause())

	d = newDesk(t)
	limited(d, t0.Add(-time.Hour))
	require.Empty(t, d.b.Status(d.now).States, "a reset in the past means a probe now")
	require.Len(t, d.ask(3), 1)
}

func TestExhaustionHoldsUntilAnOperatorReopensIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.ask(3)
	d.end(got[0], contract.OutcomeCreditExhausted)
	d.now = d.now.Add(100 * 24 * time.Hour)
	d.seq++
	refused := d.b.Apply(ask("A", d.seq, "no"), d.now)[0].Grants.Refused[0]
	require.Equal(t, "exhausted", refused.Cause)
	require.Nil(t, refused.Until)
	require.True(t, d.b.Wake().IsZero())

	pushes, err := d.b.Reopen("req", "", d.now)
	require.NoError(t, err)
	require.Len(t, pushes, 2)
	require.Equal(t, "live", pushes[0].Grants.States[0].State)
	require.Equal(t, Push{Run: "run-A", Grants: contract.Grants{Account: "x", States: pushes[0].Grants.States}}, pushes[1], "the run that was refused is told")
	again, err := d.b.Reopen("req", "", d.now)
	require.NoError(t, err)
	require.Empty(t, again, "a request is carried out once")
	_, err = d.b.Reopen("req", "m", d.now)
	require.Error(t, err)

	d.seq++
	d.b.Apply(settle("A", d.seq, ended(got[1], contract.OutcomeCreditExhausted, t0)), d.now)
	require.Empty(t, d.b.Status(d.now).States, "a launch from before the reopening is no evidence")
	require.Len(t, d.ask(3), 1, "what was reopened is probed")
}

func TestModelLimitsLeaveOtherModelsAlone(t *testing.T) {
	t.Parallel()
	b := NewBroker("x")
	m := ask("A", 1, "a1", "a2")
	m.Reserve[1].Model, m.Reserve[1].Pool = "n", "q"
	b.Apply(m, t0)
	end := ended("a1", contract.OutcomeOverloaded, t0.Add(time.Second))
	end.Limit.Scope = "none"
	b.Apply(settle("A", 2, end), t0.Add(2*time.Second))
	require.Equal(t, "m", b.Status(t0).States[0].Model)
	m = ask("A", 3, "a3", "a4")
	m.Reserve[1].Model, m.Reserve[1].Pool = "n", "q"
	pushes := b.Apply(m, t0.Add(3*time.Second))
	require.Equal(t, []string{"a4"}, pushes[0].Grants.Granted)
	require.Equal(t, "a3", pushes[0].Grants.Refused[0].Ticket)
}

func TestNewHolderIsToldWhatHolds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.end(d.ask(1)[0], contract.OutcomeRateLimited)
	pushes := d.b.Apply(settle("B", 1), d.now)
	require.Equal(t, "B", pushes[0].Holder)
	require.Equal(t, "paused", pushes[0].Grants.States[0].State)
	require.Equal(t, 1, pushes[0].Grants.Seq)
}

func TestWindowsThrottleAndClose(t *testing.T) {
	t.Parallel()
	reset := t0.Add(time.Hour)
	window := func(permill int) []contract.Window {
		return []contract.Window{{Name: "5h", UsedPermill: permill, ResetAt: &reset}}
	}
	d := newDesk(t)
	d.b.Observe("", window(949), t0)
	require.Len(t, d.ask(3), 3)

	d = newDesk(t)
	d.b.Observe("", window(950), t0)
	require.Equal(t, []string{"t1"}, d.ask(3), "nearly used: one at a time")
	require.Equal(t, []string{"t2"}, granted(d.end("t1", contract.OutcomeSuccess)))
	d.b.Observe("", window(1000), t0)
	require.Equal(t, reset.Sub(d.now), d.pause())
	require.Equal(t, 1000, d.b.Status(d.now).Windows[0].UsedPermill)
	require.Equal(t, "reported", d.b.Status(d.now).Coverage)
	d.reopen()
	require.Empty(t, d.b.Status(d.now).Windows)
	d.end("t2", contract.OutcomeInterrupted)
	require.Len(t, d.ask(3), 1, "a reset window is probed")
}

func TestBudgetIsZeroDuringACooldown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	require.Equal(t, "none", d.b.Status(d.now).Coverage)
	d.end(d.ask(1)[0], contract.OutcomeRateLimited)
	s := d.b.Status(d.now)
	require.Equal(t, []contract.Window{{Name: "cooldown", UsedPermill: 1000, ResetAt: s.States[0].Until}}, s.Windows)
	require.Equal(t, "reactive", s.Coverage)
}

func TestUsageIsSettledAsToldAndElseUncertain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got := d.ask(2)
	require.EqualValues(t, 200, d.b.Reserved())
	d.seq++
	end := contract.TicketEnd{Ticket: got[0], StartedAt: t0, Usage: contract.Usage{InputTokens: 500, OutputTokens: 7, Known: true}}
	d.b.Apply(settle("A", d.seq, end, contract.TicketEnd{Ticket: got[1], StartedAt: t0}), d.now)
	require.Equal(t, contract.Usage{InputTokens: 500, OutputTokens: 7, Known: true}, d.b.Status(d.now).Settled)
	require.EqualValues(t, 100, d.b.Uncertain())
	require.NoError(t, d.b.Reconcile("r", contract.Usage{InputTokens: 30}))
	require.NoError(t, d.b.Reconcile("r", contract.Usage{InputTokens: 30}), "once")
	require.EqualValues(t, 530, d.b.Status(d.now).Settled.InputTokens)
	require.Zero(t, d.b.Uncertain())
}

func TestBrokerForgetsWhatNothingDependsOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for range 50 {
		d.now = d.now.Add(time.Second)
		d.end(d.ask(1)[0], contract.OutcomeRateLimited)
		d.reopen()
		d.end(d.ask(1)[0], contract.OutcomeSuccess)
	}
	for i := range 2 * run.RequestMemory {
		_, err := d.b.Reopen(fmt.Sprint(i), "", d.now)
		require.NoError(t, err)
	}
	require.Equal(t, run.RequestMemory, d.b.state.Requests.Len())
	text, err := json.Marshal(d.b)
	require.NoError(t, err)
	require.Less(t, len(text), 40<<10, "the carried state stays small")
	d.b.HolderGone("A", d.now)
	d.now = d.now.Add(2 * wallMemory)
	d.b.Tick(d.now)
	require.Empty(t, d.b.state.Holders)
	require.Empty(t, d.b.state.Tickets)
	require.Empty(t, d.b.state.Walls)
	require.Empty(t, d.b.state.Waiting)
}
