package workflows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// The guards of control.md on the server, with runs in every status that counts.
func TestGuardMatrixOnTheServer(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name                        string
		implements, pauses, neither []string // statuses of the runs there are
	}{
		{name: "none"},
		{name: "closing", neither: []string{"closing"}},
		{name: "implementing", implements: []string{"implementing"}},
		{name: "gating and closing", implements: []string{"gating"}, neither: []string{"closing"}},
		{name: "pausing", pauses: []string{"pausing"}},
		{name: "pausing and closing", pauses: []string{"pausing"}, neither: []string{"closing"}},
		{name: "both", implements: []string{"implementing", "gating"}, pauses: []string{"pausing"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t, 10)
			names := func(kinds []string) []string {
				var names []string
				for _, kind := range kinds {
					names = append(names, d.name+"-"+kind)
				}
				return names
			}
			var later, release []func() // what ends when it is stopped, and what has to be let go
			for _, kinds := range [][]string{s.implements, s.pauses, s.neither} {
				for _, kind := range kinds {
					if open := d.standing(kind); slices.Contains(s.implements, kind) {
						later = append(later, open)
					} else {
						release = append(release, open)
					}
				}
			}
			implementing, pausing := names(s.implements), names(s.pauses)

			enabled := d.order(contract.CommandEnable, contract.SchedulerOrder{})
			require.Equal(t, pausing, enabled.InTheWay, "the guard comes before: enabled already")
			require.Equal(t, pausing != nil, enabled.Refused != "")
			idle := d.order(contract.CommandDisable, contract.SchedulerOrder{OnlyIfIdle: true})
			require.Equal(t, implementing, idle.InTheWay)
			if implementing == nil {
				require.Equal(t, contract.ModeDisabled, idle.Mode)
				require.Equal(t, pausing, idle.Pausing)
			}
			drained := d.order(contract.CommandDrain, contract.SchedulerOrder{})
			require.Empty(t, drained.Refused)
			require.Equal(t, contract.ModeDraining, drained.Mode)
			require.Equal(t, drained.ChangedAt, d.order(contract.CommandDrain, contract.SchedulerOrder{}).ChangedAt)
			require.Equal(t, pausing, d.order(contract.CommandEnable, contract.SchedulerOrder{}).InTheWay)
			disabled := d.order(contract.CommandDisable, contract.SchedulerOrder{})
			require.Equal(t, contract.ModeDisabled, disabled.Mode)
			require.ElementsMatch(t, append(implementing, pausing...), disabled.Pausing)
			for _, open := range release {
				open()
			}
			for _, run := range disabled.Pausing {
				l := &lab{farm: d.farm, t: t, id: contract.RemediationID(run)}
				l.in.Run = run
				d.until(l, contract.RunPaused)
			}
			require.True(t, d.status().Drained)
			for _, open := range later {
				open()
			}
			require.Empty(t, d.order(contract.CommandEnable, contract.SchedulerOrder{}).Refused)
			d.check()
		})
	}
}

// standing brings up a run that stays in a status until it is released.
func (d *deployment) standing(status string) (release func()) {
	h := newHost(unit("a", 0))
	var entered <-chan struct{}
	at := map[string]string{"implementing": "RunWorker", "pausing": "ReleaseWorktree", "closing": "WriteReport"}[status]
	if at != "" {
		entered, release = h.hold(at)
	} else {
		in, out := make(chan struct{}), make(chan struct{})
		h.gate, entered, release = holdGate(gateFinal, in, out), in, func() { close(out) }
	}
	l := d.run(status, h)
	awaitClosed(d.t, status, entered)
	if status == "pausing" {
		l.ordered(contract.CommandPause, contract.Operator{})
	}
	d.until(l, contract.RunStatus(status))
	return release
}

// 4: the scheduler is disabled while a run is being started. The run takes the
// hold before anything of it happens.
func TestDisableAgainstAStartingRun(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	l := d.prepare("r", newHost(unit("a", 0)))
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.store(l, func(ctx context.Context) error {
		once.Do(func() { close(entered) })
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	require.Equal(t, contract.DecisionStarted, d.submit(l).Decision)
	awaitClosed(t, "the start", entered)

	answer := d.order(contract.CommandDisable, contract.SchedulerOrder{})
	require.Equal(t, []string{l.in.Run}, answer.Pausing)
	close(release)
	d.until(l, contract.RunPaused)
	require.Zero(t, l.host.count("OpenRun"))
	require.Equal(t, contract.HoldScheduler, l.view().Holds[0].Kind)

	require.Empty(t, d.order(contract.CommandEnable, contract.SchedulerOrder{}).Refused)
	d.ends(l, contract.RunCompleted)
	require.Equal(t, 1, l.host.count("OpenRun"))
	d.check()
}

// A hold that an operator places while the run is being started comes first, too.
func TestHoldAgainstAStartingRun(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	l := d.prepare("r", newHost(unit("a", 0)))
	entered, release := make(chan struct{}), make(chan struct{})
	d.store(l, func(context.Context) error {
		close(entered)
		<-release
		return nil
	})
	d.submit(l)
	awaitClosed(t, "the start", entered)
	d.about(contract.CommandHold, l)
	close(release)
	d.until(l, contract.RunPaused)
	require.Zero(t, l.host.count("OpenRun"))
	d.about(contract.CommandRelease, l)
	d.ends(l, contract.RunCompleted)
	d.check()
}

// 7: a run asks for a slot when the scheduler is told to drain. Whoever is first,
// it either works and goes to its end, or waits; nothing is lost, and enabling
// brings it on.
func TestDrainAgainstWantSlot(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"drain", "want-slot", "at once"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			d := newDeployment(t, 1)
			l, release := d.working("r")
			defer release()
			l.ordered(contract.CommandPause, contract.Operator{})
			d.until(l, contract.RunPaused)

			switch first {
			case "drain":
				d.order(contract.CommandDrain, contract.SchedulerOrder{})
				l.ordered(contract.CommandResume, contract.Operator{})
				row := d.until(l, contract.RunQueued)
				require.Contains(t, row.Reason, "draining")
				require.True(t, d.status().Drained)
			case "want-slot":
				l.ordered(contract.CommandResume, contract.Operator{})
				testkit.Eventually(t, "a slot", func() bool { return d.row(l).Slot })
				answer := d.order(contract.CommandDrain, contract.SchedulerOrder{})
				require.Equal(t, []string{l.in.Run}, answer.Running)
			case "at once":
				l.signal(contract.CommandResume, nil)
				d.signal(contract.CommandDrain, nil)
			}
			release()
			if first != "drain" {
				testkit.Eventually(t, "it works or waits", func() bool {
					row := d.row(l)
					return row.ClosedAt != nil || row.Status == contract.RunQueued && !row.Slot
				})
			}
			require.Empty(t, d.order(contract.CommandEnable, contract.SchedulerOrder{}).Refused)
			d.ends(l, contract.RunCompleted)
			require.Len(t, l.host.tried("a"), 2, "nothing is done twice")
			d.check()
		})
	}
}

// remember fills the scheduler's memory of requests, so that its state does not
// fit into an input and takes time to store.
func (d *deployment) remember() {
	d.t.Helper()
	for i := range 250 {
		running := 1
		d.signal(contract.CommandLimits, contract.SchedulerOrder{RequestID: fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 50)), MaxRunning: &running})
	}
}

// renew makes the scheduler store its state, and returns when that is under way.
func (d *deployment) storing(moment string, entered <-chan struct{}) {
	d.t.Helper()
	l := &lab{farm: d.farm, t: d.t}
	l.ballast(d.id, moment, func() bool { return isClosed(entered) })
}

// 10: continue-as-new against each command, as signal and as update, while the
// state is being stored and while it is being loaded.
func TestCommandsDuringTheSchedulersContinueAsNew(t *testing.T) {
	t.Parallel()
	negative := -3
	for _, c := range []struct {
		name  string
		order func(run string) contract.SchedulerOrder
		done  func(d *deployment, queued *lab) bool
	}{
		{contract.CommandSubmit, nil, func(d *deployment, _ *lab) bool { return d.status().Queued == 2 }},
		{contract.CommandDrain, nil, func(d *deployment, _ *lab) bool { return d.status().Mode == contract.ModeDraining }},
		{contract.CommandDisable, nil, func(d *deployment, _ *lab) bool { return d.status().Mode == contract.ModeDisabled }},
		{contract.CommandEnable, nil, func(d *deployment, _ *lab) bool { return d.status().Mode == contract.ModeEnabled }},
		{contract.CommandHold, func(run string) contract.SchedulerOrder { return contract.SchedulerOrder{Run: run} },
			func(d *deployment, queued *lab) bool { return d.row(queued).Status == contract.RunPaused }},
		{contract.CommandRelease, func(run string) contract.SchedulerOrder { return contract.SchedulerOrder{Run: run} },
			func(d *deployment, queued *lab) bool { return d.row(queued).Resumption }},
		{contract.CommandCancel, func(run string) contract.SchedulerOrder { return contract.SchedulerOrder{Run: run} },
			func(d *deployment, queued *lab) bool { return d.row(queued).ClosedAt != nil }},
		{contract.CommandPriority, func(run string) contract.SchedulerOrder {
			return contract.SchedulerOrder{Run: run, Priority: &negative}
		}, func(d *deployment, queued *lab) bool { return d.row(queued).Priority == negative }},
		{contract.CommandLimits, func(string) contract.SchedulerOrder {
			queued := 77
			return contract.SchedulerOrder{MaxQueued: &queued}
		}, func(d *deployment, _ *lab) bool { return d.status().Limits.MaxQueued == 77 }},
		{contract.CommandBudget, func(string) contract.SchedulerOrder {
			tokens := int64(5_000_000)
			return contract.SchedulerOrder{Tokens: &tokens}
		}, func(d *deployment, _ *lab) bool { return d.status().Budget != nil }},
	} {
		for _, moment := range []string{"SaveState", "LoadState"} {
			t.Run(c.name+"-"+moment, func(t *testing.T) {
				t.Parallel()
				d := newDeployment(t, 1)
				work, releaseWorker := d.working("work")
				defer releaseWorker()
				d.until(work, contract.RunImplementing)
				queued, other := d.queue("queued"), d.prepare("other", newHost(unit("a", 0)))
				switch c.name {
				case contract.CommandRelease:
					d.about(contract.CommandHold, queued)
				case contract.CommandEnable:
					d.order(contract.CommandDrain, contract.SchedulerOrder{})
				}
				d.remember()
				entered, release := d.host.hold(moment)
				defer release()
				before := len(d.chain())
				d.storing(moment, entered)

				var payload any = contract.SchedulerOrder{}
				switch {
				case c.name == contract.CommandSubmit:
					payload = d.submission(other)
				case c.order != nil:
					payload = c.order(queued.in.Run)
				}
				answered := make(chan error, 1)
				if moment == "SaveState" { // nothing is lost of what comes while the state is on its way
					d.signal(c.name, payload)
					answered <- nil
				} else { // an update waits until the state is there
					go func() {
						_, err := update[map[string]any](d, c.name, payload)
						answered <- err
					}()
				}
				release()
				require.NoError(t, <-answered)
				testkit.Eventually(t, c.name+" is obeyed", func() bool { return c.done(d, queued) })
				testkit.Eventually(t, "continue-as-new", func() bool { return len(d.chain()) > before })

				releaseWorker()
				if c.name == contract.CommandDisable {
					d.until(work, contract.RunPaused)
				}
				d.order(contract.CommandEnable, contract.SchedulerOrder{})
				d.ends(work, contract.RunCompleted)
				if c.name == contract.CommandHold {
					d.about(contract.CommandRelease, queued)
				}
				if c.name != contract.CommandCancel {
					d.ends(queued, contract.RunCompleted)
				}
				d.check()
			})
		}
	}
}

// Whatever tctl, temporal or anything else sends: it is obeyed, told as
// unreadable, or ignored, and nothing gets stuck.
func TestRawSignalsToTheScheduler(t *testing.T) {
	t.Parallel()
	d := newDeployment(t, 1)
	junk := []struct{ encoding, data string }{
		{"json/plain", `{"cut":`}, {"json/plain", "[1,2]"}, {"binary/plain", "\x00\x01\xff"}, {"json/plain", "5"},
		{"json/protobuf", "{}x"}, {"binary/encrypted", "secret"}, {"", "no encoding"}, {"json/plain", `{"reason":5,"run":7}`},
	}
	commands := []string{contract.CommandSubmit, contract.SignalState}
	for _, c := range schedulerCommands {
		commands = append(commands, c.name)
	}
	for _, name := range commands {
		for _, j := range junk {
			d.raw(name, j.encoding, j.data)
		}
	}
	var status contract.SchedulerStatus
	testkit.Eventually(t, "the unreadable ones are told", func() bool {
		status = d.status()
		return len(status.Friction) == len(commands)
	})
	require.Equal(t, contract.ModeEnabled, status.Mode, "nothing of it was an order")
	for _, f := range status.Friction {
		require.Equal(t, contract.FrictionBadMessage, f.Type)
	}

	mode := func(want contract.SchedulerMode, reason string) {
		t.Helper()
		testkit.Eventually(t, string(want), func() bool {
			status = d.status()
			return status.Mode == want
		})
		require.Equal(t, reason, status.Reason)
	}
	require.NoError(t, d.client.SignalWorkflow(patience(t), d.id, "", contract.CommandDrain, nil)) // no payload
	mode(contract.ModeDraining, "")
	d.raw(contract.CommandEnable, "json/plain", "null")
	mode(contract.ModeEnabled, "")
	d.raw(contract.CommandDisable, "json/plain", `"maintenance"`) // tctl's string: the reason
	mode(contract.ModeDisabled, "maintenance")
	d.raw(contract.CommandDrain, "json/plain", `{"reason":"almost over","finish":true,"unknown":[1]}`)
	mode(contract.ModeDraining, "almost over")
	require.True(t, status.Finish)
	d.raw(contract.CommandHold, "json/plain", `{"run":"nobody"}`)
	testkit.Eventually(t, "a refusal of a signal is told", func() bool {
		events := d.status().Events
		return strings.Contains(events[len(events)-1].Text, "hold refused: nobody")
	})
	d.signal(contract.CommandEnable, nil)
	mode(contract.ModeEnabled, "")
	l := d.prepare("r", newHost(unit("a", 0)))
	d.signal(contract.CommandSubmit, d.submission(l))
	testkit.Eventually(t, "a submission by signal", func() bool { return d.status().Closed == 1 })
	d.check()
}

// A thousand runs go through one scheduler: in their order, never more at once
// than may be, and with histories that end before the server minds.
func TestThousandRunsThroughOneScheduler(t *testing.T) {
	t.Parallel()
	const runs, running = 1000, 20
	d := newDeployment(t, running)
	queued := runs
	d.order(contract.CommandLimits, contract.SchedulerOrder{MaxQueued: &queued})
	var want []string
	for i := range runs {
		name := fmt.Sprintf("stub-%04d", i)
		l := &lab{farm: d.farm, t: t}
		l.in = testInput()
		l.in.Run, l.in.Repository, l.host = d.name+"-"+name, "/repo/"+name, newHost()
		d.store(l, nil)
		s := d.submission(l)
		s.RequestID = name
		if i%20 == 0 { // now and then by update; signals that wait to be taken would come after it
			testkit.Eventually(t, "all before are admitted", func() bool {
				status := d.status()
				return status.Running+status.Queued+status.Closed == i
			})
			answer, err := update[contract.Submitted](d, contract.CommandSubmit, s)
			require.NoError(t, err)
			require.Contains(t, []contract.Decision{contract.DecisionStarted, contract.DecisionQueued}, answer.Decision)
		} else {
			d.signal(contract.CommandSubmit, s)
		}
		want = append(want, name)
	}
	for closed := runs / 10; closed <= runs; closed += runs / 10 { // on a busy machine the whole takes longer than one guard
		testkit.Eventually(t, fmt.Sprintf("%d have closed", closed), func() bool { return d.status().Closed >= closed })
	}

	status := d.status()
	require.Zero(t, status.Running+status.Queued+status.Held)
	require.Equal(t, want, d.begun(), "in the order of their arrival")
	require.NotEmpty(t, status.Pages, "what closed long ago is stored away")
	chain := d.chain()
	require.Greater(t, len(chain), 1, "it continued as new")
	for _, h := range chain {
		require.Less(t, len(h.Events), 20_000, "far from the 51 200 events at which the server ends an execution")
	}
	open := 0
	for _, h := range chain { // starts that were scheduled and not yet ended by a run's last word
		for _, e := range h.Events {
			if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "StartRun" {
				open++
			}
			if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == contract.SignalState {
				open--
			}
			require.LessOrEqual(t, open, running)
		}
	}
	d.check()
}

// The scheduler looks every two minutes whether the runs that it started exist.
func TestPeriodicCheckFindsVanishedRuns(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLogger{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(hang)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: hang})
	var asked [][]string
	env.RegisterActivityWithOptions(func(context.Context, contract.StartRunInput) error { return nil }, activity.RegisterOptions{Name: "StartRun"})
	env.RegisterActivityWithOptions(func(_ context.Context, ids []string) ([]string, error) {
		asked = append(asked, ids)
		return ids, nil
	}, activity.RegisterOptions{Name: "ClosedWorkflows"})
	env.OnSignalExternalWorkflow("default-test-namespace", contract.RemediationID("r"), "", contract.SignalSlot, mock.Anything).Return(nil)
	submit := contract.Submission{Plan: "p", Repository: "/r", ID: "r", Input: contract.Artifact{URI: "i"}}
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(contract.CommandSubmit, submit) }, time.Second)
	row := func() (row contract.SchedulerRun) {
		answer, err := env.QueryWorkflow(contract.QueryRun, "r")
		require.NoError(t, err)
		require.NoError(t, answer.Get(&row))
		return row
	}
	env.RegisterDelayedCallback(func() { require.Equal(t, contract.RunStarting, row().Status) }, runCheckEvery)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, contract.RunRecovery, row().Status)
		env.CancelWorkflow()
	}, 3*runCheckEvery)

	env.ExecuteWorkflow(Scheduler, contract.SchedulerInput{})

	require.True(t, env.IsWorkflowCompleted())
	require.Equal(t, [][]string{{contract.RemediationID("r")}}, asked, "asked once: it is known to be gone then")
}
