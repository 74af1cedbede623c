package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// deployment is a lab of its own whose scheduler lets one run work.
func deployment(t *testing.T) *testkit.Lab {
	t.Helper()
	lab := testkit.NewLab(t, testkit.LabOptions{Pools: []testkit.Pool{{ID: "scripted", Max: 4}}})
	lab.Client.OK(t, "scheduler", "limits", "--max-running", "1", "--max-queued", "2")
	return lab
}

// oneNode is a case whose worker waits for the signal go.
func oneNode(t *testing.T, lab *testkit.Lab, name string) *testkit.Case {
	t.Helper()
	c := testkit.NewCase(t, testkit.RunID(t)+"-"+name, testkit.Plan{Nodes: []testkit.Node{{ID: "a"}}})
	lab.Control.Script(t, c.Run, "a", "mark a/work.txt", "tell working", "wait go", "result resolved")
	return c
}

// started is what `starter start --json` says.
type started struct {
	Run, Decision, Cause, Behind, Status, Reason string
	Position                                     int
}

func start(t *testing.T, lab *testkit.Lab, c *testkit.Case, more ...string) (started, testkit.Result) {
	t.Helper()
	args := append([]string{"start", "--id", c.Run, "--repo", c.Repo.URL, "--plan", c.Path, "--pools", lab.Pools, "--json"}, more...)
	r := lab.Client.Starter(t, args...)
	var said started
	require.NoError(t, json.Unmarshal([]byte(r.Out), &said), "%s%s", r.Out, r.Err)
	return said, r
}

func schedulerStatus(t *testing.T, lab *testkit.Lab) (v struct {
	contract.SchedulerStatus
	Runs []contract.SchedulerRun
}) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(lab.Client.OK(t, "scheduler", "status", "--json")), &v))
	return v
}

// One slot: the second run waits, and every command knows it; a hold, a cancel
// and a full queue do what they say.
func TestRunsThatWaitAreSeenAndCommanded(t *testing.T) {
	t.Parallel()
	lab := deployment(t)
	c := lab.Client
	work, second, third, fourth := oneNode(t, lab, "work"), oneNode(t, lab, "second"), oneNode(t, lab, "third"), oneNode(t, lab, "fourth")
	said, _ := start(t, lab, work)
	require.Equal(t, "started", said.Decision)
	lab.Control.Await(t, work.Run, "working")

	said, r := start(t, lab, second)
	require.Zero(t, r.Code)
	require.Equal(t, "queued", said.Decision)
	require.Equal(t, 1, said.Position)
	require.Contains(t, said.Reason, "slot")
	said, _ = start(t, lab, third, "--priority", "-1")
	require.Equal(t, 1, said.Position)
	said, r = start(t, lab, fourth)
	require.Equal(t, 1, r.Code)
	require.Equal(t, "deferred", said.Decision)
	require.Equal(t, contract.DeferredQueueCapacity, said.Cause)
	require.Contains(t, r.Err, "submit again")

	require.Contains(t, c.OK(t, "status", second.Run), "queued at place 2: waits for a slot")
	require.Contains(t, c.OK(t, "runs"), second.Run)
	require.Contains(t, c.OK(t, "scheduler", "status"), "1 of 1 work, 2 of 2 wait")
	require.Contains(t, c.OK(t, "pause", second.Run, "--reason", "not yet"), "held by operator")
	watched := c.Starter(t, "watch", second.Run, "--no-hold")
	require.Equal(t, 4, watched.Code, watched.Err)
	require.Contains(t, watched.Out, "not yet")
	require.Equal(t, 1, c.Starter(t, "gate", "retry", second.Run).Code, "it has not begun")
	c.OK(t, "cancel", third.Run, "--reason", "not needed")
	closed := c.Starter(t, "watch", third.Run)
	require.Equal(t, 3, closed.Code, closed.Err)
	require.Contains(t, closed.Out, "cancelled")

	ended := make(chan testkit.Result)
	go func() { // it waits for its place, its start and its end
		ended <- c.Starter(t, "start", "--id", fourth.Run, "--repo", fourth.Repo.URL, "--plan", fourth.Path, "--pools", lab.Pools, "--queue", "--wait")
	}()
	testkit.Eventually(t, "the fourth is queued", func() bool { return strings.Contains(c.OK(t, "scheduler", "status"), fourth.Run) })
	c.OK(t, "resume", second.Run)
	for _, run := range []*testkit.Case{work, second, fourth} {
		require.NoError(t, lab.Control.Tell(run.Run, "go"))
	}
	for _, run := range []*testkit.Case{work, second} {
		require.Equal(t, contract.RunCompleted, c.AwaitClosed(t, run.Run).Status)
		testkit.CheckInvariants(t, lab.Scene(run))
	}
	last := <-ended
	require.Zero(t, last.Code, last.Err)
	status := schedulerStatus(t, lab)
	require.Equal(t, 4, status.Closed)
	require.Empty(t, status.Runs)
	again := c.Starter(t, "start", "--id", third.Run, "--repo", third.Repo.URL, "--plan", third.Path, "--pools", lab.Pools)
	require.Equal(t, 1, again.Code, "the name of a run that never began is taken all the same")
}

// Draining and disabling with the real programs: what drains takes nothing, what
// is disabled keeps its work, and --queue waits for better times.
func TestDrainDisableEnable(t *testing.T) {
	t.Parallel()
	lab := deployment(t)
	c := lab.Client
	work, next := oneNode(t, lab, "work"), oneNode(t, lab, "next")
	start(t, lab, work)
	lab.Control.Await(t, work.Run, "working")

	idle := c.Starter(t, "scheduler", "disable", "--only-if-idle", "--json")
	require.Equal(t, 1, idle.Code)
	var answer contract.SchedulerAnswer
	require.NoError(t, json.Unmarshal([]byte(idle.Out), &answer))
	require.Equal(t, []string{work.Run}, answer.InTheWay)
	require.Contains(t, c.OK(t, "scheduler", "drain", "--reason", "upgrade"), "works on: "+work.Run)
	said, r := start(t, lab, next)
	require.Equal(t, 1, r.Code)
	require.Equal(t, contract.DeferredNotAccepting, said.Cause)
	_, err := c.Status(next.Run)
	require.Error(t, err, "nothing of it was started")

	c.OK(t, "scheduler", "disable", "--reason", "the host goes down")
	v := c.AwaitStatus(t, work.Run, contract.RunPaused)
	require.Equal(t, contract.HoldScheduler, v.Holds[0].Kind)
	require.Equal(t, "starter scheduler enable", v.Holds[0].Lift)
	testkit.EventuallyNone(t, "processes of the run", func() []string { return testkit.Marked(work.Run) })
	testkit.Eventually(t, "drained", func() bool { return schedulerStatus(t, lab).Drained })

	ended := make(chan testkit.Result)
	go func() {
		ended <- c.Starter(t, "start", "--id", next.Run, "--repo", next.Repo.URL, "--plan", next.Path, "--pools", lab.Pools, "--queue", "--wait")
	}()
	require.NoError(t, lab.Control.Tell(work.Run, "go"))
	require.NoError(t, lab.Control.Tell(next.Run, "go"))
	c.OK(t, "scheduler", "enable")
	require.Equal(t, contract.RunCompleted, c.AwaitClosed(t, work.Run).Status)
	last := <-ended
	require.Zero(t, last.Code, last.Err)
	testkit.CheckInvariants(t, lab.Scene(work))
	require.Equal(t, contract.ModeEnabled, schedulerStatus(t, lab).Mode)
}

// Two runs never work on the same repository and base, however they are named,
// unless they are meant to.
func TestRunsOnOneBaseFollowEachOther(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Pools: []testkit.Pool{{ID: "scripted", Max: 4}}})
	first := oneNode(t, lab, "first")
	second, beside := *first, *first
	second.Run, beside.Run = testkit.RunID(t)+"-second", testkit.RunID(t)+"-beside"
	start(t, lab, first)
	lab.Control.Await(t, first.Run, "working")
	said, _ := start(t, lab, &second, "--base", "refs/heads/main")
	require.Equal(t, "queued", said.Decision)
	require.Equal(t, first.Run, said.Behind)
	said, r := start(t, lab, &beside, "--parallel", "--wait")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "completed", said.Status)
	require.NoError(t, lab.Control.Tell(first.Run, "go"))
	for _, run := range []string{first.Run, second.Run} {
		require.Equal(t, contract.RunCompleted, lab.Client.AwaitClosed(t, run).Status)
	}
}

// The deployment's budget bounds all runs together: a run waits when what is left
// does not cover an attempt, and goes on when the cap is raised.
func TestDeploymentBudget(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{})
	c := lab.Client
	c.OK(t, "scheduler", "budget", "--tokens", "400000") // an attempt of the standard tier reserves 500 000
	run := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "a"}, {ID: "b", After: []string{"a"}}}})
	lab.Start(t, run)
	v := c.AwaitStatus(t, run.Run, contract.RunPaused)
	require.Len(t, v.Holds, 1, "%+v", v)
	require.Equal(t, contract.HoldBudget, v.Holds[0].Kind)
	require.Equal(t, "starter scheduler budget --tokens N", v.Holds[0].Lift)
	require.Equal(t, contract.NodeStranded, c.Nodes(t, run.Run)["a"].State)
	testkit.Eventually(t, "its slot is given back", func() bool { return schedulerStatus(t, lab).Running == 0 })
	require.Contains(t, c.OK(t, "scheduler", "status"), "of 400000 tokens")

	c.OK(t, "scheduler", "budget", "--tokens", "2000000")
	require.Equal(t, contract.RunCompleted, c.AwaitClosed(t, run.Run).Status)
}
