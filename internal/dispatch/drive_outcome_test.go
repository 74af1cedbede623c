package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

func onePool(slots int, nodes ...string) contract.LevelInput {
	return input([]contract.Pool{agentPool("p", "x", "m", slots)}, admissions(nodes...)...)
}

func TestLimitsAreNotChargedAndReturnToTheFrontWithTheirTree(t *testing.T) {
	t.Parallel()
	for _, outcome := range []contract.Outcome{
		contract.OutcomeRateLimited, contract.OutcomeOverloaded, contract.OutcomeQuotaUnclassified,
		contract.OutcomeCreditExhausted, contract.OutcomeAuthFailed,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, onePool(1, "a", "b"))
			r.limit("a", outcome, 0)
			require.Len(t, r.stranded, 2)
			require.Equal(t, "a", r.stranded[0].Node, "the limited node is first in the queue")
			require.Equal(t, &contract.Kept{Attempt: 1, Host: "h", Pool: "p"}, r.stranded[0].Kept)
			require.Equal(t, contract.Charged{}, r.stranded[0].Charged)
			require.Len(t, r.stranded[0].Attempts, 1)
		})
	}
}

func TestPausesOfEachOutcome(t *testing.T) {
	t.Parallel()
	for outcome, pause := range map[contract.Outcome]time.Duration{
		contract.OutcomeRateLimited: time.Minute, contract.OutcomeOverloaded: 2 * time.Minute, contract.OutcomeQuotaUnclassified: time.Minute,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, onePool(2, "a", "b"))
			r.limit("a", outcome, 0)
			require.Len(t, r.stranded, 1)
			require.Equal(t, contract.StrandQuotaPaused, r.stranded[0].Cause)
			require.Equal(t, r.now.Add(pause), *r.stranded[0].NotBefore)
			require.Equal(t, outcome == contract.OutcomeQuotaUnclassified, len(r.friction) == 1)
		})
	}
}

// An attempt that nobody took goes to another pool, or back to the run.
func TestUnservedPoolIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		pools := []contract.Pool{commandPool("p", 1)}
		if others {
			pools = append(pools, commandPool("q", 1))
			pools[1].Rank = 1
		}
		r := newRig(t, input(pools, admissions("a")...))
		require.Equal(t, []string{"a"}, r.at("p"))
		r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Unserved: true})
		if others {
			require.Equal(t, []string{"a"}, r.at("q"))
			continue
		}
		require.Len(t, r.stranded, 1)
		require.Equal(t, contract.StrandUnserved, r.stranded[0].Cause)
		require.Nil(t, r.stranded[0].NotBefore)
		require.Zero(t, r.stranded[0].Charged)
		hold, ok := HoldFor(Fold(r.stranded))
		require.True(t, ok)
		require.Equal(t, contract.HoldService, hold.Kind)
	}
}

// A host that is being stopped is given a moment: the tree is best continued there.
func TestKeptTreeWaitsForItsHostsRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{commandPool("p", 1)}, admissions("a")...))
	kept := &contract.Kept{Attempt: 1, Host: "h", Pool: "p"}
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Stopping: true, Kept: kept})
	require.Empty(t, r.at("p"))
	require.Equal(t, t0.Add(stopRest), r.wake)
	r.advance(stopRest)
	require.Equal(t, []string{"a"}, r.at("p"))
	require.Equal(t, kept, r.running[0].Input.Kept)
}

func TestExhaustionSettlesThePoolOnceUntilItIsReopened(t *testing.T) {
	t.Parallel()
	in := input([]contract.Pool{agentPool("p", "x", "m", 3), agentPool("q", "x", "n", 1), agentPool("z", "y", "m", 1)}, admissions("a", "b", "c", "d", "e")...)
	r := newRig(t, in)
	require.Len(t, r.running, 5)
	r.limit("a", contract.OutcomeCreditExhausted, 0)
	require.Equal(t, []contract.FrictionType{contract.FrictionCreditExhausted, contract.FrictionPoolSettled, contract.FrictionPoolSettled}, r.frictions(),
		"all pools of the account are settled")
	r.limit("b", contract.OutcomeCreditExhausted, 0)
	r.succeed(r.at("z")...)
	require.Equal(t, []string{"b"}, r.at("z"), "other pools serve on, the last returned first")
	require.Len(t, r.friction, 3, "told once")
	require.Equal(t, "settled", r.drive.Status().Pools[0].State)

	pushes, err := r.broker("x").Reopen("1", "", r.now)
	require.NoError(t, err)
	r.push(pushes)
	r.step()
	require.Equal(t, "ramping", r.drive.Status().Pools[0].State)
	require.Contains(t, r.at("p"), "a", "the tree that waited is continued")
}

func TestEverythingExhaustedStrandsAsEmptyPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(1, "a"))
	r.limit("a", contract.OutcomeAuthFailed, 0)
	require.Equal(t, contract.StrandEmptyPool, r.stranded[0].Cause)
	require.Nil(t, r.stranded[0].NotBefore)
	require.Equal(t, []contract.FrictionType{contract.FrictionAuthFailed, contract.FrictionPoolSettled}, r.frictions())
}

func TestModelUnavailableExhaustsThePoolForThisRunOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "x", "n", 1)}, admissions("a")...))
	r.limit("a", contract.OutcomeModelUnavailable, 0)
	require.Equal(t, []string{"a"}, r.at("q"))
	require.Nil(t, r.running[0].Leaves, "the tree was released")
	require.Equal(t, []contract.FrictionType{contract.FrictionModelUnavailable, contract.FrictionPoolSettled}, r.frictions())
	require.Empty(t, r.broker("x").Status(r.now).States, "other runs are not concerned")
}

func TestPacketTooLargeSkipsThePoolForThisNodeOnly(t *testing.T) {
	t.Parallel()
	pools := []contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1)}
	pools[1].Rank = 1
	r := newRig(t, input(pools, admissions("a", "b")...))
	require.Equal(t, []string{"a"}, r.at("p"))
	r.succeed("b")
	r.limit("a", contract.OutcomePacketTooLarge, 0)
	require.Equal(t, []string{"a"}, r.at("q"))
	require.Equal(t, []contract.FrictionType{contract.FrictionPacketTooLarge}, r.frictions())

	r.drive.Admit(admissions("c"))
	r.step()
	require.Equal(t, []string{"c"}, r.at("p"), "the pool serves others")

	r.limit("a", contract.OutcomePacketTooLarge, 0)
	require.Equal(t, contract.StrandNoCapablePool, r.stranded[0].Cause)
	require.Equal(t, []string{"p", "q"}, r.stranded[0].Refused)
	require.Contains(t, r.stranded[0].Reason, "waiting will not help")
}

func TestInterruptedIsNotChargedAndContinuesItsTree(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(1, "a", "b"))
	kept := r.keptTree("a")
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Kept: kept})
	require.Equal(t, []string{"a"}, r.at("p"))
	require.Equal(t, kept, r.running[0].Input.Kept)
	require.Equal(t, 2, r.running[0].Input.Attempt)
}

func TestManyInterruptionsInARowAreGivenARest(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(1, "a"))
	for range restAfter {
		r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted})
		require.Len(t, r.running, 1)
	}
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted})
	require.Empty(t, r.running)
	r.advance(retryBase)
	require.Len(t, r.running, 1)
}

func TestOwnCapInterruptsOnceAndThenFails(t *testing.T) {
	t.Parallel()
	in := onePool(1, "a")
	in.Policy.AttemptTokens = 1000
	r := newRig(t, in)
	require.Equal(t, 3000, r.running[0].Input.Tokens)
	over := contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Friction: []contract.Friction{{Type: contract.FrictionOverAllowance}}}
	r.end("a", over)
	require.Equal(t, contract.Charged{}, r.drive.node("a").Charged)
	require.True(t, r.running[0].Input.Capped)
	r.end("a", over)
	require.Equal(t, contract.Charged{Work: 1}, r.drive.node("a").Charged)
	r.end("a", over)
	require.Equal(t, contract.NodeBlocked, r.settled[0].State)
}

func TestDeclaredFreePoolThatChargesIsDemotedOnce(t *testing.T) {
	t.Parallel()
	a, b := agentPool("p", "x", "m", 1), agentPool("q", "y", "m", 1)
	a.Cost = &contract.Cost{}
	r := newRig(t, input([]contract.Pool{a, b}, admissions("a", "b", "c", "d")...))
	for _, node := range []string{"a", "c"} {
		require.Equal(t, []string{node}, r.at("p"))
		r.end(node, contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Usage: contract.Usage{USDMicros: 5, Known: true}})
	}
	require.Equal(t, []contract.FrictionType{contract.FrictionDeclaredCostDrift}, r.frictions())
	r.succeed("b", "d")
	r.drive.Admit(admissions("e"))
	r.step()
	require.Equal(t, []string{"e"}, r.at("q"))
}

func TestTimeoutsAreChargedToTheHostAndSlowThePoolDownAfterTwo(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(4, "a", "b", "c", "d", "e"))
	require.Len(t, r.running, 4)
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeTimeout})
	require.Equal(t, 1, r.drive.node("a").Charged.Host)
	require.Len(t, r.running, 4)
	r.end("b", contract.AttemptResult{Outcome: contract.OutcomeTimeout})
	require.Len(t, r.running, 3)
	require.Equal(t, 2, r.drive.pool("p").most())
}

func TestProviderErrorsSlowThePoolDownAndSuccessesSpeedItUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(4, "a", "b", "c", "d"))
	r.fail("a", contract.CauseProvider)
	require.Equal(t, 2, r.drive.pool("p").most())
	r.fail("b", contract.CauseHost)
	require.Equal(t, 1, r.drive.pool("p").most())
	r.succeed("c")
	require.Equal(t, 1, r.drive.pool("p").most(), "a success from before the slow-down proves nothing")
	r.advance(time.Minute)
	r.fail("d", contract.CauseWork)
	require.Equal(t, 1, r.drive.pool("p").most(), "the work's faults are not the pool's")
	r.succeed(r.at("p")[0])
	require.Equal(t, 2, r.drive.pool("p").most())
}

func TestNewAndReopenedPoolsAreRamped(t *testing.T) {
	t.Parallel()
	in := onePool(8)
	in.Used = nil
	for i := range 20 {
		in.Nodes = append(in.Nodes, admissions(fmt.Sprint("n", i))...)
	}
	r := newRig(t, in)
	require.False(t, r.drive.Status().Pools[0].Used)
	for _, want := range []int{1, 2, 4, 8} {
		require.Len(t, r.at("p"), want)
		r.succeed(r.at("p")[0])
	}
	require.Len(t, r.at("p"), 8)
	require.True(t, r.drive.Status().Pools[0].Used, "the next drive does not ramp it")

	in.Pools = []contract.Pool{commandPool("c", 8)}
	require.Len(t, newRig(t, in).at("c"), 8, "a command has no one to hammer")
}

func TestEscalatesTheNodeThatAloneIsLimited(t *testing.T) {
	t.Parallel()
	limited := func(t *testing.T, others int) *rig {
		in := onePool(2, "a", "b")
		in.Nodes[0].Limited = []contract.Streak{{Pool: "p", Count: 2, Successes: others}}
		r := newRig(t, in)
		r.limit("a", contract.OutcomeRateLimited, 5*time.Second)
		require.Equal(t, contract.StrandQuotaPaused, r.stranded[0].Cause, "the third in a row")
		require.Equal(t, []contract.Streak{{Pool: "p", Count: 3, Successes: others}}, r.stranded[0].Limited)
		again := contract.Admission{Node: "a", Opening: 1, NextAttempt: 2, Limited: r.stranded[0].Limited}
		r.advance(10 * time.Second)
		r.drive.Admit([]contract.Admission{again})
		r.step()
		return r
	}
	t.Run("others succeeded before in between", func(t *testing.T) {
		t.Parallel()
		r := limited(t, 1)
		r.limit("a", contract.OutcomeRateLimited, time.Second)
		require.Equal(t, contract.StrandEscalated, r.stranded[1].Cause)
		require.Nil(t, r.stranded[1].NotBefore)
		require.Contains(t, r.frictions(), contract.FrictionQuotaEscalation)
	})
	t.Run("others succeed now", func(t *testing.T) {
		t.Parallel()
		r := limited(t, 0)
		r.advance(time.Second)
		r.end("b", contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, StartedAt: r.now})
		r.limit("a", contract.OutcomeRateLimited, time.Second)
		require.Equal(t, contract.StrandEscalated, r.stranded[1].Cause)
	})
	t.Run("others that were launched before succeed", func(t *testing.T) {
		t.Parallel()
		r := limited(t, 0)
		r.succeed("b")
		r.limit("a", contract.OutcomeRateLimited, time.Second)
		require.Equal(t, contract.StrandQuotaPaused, r.stranded[1].Cause, "it is the pool")
	})
	t.Run("nobody succeeds: it is the pool", func(t *testing.T) {
		t.Parallel()
		r := limited(t, 0)
		r.limit("a", contract.OutcomeRateLimited, time.Second)
		require.Equal(t, contract.StrandQuotaPaused, r.stranded[1].Cause)
	})
	t.Run("another end in between", func(t *testing.T) {
		t.Parallel()
		r := limited(t, 1)
		r.fail("a", contract.CauseWork)
		r.limit("a", contract.OutcomeRateLimited, time.Second)
		require.Equal(t, contract.StrandQuotaPaused, r.stranded[1].Cause)
	})
}

func TestLimitsOfAnOldLaunchDoNotPauseAReopenedPool(t *testing.T) {
	t.Parallel()
	r := newRig(t, onePool(3, "a", "b", "c"))
	r.limit("a", contract.OutcomeRateLimited, 10*time.Second)
	r.advance(20 * time.Second)
	require.Len(t, r.running, 2, "the pool is open again, but its slots are busy with old launches")
	old := contract.AttemptResult{Outcome: contract.OutcomeRateLimited, StartedAt: t0.Add(time.Second), Limit: &contract.Limit{Scope: "account"}}
	r.end("b", old)
	require.Equal(t, []string{"c", "b"}, r.at("p"), "b is tried again at once")
	require.Empty(t, r.broker("x").Status(r.now).States)
	require.Equal(t, "ramping", r.drive.Status().Pools[0].State)
}

func TestReopeningEndsTheRunsOwnVerdicts(t *testing.T) {
	t.Parallel()
	in := onePool(1, "a")
	in.Settled = []string{"p"}
	d := NewDrive(in)
	d.Receive(contract.Grants{Account: "x", States: []contract.AccountState{{Account: "x", State: "live", Outcome: contract.OutcomeSuccess, Since: t0}}}, t0)
	require.Equal(t, "settled", d.Status().Pools[0].State, "a success elsewhere reopens nothing that this run settled")
	d.Receive(contract.Grants{Account: "x", States: []contract.AccountState{{Account: "x", State: "live", Since: t0}}}, t0)
	require.Equal(t, "ramping", d.Status().Pools[0].State)
	require.Len(t, d.Decide(t0).Messages, 1)
}

func TestRefusalsAloneStopTheAsking(t *testing.T) {
	t.Parallel()
	until := t0.Add(time.Hour)
	for cause, want := range map[string]contract.StrandCause{
		refusedPaused: contract.StrandQuotaPaused, refusedExhausted: contract.StrandEmptyPool, refusedBudget: contract.StrandBudgetExhausted,
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			d := NewDrive(onePool(1, "a"))
			ticket := d.Decide(t0).Messages[0].Tickets.Reserve[0].Ticket
			no := contract.TicketRefusal{Ticket: ticket, Cause: cause}
			if cause == refusedPaused {
				no.Until = &until
			}
			d.Receive(contract.Grants{Account: "x", Refused: []contract.TicketRefusal{no}}, t0)
			a := d.Decide(t0)
			require.Empty(t, a.Messages)
			require.Equal(t, want, a.Reports[0].Stranded[0].Cause)
			require.Equal(t, no.Until, a.Reports[0].Stranded[0].NotBefore)
		})
	}
}

func TestExhaustedModelLeavesOtherModelsOfTheAccountOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{agentPool("p", "x", "m", 1), agentPool("q", "x", "n", 1)}, admissions("a")...))
	r.end("a", contract.AttemptResult{
		Outcome: contract.OutcomeCreditExhausted, StartedAt: t0.Add(time.Second), Limit: &contract.Limit{Scope: "model", Hard: true},
	})
	require.Equal(t, []string{"a"}, r.at("q"))
	require.Equal(t, "m", r.broker("x").Status(r.now).States[0].Model)
}

func TestPoolDownIsToldWhenNobodySucceedsForAnHour(t *testing.T) {
	t.Parallel()
	d := NewDrive(onePool(1, "a"))
	state := func(since time.Duration) contract.Grants {
		until := t0.Add(time.Minute)
		return contract.Grants{Account: "x", States: []contract.AccountState{
			{Account: "x", State: "paused", Until: &until, Outcome: contract.OutcomeOverloaded, Since: t0.Add(-since)},
		}}
	}
	d.Receive(state(59*time.Minute), t0)
	require.Empty(t, d.report.Friction)
	d.Receive(state(time.Hour), t0)
	d.Receive(state(time.Hour), t0)
	require.Len(t, d.report.Friction, 1)
	require.Equal(t, contract.FrictionPoolDown, d.report.Friction[0].Type)
}

func TestKeysOfLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome contract.Outcome
		scope   string
		want    string
	}{
		{contract.OutcomeRateLimited, "model", "m"}, {contract.OutcomeRateLimited, "account", ""}, {contract.OutcomeRateLimited, "none", ""},
		{contract.OutcomeOverloaded, "none", "m"}, {contract.OutcomeOverloaded, "account", ""},
		{contract.OutcomeQuotaUnclassified, "", "m"},
	} {
		require.Equal(t, tt.want, limitModel(tt.outcome, &contract.Limit{Scope: tt.scope}, "m"), "%s %s", tt.outcome, tt.scope)
	}
	require.Empty(t, limitModel(contract.OutcomeRateLimited, nil, "m"))
}
