package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// TestQuotaWaitSurvivesKills is the product's heart: a wall with a stated reset
// holds the run, nothing of it is alive meanwhile, killing everything changes
// nothing, and work goes on in its trees as soon as the pool reopens.
func TestQuotaWaitSurvivesKills(t *testing.T) {
	t.Parallel()
	lab := newQuotaLab(t, true, quotaPool{ID: "walled"})
	walled := lab.wall(t, "walled")
	walled.resets(t, saysReset, 20*time.Second)
	c := lab.start(t, nodesOf("alpha", "beta"), "walled")

	hold := lab.awaitHold(t, c.Run, contract.HoldQuota)
	reset := walled.reset(t)
	require.NotNil(t, hold.Until)
	// A stated reset, the margin of a second and a jitter of up to another.
	require.False(t, hold.Until.Before(reset.Add(time.Second)), "%v", hold.Until.Sub(reset))
	require.False(t, hold.Until.After(reset.Add(2*time.Second)), "%v", hold.Until.Sub(reset))
	require.Equal(t, "starter resume "+c.Run+" --now", hold.Lift)
	require.Empty(t, testkit.Marked(c.Run), "the worker is gone while the run waits")
	v := lab.status(t, c.Run)
	require.Equal(t, 2, v.Nodes["stranded"])
	require.Empty(t, v.Drives, "no drive is kept alive by a wait")
	require.Equal(t, "paused", v.Pools[0].State)
	require.NotEmpty(t, lab.explain(t, c.Run, "alpha").Waits)

	lab.Host.Kill()
	lab.Server.Kill()
	require.NoError(t, lab.Server.Restart())
	require.NoError(t, lab.Host.Restart())
	restarted := time.Now()
	if held := lab.status(t, c.Run).Holds; time.Now().Before(*hold.Until) {
		require.Len(t, held, 1)
		require.True(t, hold.Until.Equal(*held[0].Until), "the kills moved the instant")
	}

	rows := lab.requireGreen(t, c)
	began := lab.firstStart(t, c.Run, reset)
	require.False(t, began.Before(*hold.Until), "a worker began before the pool reopened")
	// The way from a decision to a worker takes the machine what it takes,
	// which the run's own start shows; the product has five seconds on top.
	from := *hold.Until
	if restarted.After(from) {
		from = restarted
	}
	machine := lab.launchTime(t, c.Run)
	t.Logf("reset %v after the hold; reopened at +%v, restarted at +%v, began %v later (a launch on this machine took %v)",
		reset.Sub(hold.Since), hold.Until.Sub(reset), restarted.Sub(reset), began.Sub(from), machine)
	require.LessOrEqual(t, began.Sub(from), 5*time.Second+machine)
	for id, row := range rows {
		require.Equal(t, []contract.Outcome{contract.OutcomeRateLimited}, outcomes(row, false), id)
		// The tree was kept: what the limited attempt had done landed with the rest.
		landed := c.Repo.Git(t, "show", contract.TruthRef(c.Run)+":"+id+"/work.txt")
		require.Contains(t, landed, "mark "+c.Run+"/"+id+"/a1/")
		require.Contains(t, landed, "mark "+c.Run+"/"+id+"/a2/")
	}
	require.Empty(t, lab.status(t, c.Run).Friction)
}

// launchTime is what it took from the moment when the run began to implement
// until its first worker ran.
func (l *quotaLab) launchTime(t *testing.T, run string) time.Duration {
	t.Helper()
	for _, e := range l.status(t, run).Events {
		if e.Text == "implementing" {
			return l.firstStart(t, run, e.At).Sub(e.At)
		}
	}
	t.Fatal("the run's events do not tell when it began to implement")
	return 0
}
