package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// scene brings up runs in every status that a guard looks at.
type scene struct {
	name         string
	implementing []string // names of those that count as implementing
	pausing      []string
	set          func(g *rig)
}

func scenes() []scene {
	implement := func(g *rig) { g.started("work") }
	gate := func(g *rig) { g.started("gate"); g.tell("gate", contract.RunGating) }
	pause := func(g *rig) {
		g.started("stop")
		g.runs["stop"].place(contract.HoldOperator)
		g.tell("stop", contract.RunPausing)
	}
	closing := func(g *rig) { g.started("close"); g.tell("close", contract.RunClosing) }
	publishing := func(g *rig) { g.started("publish"); g.tell("publish", contract.RunClosing, contract.RunPublishing) }
	paused := func(g *rig) { g.started("held"); g.pause("held", contract.HoldQuota) }
	all := func(sets ...func(*rig)) func(*rig) {
		return func(g *rig) {
			for _, set := range sets {
				set(g)
			}
		}
	}
	return []scene{
		{name: "none", set: func(*rig) {}},
		{name: "closing", set: closing},
		{name: "publishing", set: publishing},
		{name: "paused", set: paused},
		{name: "implementing", implementing: []string{"work"}, set: implement},
		{name: "starting", implementing: []string{"new"}, set: func(g *rig) {
			s := submission("/repo/new")
			s.ID = "new"
			g.submit(s)
		}},
		{name: "gating", implementing: []string{"gate"}, set: gate},
		{name: "implementing and closing", implementing: []string{"work"}, set: all(closing, implement)},
		{name: "pausing", pausing: []string{"stop"}, set: pause},
		{name: "pausing and publishing", pausing: []string{"stop"}, set: all(publishing, pause)},
		{name: "both", implementing: []string{"work"}, pausing: []string{"stop"}, set: all(implement, pause)},
		{name: "gating and pausing", implementing: []string{"gate"}, pausing: []string{"stop"}, set: all(gate, pause, paused)},
	}
}

// TestGuardMatrix checks the table of control.md for every mode that a command
// may come in: a refusal names who is in the way, also where the mode is that already.
func TestGuardMatrix(t *testing.T) {
	t.Parallel()
	modes := map[string]func(*rig){
		"enabled":  func(*rig) {},
		"draining": func(g *rig) { g.m.Drain(contract.SchedulerOrder{}, g.now); g.carryOut() },
	}
	commands := []struct {
		name    string
		give    func(*Scheduler, time.Time) contract.SchedulerAnswer
		to      contract.SchedulerMode
		refused func(scene) []string
	}{
		{"enable", func(m *Scheduler, now time.Time) contract.SchedulerAnswer {
			return m.Enable(contract.SchedulerOrder{}, now)
		}, contract.ModeEnabled, func(s scene) []string { return s.pausing }},
		{"drain", func(m *Scheduler, now time.Time) contract.SchedulerAnswer {
			return m.Drain(contract.SchedulerOrder{}, now)
		}, contract.ModeDraining, func(scene) []string { return nil }},
		{"disable", func(m *Scheduler, now time.Time) contract.SchedulerAnswer {
			return m.Disable(contract.SchedulerOrder{}, now)
		}, contract.ModeDisabled, func(scene) []string { return nil }},
		{"disable only if idle", func(m *Scheduler, now time.Time) contract.SchedulerAnswer {
			return m.Disable(contract.SchedulerOrder{OnlyIfIdle: true}, now)
		}, contract.ModeDisabled, func(s scene) []string { return s.implementing }},
	}
	for _, s := range scenes() {
		for mode, set := range modes {
			for _, c := range commands {
				t.Run(s.name+"/"+mode+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					g := newRig(t)
					g.limits(10, 10)
					s.set(g)
					set(g)
					before := g.m.Status()
					g.now = g.now.Add(time.Hour)
					answer := c.give(g.m, g.now)
					g.carryOut()
					after := g.m.Status()
					if inTheWay := c.refused(s); len(inTheWay) > 0 {
						require.NotEmpty(t, answer.Refused)
						require.Equal(t, inTheWay, answer.InTheWay)
						for _, run := range inTheWay {
							require.Contains(t, answer.Refused, run)
						}
						require.Equal(t, before, after, "a refusal changes nothing")
						return
					}
					require.Empty(t, answer.Refused)
					require.Equal(t, c.to, after.Mode)
					require.Equal(t, before.Mode == c.to, after.ChangedAt.Equal(before.ChangedAt), "changed_at moves with the mode only")
					if c.to == contract.ModeDisabled {
						require.ElementsMatch(t, append(append([]string{}, s.implementing...), s.pausing...), answer.Pausing)
						for _, run := range answer.Pausing {
							require.Equal(t, contract.RunPausing, g.status(run))
							inbox := g.runs[run].inbox
							require.NotNil(t, inbox[len(inbox)-1].Hold, "the hold is sent in the same step")
						}
					} else {
						require.Empty(t, answer.Pausing)
					}
				})
			}
		}
	}
}

// A disabled scheduler knows only pausing runs: enabling waits for them, and
// disabling again changes nothing.
func TestGuardsOfADisabledScheduler(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	g.started("a")
	g.started("b")
	require.Equal(t, []string{"a", "b"}, g.m.Disable(order(""), g.now).Pausing)
	g.carryOut()
	since := g.m.Status().ChangedAt
	g.now = g.now.Add(time.Hour)

	again := g.m.Disable(contract.SchedulerOrder{OnlyIfIdle: true}, g.now)
	require.Empty(t, again.Refused, "pausing runs are not in the way of --only-if-idle")
	require.Equal(t, since, again.ChangedAt)
	require.Equal(t, []string{"a", "b"}, again.Pausing)
	refused := g.m.Enable(order(""), g.now)
	require.Equal(t, []string{"a", "b"}, refused.InTheWay)
	g.take("a")
	g.tell("a", contract.RunPausing, contract.RunPaused)
	require.Equal(t, []string{"b"}, g.m.Enable(order(""), g.now).InTheWay)
	require.False(t, g.m.Status().Drained)
	g.take("b")
	g.tell("b", contract.RunPausing, contract.RunPaused)
	require.True(t, g.m.Status().Drained)

	require.Equal(t, contract.ModeDraining, g.m.Drain(order(""), g.now).Mode)
	g.carryOut()
	require.Contains(t, g.runs["a"].holds, contract.HoldScheduler, "only enable lifts it")
	require.Empty(t, g.m.Enable(order(""), g.now).Refused)
	g.carryOut()
	for _, run := range []string{"a", "b"} {
		g.take(run)
		require.Empty(t, g.runs[run].holds)
		g.want(run)
	}
	require.Equal(t, 2, g.m.Status().Running)
}

// While the scheduler is disabled an operator's hold on a paused run stays apart
// from the scheduler's: enabling lifts the one, resuming the other.
func TestOperatorHoldSurvivesEnable(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("a")
	g.m.Disable(order(""), g.now)
	g.m.Hold(order("a"), g.now)
	g.carryOut()
	g.take("a")
	g.tell("a", contract.RunPausing, contract.RunPaused)
	require.Equal(t, []contract.HoldKind{contract.HoldScheduler, contract.HoldOperator}, g.runs["a"].holds)

	g.m.Enable(order(""), g.now)
	g.carryOut()
	g.take("a")

	require.Equal(t, []contract.HoldKind{contract.HoldOperator}, g.runs["a"].holds)
	require.Equal(t, contract.RunPaused, g.status("a"))
	g.m.Release(order("a"), g.now)
	g.carryOut()
	g.take("a")
	g.want("a")
	require.Equal(t, contract.RunImplementing, g.status("a"))
}

// A drain lets two go to their end and starts nothing; the third stays held and
// costs no slot. Enabling starts what waits in order.
func TestDrainLetsWorkEndAndStartsNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.limits(2, 10)
	g.started("walled")
	g.pause("walled", contract.HoldQuota)
	g.started("a")
	g.started("b")
	for _, id := range []string{"q1", "q2", "q3"} {
		g.queued(id)
	}
	answer := g.m.Drain(contract.SchedulerOrder{}, g.now)
	require.Equal(t, []string{"a", "b"}, answer.Running)
	g.carryOut()
	g.want("walled") // its instant comes while the scheduler drains
	require.Equal(t, contract.RunQueued, g.status("walled"))
	deferred := g.submit(submission("/repo/more"))
	require.Equal(t, contract.DecisionDeferred, deferred.Decision)
	require.Equal(t, contract.DeferredNotAccepting, deferred.Cause)
	require.Contains(t, deferred.Reason, "starter scheduler enable")

	g.end("a")
	require.False(t, g.m.Status().Drained)
	g.end("b")
	require.True(t, g.m.Status().Drained)
	require.Equal(t, []string{"walled", "a", "b"}, g.begun)

	g.m.Enable(contract.SchedulerOrder{}, g.now)
	g.carryOut()
	require.Equal(t, contract.RunStarting, g.status("walled"), "resumptions go first")
	require.Equal(t, []string{"walled", "a", "b", "q1"}, g.begun)
	require.Equal(t, []string{"q2", "q3"}, g.queueOrder())
}

func TestFinishingDrainResumesWhatHasBegun(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.started("walled")
	g.pause("walled", contract.HoldQuota)
	g.started("a")
	g.queued("q1")
	g.m.Drain(contract.SchedulerOrder{Finish: true}, g.now)
	g.end("a")
	require.False(t, g.m.Status().Drained, "one that began waits in a hold")
	g.want("walled")
	require.Equal(t, contract.RunImplementing, g.status("walled"))
	g.end("walled")
	require.True(t, g.m.Status().Drained)
	require.Equal(t, []string{"walled", "a"}, g.begun)

	since := g.m.Status().ChangedAt
	g.now = g.now.Add(time.Hour)
	g.m.Drain(contract.SchedulerOrder{}, g.now)
	require.False(t, g.m.Status().Finish)
	require.Equal(t, since, g.m.Status().ChangedAt)
}
