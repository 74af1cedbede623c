package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestQuotaPools lets walls meet pools: who takes a node when another pool does not.
func TestQuotaPools(t *testing.T) {
	t.Parallel()
	lab := newQuotaLab(t, false,
		quotaPool{ID: "first-a"}, quotaPool{ID: "first-b", Rank: 1},
		quotaPool{ID: "soon-a"}, quotaPool{ID: "soon-b", Rank: 1},
		quotaPool{ID: "known-a"}, quotaPool{ID: "known-b", Rank: 1},
		quotaPool{ID: "credit-a"}, quotaPool{ID: "credit-b", Rank: 1},
		quotaPool{ID: "shared-a", Account: "shared"}, quotaPool{ID: "shared-b", Account: "shared", Rank: 1},
		quotaPool{ID: "flash", Account: "models", Model: "flash"}, quotaPool{ID: "pro", Account: "models", Model: "pro", Rank: 1},
		quotaPool{ID: "small"}, quotaPool{ID: "large", Rank: 1},
		quotaPool{ID: "one-size"},
		quotaPool{ID: "spent"}, quotaPool{ID: "rich", Rank: 1},
		quotaPool{ID: "wrong"},
		quotaPool{ID: "old"}, quotaPool{ID: "new"},
		quotaPool{ID: "renamed"},
		quotaPool{ID: "busy", Max: 1}, quotaPool{ID: "added"},
	)
	t.Run("the second takes what the first cannot, at once", lab.testSecondPool)
	t.Run("of two resets the earlier counts", lab.testEarlierReset)
	t.Run("a known reset counts beside an unknown one", lab.testKnownReset)
	t.Run("a known reset counts beside an exhausted pool that reopens", lab.testReopenWithoutDrive)
	t.Run("a limit of an account stops all its pools", lab.testSharedAccount)
	t.Run("a limit of a model leaves the account's other models", lab.testModelLimit)
	t.Run("a size refusal concerns one node on one pool", lab.testTooLong)
	t.Run("waiting does not help a node that fits nowhere", lab.testNoCapablePool)
	t.Run("an exhausted pool is settled once and comes back", lab.testCreditExhausted)
	t.Run("a wrong reset is probed by one worker", lab.testWrongReset)
	t.Run("a run gets other pools while it waits", lab.testPoolsSet)
	t.Run("a pool that became another starts its nodes fresh", lab.testPoolRedefined)
	t.Run("a drive takes the new composition over", lab.testPoolsSetMeanwhile)
}

func (l *quotaLab) testSecondPool(t *testing.T) {
	t.Parallel()
	first := l.wall(t, "first-a")
	first.says(t, saysLimit)
	c := l.start(t, nodesOf("alpha", "beta", "gamma", "delta"), "first-a", "first-b")

	rows := l.requireGreen(t, c)
	for id, row := range rows {
		require.Equal(t, "first-b", row.Attempts[len(row.Attempts)-1].Pool, id)
		require.LessOrEqual(t, len(row.Attempts), 2, "%s was sent to the wall again: %+v", id, row.Attempts)
	}
	// Those that were under way together, and nobody after them.
	require.LessOrEqual(t, first.hits(), 3)
	for _, e := range l.status(t, c.Run).Events {
		require.NotContains(t, e.Text, "held (", "the run never waited")
	}
}

func (l *quotaLab) testEarlierReset(t *testing.T) {
	t.Parallel()
	late, soon := l.wall(t, "soon-a"), l.wall(t, "soon-b")
	late.resets(t, saysReset, 10*time.Minute)
	soon.resets(t, saysReset, 20*time.Second)
	c := l.start(t, nodesOf("alpha", "beta"), "soon-a", "soon-b")

	hold := l.awaitHold(t, c.Run, contract.HoldQuota)
	require.WithinDuration(t, soon.reset(t).Add(1500*time.Millisecond), *hold.Until, 501*time.Millisecond)
	v := l.explain(t, c.Run, "alpha")
	require.Len(t, v.Passed, 2, "it says of every pool why the node is not there")
	for _, text := range []string{"paused until", "rate_limited: Claude AI usage limit reached"} {
		require.Contains(t, v.Passed[0].Reason, text)
	}
	told := l.Client.OK(t, "status", c.Run)
	require.Contains(t, told, "until "+hold.Until.Local().Format(time.DateTime)+"; lift with: starter resume "+c.Run+" --now")
	require.Contains(t, told, "pool     soon-a is paused until ")
	rows := l.requireGreen(t, c)
	for id, row := range rows {
		last := row.Attempts[len(row.Attempts)-1]
		require.Equal(t, "soon-b", last.Pool, id)
		require.False(t, last.StartedAt.Before(*hold.Until))
	}
	require.Equal(t, "paused", l.account(t, "soon-a").States[0].State, "the other pool waits for its own reset")
}

func (l *quotaLab) testKnownReset(t *testing.T) {
	t.Parallel()
	unknown, known := l.wall(t, "known-a"), l.wall(t, "known-b")
	unknown.says(t, saysLimit)
	known.resets(t, saysReset, 20*time.Second)
	c := l.start(t, nodesOf("alpha"), "known-a", "known-b")

	hold := l.awaitHold(t, c.Run, contract.HoldQuota)
	require.WithinDuration(t, known.reset(t).Add(1500*time.Millisecond), *hold.Until, 501*time.Millisecond)
	rows := l.requireGreen(t, c)
	attempts := rows["alpha"].Attempts
	require.Equal(t, "known-b", attempts[len(attempts)-1].Pool)
}

// The exhausted pool serves again because an operator says so while the run
// waits without a drive; the other would have been paused for much longer.
func (l *quotaLab) testReopenWithoutDrive(t *testing.T) {
	t.Parallel()
	exhausted, paused := l.wall(t, "credit-a"), l.wall(t, "credit-b")
	exhausted.says(t, saysCredit)
	paused.resets(t, saysReset, time.Hour)
	c := l.start(t, nodesOf("alpha"), "credit-a", "credit-b")

	hold := l.awaitHold(t, c.Run, contract.HoldQuota)
	require.WithinDuration(t, paused.reset(t).Add(1500*time.Millisecond), *hold.Until, 501*time.Millisecond)
	v := l.status(t, c.Run)
	require.Empty(t, v.Drives)
	require.Len(t, frictionOf(v.Friction, contract.FrictionCreditExhausted), 1)
	require.Len(t, frictionOf(v.Friction, contract.FrictionPoolSettled), 1, "settled once")
	require.Equal(t, "exhausted", l.account(t, "credit-a").States[0].State)

	exhausted.opens(t)
	l.Client.OK(t, "pools", "reopen", "credit-a")
	rows := l.requireGreen(t, c)
	attempts := rows["alpha"].Attempts
	require.Equal(t, "credit-a", attempts[len(attempts)-1].Pool)
	require.Less(t, time.Since(hold.Since), time.Hour)
	require.Len(t, frictionOf(l.Client.Report(t, c.Run).Friction, contract.FrictionCreditExhausted), 1, "the report tells it too")
}

func (l *quotaLab) testSharedAccount(t *testing.T) {
	t.Parallel()
	l.wall(t, "shared-a").resets(t, saysReset, 20*time.Second)
	c := l.start(t, nodesOf("alpha", "beta"), "shared-a", "shared-b")

	l.awaitHold(t, c.Run, contract.HoldQuota)
	for _, p := range l.status(t, c.Run).Pools {
		require.Equal(t, "paused", p.State, p.ID)
	}
	rows := l.requireGreen(t, c)
	limited := 0
	for _, row := range rows {
		for _, a := range row.Attempts {
			if a.Outcome == contract.OutcomeRateLimited {
				require.Equal(t, "shared-a", a.Pool)
				limited++
			}
		}
	}
	require.Positive(t, limited)
}

func (l *quotaLab) testModelLimit(t *testing.T) {
	t.Parallel()
	l.wall(t, "flash").says(t, saysModel)
	c := l.start(t, nodesOf("alpha", "beta"), "flash", "pro")

	rows := l.requireGreen(t, c)
	for id, row := range rows {
		require.Equal(t, "pro", row.Attempts[len(row.Attempts)-1].Pool, id)
	}
	states := l.account(t, "models").States
	require.Len(t, states, 1)
	require.Equal(t, "flash", states[0].Model)
	require.Equal(t, "paused", states[0].State)
}

func (l *quotaLab) testTooLong(t *testing.T) {
	t.Parallel()
	small := l.wall(t, "small")
	small.says(t, saysTooLong)
	small.only(t, "alpha")
	c := l.start(t, nodesOf("alpha", "beta", "gamma"), "small", "large")

	rows := l.requireGreen(t, c)
	require.Equal(t, []contract.Outcome{contract.OutcomePacketTooLarge}, outcomes(rows["alpha"], false))
	require.Equal(t, "large", rows["alpha"].Attempts[1].Pool)
	for _, id := range []string{"beta", "gamma"} {
		require.Equal(t, "small", rows[id].Attempts[0].Pool, "the small pool keeps serving others")
		require.Len(t, rows[id].Attempts, 1)
	}
	friction := l.Client.Report(t, c.Run).Friction
	require.Len(t, frictionOf(friction, contract.FrictionPacketTooLarge), 1)
	require.Empty(t, frictionOf(friction, contract.FrictionPoolSettled), "a size refusal exhausts nothing")
	require.Empty(t, l.account(t, "small").States)
}

func (l *quotaLab) testNoCapablePool(t *testing.T) {
	t.Parallel()
	size := l.wall(t, "one-size")
	size.says(t, saysTooLong)
	size.only(t, "alpha")
	c := l.start(t, nodesOf("alpha", "beta"), "one-size")

	hold := l.awaitHold(t, c.Run, contract.HoldQuota)
	require.Nil(t, hold.Until, "no instant is promised that would not help")
	require.Contains(t, hold.Reason, "waiting does not help alpha")
	require.Contains(t, hold.Reason, "change the pools")
	v := l.explain(t, c.Run, "alpha")
	require.Equal(t, contract.StrandNoCapablePool, v.Cause)
	require.Equal(t, []string{"one-size"}, v.Refused)
	require.Contains(t, v.Passed[0].Reason, "refused this node for its size")
	require.Equal(t, contract.NodeLanded, l.Client.Nodes(t, c.Run)["beta"].State, "the others were served")

	// What would help, helps.
	l.Client.OK(t, "pools", "set", c.Run, "--pools", l.runPools(t, "one-size", "large"))
	rows := l.requireGreen(t, c)
	require.Equal(t, "large", rows["alpha"].Attempts[1].Pool)
}

// The pool that came first is exhausted at once; the second serves. Reopened
// while a drive works, the first takes what starts from then on.
func (l *quotaLab) testCreditExhausted(t *testing.T) {
	t.Parallel()
	spent := l.wall(t, "spent")
	spent.says(t, saysCredit)
	p := testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta"}, {ID: "gamma", After: []string{"beta"}}}}
	run := testkit.RunID(t)
	l.Control.Script(t, run, "beta", "mark {node}/work.txt", "tell beta", "wait go", "result resolved")
	c := l.start(t, p, "spent", "rich")

	l.Client.Await(t, run, "alpha landed", func(v contract.RunView) bool { return v.Nodes["landed"] == 1 })
	v := l.status(t, run)
	require.Empty(t, v.Holds)
	require.Equal(t, "settled", v.Pools[0].State)
	require.Len(t, frictionOf(v.Friction, contract.FrictionPoolSettled), 1)
	require.Len(t, frictionOf(v.Friction, contract.FrictionCreditExhausted), 1)
	spent.opens(t)
	l.Client.OK(t, "pools", "reopen", "spent")
	l.Client.Await(t, run, "the pool is live", func(v contract.RunView) bool { return v.Pools[0].State != "settled" })
	require.NoError(t, l.Control.Tell(run, "go"))

	rows := l.requireGreen(t, c)
	require.Equal(t, "rich", rows["alpha"].Attempts[len(rows["alpha"].Attempts)-1].Pool)
	require.Equal(t, "spent", rows["gamma"].Attempts[0].Pool, "reopened, it comes first again")
	require.Len(t, rows["gamma"].Attempts, 1)
	require.Len(t, frictionOf(l.Client.Report(t, run).Friction, contract.FrictionPoolSettled), 1)
}

// The provider's reset passes and the wall still stands: one worker finds out,
// the others are not sent. Neither are they when an operator ends the wait.
func (l *quotaLab) testWrongReset(t *testing.T) {
	t.Parallel()
	wrong := l.wall(t, "wrong")
	wrong.put(t, "stays", "")
	wrong.resets(t, saysReset, 15*time.Second)
	c := l.start(t, nodesOf("alpha", "beta", "gamma"), "wrong")

	first := l.awaitHold(t, c.Run, contract.HoldQuota)
	all := wrong.hits()
	require.Positive(t, all)
	second := l.awaitNextHold(t, c.Run, first)
	require.Equal(t, all+1, wrong.hits(), "one worker tried the reset that was stated")
	require.True(t, second.Until.After(wrong.reset(t)), "a statement that turned out wrong is not believed again")

	l.Client.OK(t, "resume", c.Run, "--now")
	third := l.awaitNextHold(t, c.Run, second)
	require.Equal(t, all+2, wrong.hits(), "one worker tried for the operator")

	wrong.opens(t)
	l.Client.OK(t, "resume", c.Run, "--now")
	l.requireGreen(t, c)
	require.Equal(t, all+2, wrong.hits())
	require.True(t, l.firstStart(t, c.Run, third.Since).Before(*third.Until), "the wait ended early")
}

// awaitNextHold waits for a quota hold that began after another one.
func (l *quotaLab) awaitNextHold(t *testing.T, run string, last contract.Hold) contract.Hold {
	t.Helper()
	var next contract.Hold
	l.Client.Await(t, run, "the run waits again", func(v contract.RunView) bool {
		for _, h := range v.Holds {
			if h.Kind == contract.HoldQuota && h.Since.After(last.Since) && v.Status == contract.RunPaused {
				next = h
				return true
			}
		}
		return false
	})
	return next
}

// A composition that changes while the run waits without a drive wakes it; a
// pool that runs something else now starts the node fresh, and says so.
func (l *quotaLab) testPoolsSet(t *testing.T) {
	t.Parallel()
	old := l.wall(t, "old")
	old.resets(t, saysReset, time.Hour)
	old.only(t, "alpha", "beta")
	c := l.start(t, nodesOf("alpha"), "old")
	l.awaitHold(t, c.Run, contract.HoldQuota)

	exits := l.Client.Starter(t, "pools", "set", c.Run)
	require.Equal(t, 2, exits.Code, exits.Err)
	l.Client.OK(t, "pools", "set", c.Run, "--pools", l.runPools(t, "new"))

	rows := l.requireGreen(t, c)
	attempts := rows["alpha"].Attempts
	require.Equal(t, "new", attempts[len(attempts)-1].Pool)
	require.NotEmpty(t, attempts[0].Salvage, "what the limited attempt did is kept")
	v := l.status(t, c.Run)
	require.Len(t, v.Pools, 1)
	require.Equal(t, "new", v.Pools[0].ID)
	usage := l.Client.Report(t, c.Run).Pools
	require.Len(t, usage, 2, "the report counts what was used of every pool: %+v", usage)
}

func (l *quotaLab) testPoolRedefined(t *testing.T) {
	t.Parallel()
	renamed := l.wall(t, "renamed")
	renamed.resets(t, saysReset, time.Hour)
	c := l.start(t, nodesOf("alpha"), "renamed")
	l.awaitHold(t, c.Run, contract.HoldQuota)

	// The same pool with another model on another account, which has no wall.
	renamed.opens(t)
	path := filepath.Join(t.TempDir(), "pools.yaml")
	l.writePools(t, path, false, quotaPool{ID: "renamed", Account: "renamed-too", Model: "other"})
	l.Client.OK(t, "pools", "set", c.Run, "--pools", path)

	row := l.requireGreen(t, c)["alpha"]
	require.Len(t, row.Attempts, 2)
	require.NotEmpty(t, row.Attempts[0].Salvage)
	landed := c.Repo.Git(t, "show", contract.TruthRef(c.Run)+":alpha/work.txt")
	require.NotContains(t, landed, "/alpha/a1/", "the tree of the old definition was continued")
	require.Len(t, frictionOf(l.status(t, c.Run).Friction, contract.FrictionCompositionChanged), 1)
	require.Equal(t, "paused", l.account(t, "renamed").States[0].State)
}

// The composition changes while a drive is at work: what waits for a slot goes
// to the new pool, what runs on the old one ends there.
func (l *quotaLab) testPoolsSetMeanwhile(t *testing.T) {
	t.Parallel()
	run := testkit.RunID(t)
	l.Control.Script(t, run, "alpha", "mark {node}/work.txt", "tell alpha", "wait go", "result resolved")
	p := nodesOf("alpha", "beta", "gamma")
	c := l.start(t, p, "busy")
	l.Control.Await(t, run, "alpha")
	l.Client.OK(t, "pools", "set", run, "--pools", l.runPools(t, "added"))
	l.Client.Await(t, run, "the others landed", func(v contract.RunView) bool { return v.Nodes["landed"] == 2 })
	require.NoError(t, l.Control.Tell(run, "go"))

	rows := l.requireGreen(t, c)
	require.Equal(t, "busy", rows["alpha"].Attempts[0].Pool)
	require.Len(t, rows["alpha"].Attempts, 1)
	require.Equal(t, "added", rows["gamma"].Attempts[len(rows["gamma"].Attempts)-1].Pool)
}

func frictionOf(all []contract.Friction, kind contract.FrictionType) []contract.Friction {
	var some []contract.Friction
	for _, f := range all {
		if f.Type == kind {
			some = append(some, f)
		}
	}
	return some
}
