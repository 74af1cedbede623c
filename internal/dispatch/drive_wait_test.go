package dispatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// occupy has another run hold slots of a pool.
func (r *rig) occupy(p contract.Pool, n int) (release func()) {
	r.t.Helper()
	m := contract.Tickets{Holder: "other/" + p.ID, Run: "other", Seq: 1}
	for i := range n {
		m.Reserve = append(m.Reserve, contract.Reservation{Ticket: fmt.Sprint("other", i), Pool: p.ID, Model: p.Model, Cap: p.MaxConcurrent})
	}
	require.Len(r.t, granted(r.broker(p.Account).Apply(m, r.now)), n)
	return func() {
		r.push(r.broker(p.Account).HolderGone(m.Holder, r.now))
		r.step()
	}
}

// late starts a rig whose first pool is full of another run's attempts.
func late(t *testing.T, in contract.LevelInput, taken int) (*rig, func()) {
	t.Helper()
	r := &rig{t: t, now: t0, drive: NewDrive(in), brokers: map[string]*Broker{}, launched: map[string]time.Time{}}
	release := r.occupy(in.Pools[0], taken)
	r.step()
	return r, release
}

func TestNodeThatWaitsForOtherRunsAsksTheNextIdlePoolAsWell(t *testing.T) {
	t.Parallel()
	pools := []contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1)}
	pools[1].Rank = 1
	r, release := late(t, input(pools, admissions("a")...), 1)
	require.Empty(t, r.running)
	require.Equal(t, t0.Add(hedgeAfter), r.wake)
	r.advance(hedgeAfter)
	require.Equal(t, []string{"a"}, r.at("q"))
	require.Zero(t, r.broker("x").Status(r.now).Waiting, "the ticket of the busy pool is withdrawn")
	require.Equal(t, contract.NodeID("r", 1, "a", 1)+"~2", r.running[0].Ticket)
	require.Equal(t, 1, r.running[0].Input.Attempt)
	release()
	require.Zero(t, r.broker("x").Status(r.now).Running)
}

func TestWaitingTicketMovesToABetterPoolThatReopens(t *testing.T) {
	t.Parallel()
	worse, better := agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1)
	worse.Rank = 1
	in := input([]contract.Pool{worse, better}, admissions("a")...)
	r := &rig{t: t, now: t0, drive: NewDrive(in), brokers: map[string]*Broker{}, launched: map[string]time.Time{}}
	until := t0.Add(time.Minute)
	r.drive.Receive(contract.Grants{Account: "y", States: []contract.AccountState{{Account: "y", State: "paused", Until: &until}}}, t0)
	r.occupy(worse, 1)
	r.step()
	require.Equal(t, 1, r.broker("x").Status(r.now).Waiting)
	r.advance(time.Minute)
	require.Equal(t, []string{"a"}, r.at("q"))
	require.Zero(t, r.broker("x").Status(r.now).Waiting)
}

func TestGrantThatIsNotWantedIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Drive){
		"stopped":  func(d *Drive) { d.Stop(contract.StopInterrupt) },
		"excluded": func(d *Drive) { d.SetPools([]contract.Pool{agentPool("z", "z", "m", 1)}) },
		"walled": func(d *Drive) {
			until := t0.Add(time.Hour)
			d.Receive(contract.Grants{Account: "x", States: []contract.AccountState{{Account: "x", State: "paused", Until: &until}}}, t0)
		},
		"withdrawn": func(d *Drive) { d.Stop(contract.StopFinish); d.Decide(t0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, b := NewDrive(onePool(1, "a")), NewBroker("x")
			asked := d.Decide(t0)
			pushes := b.Apply(asked.Messages[0].Tickets, t0)
			spoil(d)
			require.Empty(t, d.Receive(pushes[0].Grants, t0))
			for _, m := range d.Decide(t0).Messages {
				if m.Account == "x" {
					b.Apply(m.Tickets, t0)
				}
			}
			require.Zero(t, b.Status(t0).Running)
		})
	}
}

func TestRepeatedGrantsStartNothingTwice(t *testing.T) {
	t.Parallel()
	d, b := NewDrive(onePool(1, "a")), NewBroker("x")
	g := b.Apply(d.Decide(t0).Messages[0].Tickets, t0)[0].Grants
	require.Len(t, d.Receive(g, t0), 1)
	require.Empty(t, d.Receive(g, t0))
	g.Seq = 2
	require.Empty(t, d.Receive(g, t0))
	require.Empty(t, d.Decide(t0).Messages, "the slot of a running attempt is not given back")
}

func TestDriveWaitsForTheBrokersWordBeforeItStrands(t *testing.T) {
	t.Parallel()
	d := NewDrive(onePool(1, "a"))
	ticket := d.Decide(t0).Messages[0].Tickets.Reserve[0].Ticket
	d.Receive(contract.Grants{Account: "x", Granted: []string{ticket}}, t0)
	d.Ended(contract.AttemptResult{Node: "a", Attempt: 1, Outcome: contract.OutcomeRateLimited, StartedAt: t0}, t0.Add(time.Second))
	a := d.Decide(t0.Add(time.Second))
	require.False(t, a.Drained)
	require.Equal(t, t0.Add(time.Second+confirmWithin), a.Wake)

	until := t0.Add(4 * time.Minute)
	d.Receive(contract.Grants{Account: "x", States: []contract.AccountState{{Account: "x", State: "paused", Until: &until}}}, t0.Add(2*time.Second))
	a = d.Decide(t0.Add(2 * time.Second))
	require.True(t, a.Drained)
	require.Equal(t, until, *a.Reports[0].Stranded[0].NotBefore)
}

func TestDriveStrandsOnItsOwnGuessWhenTheBrokerIsSilent(t *testing.T) {
	t.Parallel()
	d := NewDrive(onePool(1, "a"))
	ticket := d.Decide(t0).Messages[0].Tickets.Reserve[0].Ticket
	d.Receive(contract.Grants{Account: "x", Granted: []string{ticket}}, t0)
	d.Ended(contract.AttemptResult{Node: "a", Attempt: 1, Outcome: contract.OutcomeRateLimited}, t0.Add(time.Second))
	a := d.Decide(d.Decide(t0.Add(time.Second)).Wake)
	require.Equal(t, t0.Add(time.Second+pauseBase), *a.Reports[0].Stranded[0].NotBefore)
}

func TestAccountLimitsStopEveryPoolOfTheAccountAndModelLimitsTheModel(t *testing.T) {
	t.Parallel()
	pools := []contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "x", "n", 1), agentPool("z", "x", "m", 1)}
	for scope, open := range map[string]string{"account": "", "model": "q"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, input(pools, admissions("a")...))
			r.end("a", contract.AttemptResult{Outcome: contract.OutcomeRateLimited, StartedAt: t0.Add(time.Second), Limit: &contract.Limit{Scope: scope}})
			if open == "" {
				require.Empty(t, r.running)
				return
			}
			require.Equal(t, []string{"a"}, r.at(open))
		})
	}
}

func TestStopReturnsWhatDoesNotRunAndRetriesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []contract.StopMode{contract.StopInterrupt, contract.StopFinish, contract.StopCancel} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, onePool(2, "a", "b", "c"))
			r.drive.Stop(mode)
			r.step()
			require.Equal(t, contract.StrandHeld, r.stranded[0].Cause)
			require.Equal(t, "c", r.stranded[0].Node)
			require.False(t, r.drained)
			r.fail("a", contract.CauseWork)
			require.Equal(t, contract.Charged{Work: 1}, r.stranded[1].Charged)
			r.end("b", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Kept: r.keptTree("b")})
			require.Equal(t, mode != contract.StopCancel, r.stranded[2].Kept != nil, "a cancelled run continues nothing")
			require.Equal(t, "b", r.stranded[2].Node)
			require.Nil(t, r.stranded[2].NotBefore)
			require.True(t, r.drained)
			r.drive.Admit(admissions("d"))
			r.step()
			require.Equal(t, "d", r.stranded[3].Node, "what comes too late is returned")
		})
	}
}

func TestDriveSealsItselfAfterItsLastAttempt(t *testing.T) {
	t.Parallel()
	in := input([]contract.Pool{commandPool("c", 3)})
	for i := range MaxAttempts + 5 {
		in.Nodes = append(in.Nodes, admissions(fmt.Sprint("n", i))...)
	}
	r := newRig(t, in)
	for len(r.running) > 0 {
		r.end(r.running[0].Input.Node, contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded})
		if len(r.running) == 2 {
			require.Len(t, r.stranded, 5, "the rest is returned at once")
			r.drive.Admit(admissions("late"))
			r.step()
			require.Len(t, r.stranded, 5, "what comes later waits, or it would come again and again")
		}
	}
	require.Len(t, r.settled, MaxAttempts)
	require.Len(t, r.stranded, 6)
	for _, s := range r.stranded {
		require.Equal(t, contract.StrandHeld, s.Cause)
		require.Nil(t, s.NotBefore)
	}
	require.True(t, r.drained)
	require.True(t, r.drive.Status().Sealed)
}

func TestPoolsChangeWhileTheDriveRuns(t *testing.T) {
	t.Parallel()
	p, q := agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1)
	r := newRig(t, input([]contract.Pool{p}, admissions("a", "b")...))
	require.Equal(t, []string{"a"}, r.at("p"))
	r.drive.SetPools([]contract.Pool{q})
	r.step()
	require.Equal(t, []string{"b"}, r.at("q"))
	require.Equal(t, []string{"a"}, r.at("p"), "attempts go on")
	r.fail("a", contract.CauseWork)
	require.Empty(t, r.at("p"))
	require.Equal(t, "excluded", r.drive.Status().Pools[1].State)
	r.succeed("b")
	require.Equal(t, []string{"a"}, r.at("q"))
}

func TestTreeOfAChangedPoolIsNotContinued(t *testing.T) {
	t.Parallel()
	p := agentPool("p", "x", "m", 1)
	in := input([]contract.Pool{p, agentPool("q", "y", "m", 1)}, admissions("a", "b")...)
	in.Policy.Spill = string(plan.SpillNever)
	for name, change := range map[string]func(*contract.Pool){
		"model": func(p *contract.Pool) { p.Model = "n" },
		"cap":   func(p *contract.Pool) { p.MaxConcurrent = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, in)
			for range restAfter + 1 {
				r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Kept: r.keptTree("a")})
			}
			node := r.drive.node("a")
			require.Nil(t, node.run, "it rests")
			changed := p
			change(&changed)
			r.drive.SetPools([]contract.Pool{changed})
			require.Equal(t, name == "model", len(r.drive.report.Friction) == 1)
			require.Equal(t, name == "cap", node.Kept.Pool == "p")
		})
	}
}

func TestAttemptOfAChangedPoolEndsWithItsOldBroker(t *testing.T) {
	t.Parallel()
	p := agentPool("p", "x", "m", 1)
	r := newRig(t, input([]contract.Pool{p}, admissions("a", "b")...))
	moved := p
	moved.Account = "y"
	r.drive.SetPools([]contract.Pool{moved})
	r.step()
	require.Equal(t, 1, r.broker("x").Status(r.now).Running)
	require.Equal(t, []string{"a", "b"}, r.at("p"), "the new account has its own slot")
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Kept: r.keptTree("a")})
	require.Zero(t, r.broker("x").Status(r.now).Running)
	require.Equal(t, 1, r.broker("y").Status(r.now).Running)
	r.succeed("b")
	require.Equal(t, "a", r.running[0].Input.Node)
	require.Nil(t, r.running[0].Input.Kept, "made under the old definition")
	require.NotNil(t, r.running[0].Leaves)
}

func TestNothingStartsThatTheLeaseDoesNotCover(t *testing.T) {
	t.Parallel()
	in := onePool(3, "a", "b", "c")
	in.Policy.AttemptTokens = 100
	total := int64(250)
	r := &rig{t: t, now: t0, drive: NewDrive(in), brokers: map[string]*Broker{}, launched: map[string]time.Time{}}
	r.drive.SetLease(Lease{Tokens: &total})
	r.step()
	require.Equal(t, []string{"a", "b"}, r.at("p"))
	require.Equal(t, 150, r.running[1].Input.Tokens, "within what is left")
	require.Empty(t, r.stranded, "attempts that run may give something back")
	reasons, _ := r.drive.Explain("c", r.now)
	require.Contains(t, reasons[0].Reason, "does not fit into the budget")

	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Usage: contract.Usage{InputTokens: 40, OutputTokens: 10, Known: true}})
	require.Equal(t, []string{"b", "c"}, r.at("p"), "settled as used")
	r.fail("b", contract.CauseWork)
	require.Equal(t, []string{"c"}, r.at("p"), "uncertain usage is charged in full")
	require.Contains(t, r.frictions(), contract.FrictionUsageUncertain)
	r.succeed("c")
	require.Equal(t, contract.StrandBudgetExhausted, r.stranded[0].Cause)
	require.Equal(t, "b", r.stranded[0].Node)
}

func TestReportsFitAPayload(t *testing.T) {
	t.Parallel()
	in := input([]contract.Pool{commandPool("c", 60)})
	for i := range 60 {
		in.Nodes = append(in.Nodes, admissions(fmt.Sprint("n", i))...)
	}
	r := newRig(t, in)
	for _, l := range r.running {
		r.drive.Ended(contract.AttemptResult{
			Node: l.Input.Node, Attempt: 1, Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Tail: strings.Repeat("x", 2048),
		}, r.now)
	}
	r.drive.Seal()
	a := r.drive.Decide(r.now)
	require.Greater(t, len(a.Reports), 2)
	nodes := 0
	for i, rep := range a.Reports {
		text, err := json.Marshal(rep)
		require.NoError(t, err)
		require.Less(t, len(text), 48<<10)
		require.Equal(t, i == len(a.Reports)-1, rep.Drained)
		nodes += len(rep.Settled)
	}
	require.Equal(t, 60, nodes)
}

func TestExplainNamesTheReasonOfEveryPool(t *testing.T) {
	t.Parallel()
	pools := []contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1), agentPool("z", "z", "m", 1)}
	pools[1].ContextTokens = 1000
	in := input(pools, admissions("a", "b")...)
	in.Nodes[1].Tokens = 5000
	in.Settled = []string{"z"}
	r := newRig(t, in)
	require.Equal(t, []string{"a"}, r.at("p"))
	reasons, ok := r.drive.Explain("b", r.now)
	require.True(t, ok)
	require.Equal(t, []contract.PoolReason{
		{Pool: "p", Reason: "busy: all 1 slots are taken or asked for"},
		{Pool: "q", Reason: "too small: the node needs about 5000 tokens and 15000 for the agent, the pool has 1000"},
		{Pool: "z", Reason: "settled: settled for this run"},
	}, reasons)
	reasons, _ = r.drive.Explain("a", r.now)
	require.Equal(t, contract.PoolReason{Pool: "p", Reason: "runs there"}, reasons[0])
	require.Len(t, reasons, 3)
	_, ok = r.drive.Explain("no", r.now)
	require.False(t, ok)
}

func TestExplainSaysWhatABackOffWaitsFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(1, "a"))
	r.fail("a", contract.CauseHost)
	reasons, _ := r.drive.Explain("a", r.now)
	require.Equal(t, "backs off until 2026-11-30T12:00:32Z", reasons[0].Reason)
}

func TestStatusListsWhatRunsAndWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(1, "a", "b"))
	s := r.drive.Status()
	require.Equal(t, []contract.RunningNode{{Node: "a", Attempt: 1, Pool: "p", StartedAt: t0}}, s.Running)
	require.Equal(t, []string{"b"}, s.Waiting)
	require.Equal(t, contract.PoolState{ID: "p", Account: "x", Model: "m", State: "live", Running: 1, Max: 1, Used: true}, s.Pools[0])
}

func TestNodeThatAsksForATierThatIsNotLiveRunsBelowWithFriction(t *testing.T) {
	t.Parallel()
	in := onePool(1, "a")
	in.Nodes[0].Tier = string(plan.TierDeep)
	r := newRig(t, in)
	require.Equal(t, []string{"a"}, r.at("p"))
	require.Equal(t, []contract.FrictionType{contract.FrictionTierRelaxed}, r.frictions())
}
