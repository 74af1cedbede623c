package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// attendedLab is a lab with a pool of programs and one of people.
func attendedLab(t *testing.T, quiet string) *testkit.Lab {
	t.Helper()
	return testkit.NewLab(t, testkit.LabOptions{Pools: []testkit.Pool{{ID: "scripted", Max: 2}, {ID: "desk", Max: 2, Quiet: quiet}}})
}

func nodesNamed(n int) []testkit.Node {
	nodes := make([]testkit.Node, n)
	for i := range nodes {
		nodes[i].ID = fmt.Sprintf("n%02d", i+1)
	}
	return nodes
}

// desk is what `starter node claim --json` prints.
type desk struct {
	contract.Desk
	Text string `json:"prompt_text"`
}

func claimNode(t *testing.T, lab *testkit.Lab, args ...string) desk {
	t.Helper()
	var d desk
	require.NoError(t, json.Unmarshal([]byte(lab.Client.OK(t, append([]string{"node", "claim", "--json"}, args...)...)), &d))
	return d
}

// claimOf waits until a claim is as wanted.
func claimOf(t *testing.T, lab *testkit.Lab, run, id string, is func(contract.ClaimRow) bool) contract.ClaimRow {
	t.Helper()
	var found contract.ClaimRow
	testkit.Eventually(t, "claim "+id+" of "+run, func() bool {
		answer, err := lab.Client.Server().QueryWorkflow(t.Context(), contract.RemediationID(run), "", contract.QueryClaims)
		var rows []contract.ClaimRow
		if err != nil || answer.Get(&rows) != nil {
			return false
		}
		for _, row := range rows {
			if row.ID == id && is(row) {
				found = row
				return true
			}
		}
		return false
	})
	return found
}

func ended(row contract.ClaimRow) bool { return row.State == contract.ClaimEnded }

// keeper is a person who stays at a claim in a process of its own.
func keeper(t *testing.T, lab *testkit.Lab, run string, args ...string) (*exec.Cmd, desk) {
	t.Helper()
	cmd := exec.Command(testkit.Program("starter"), append([]string{
		"node", "claim", run, "--keep", "--json", "--address", lab.Client.Address, "--state-dir", lab.Client.State,
	}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	var d desk
	require.NoError(t, json.NewDecoder(out).Decode(&d))
	return cmd, d
}

// Twelve nodes, programs and people: every node has one owner at a time, and
// whoever dies gives the node back with the work put aside.
func TestPeopleAndProgramsShareOneRun(t *testing.T) {
	t.Parallel()
	lab := attendedLab(t, "4s")
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: nodesNamed(12)})
	lab.Control.Script(t, c.Run, "default", "tell has-{node}", "wait go", "mark {node}/work.txt", "result resolved")
	lab.Start(t, c)
	testkit.Eventually(t, "both slots of the programs are taken", func() bool {
		return lab.Control.Starts(t, c.Run, "n01") == 1 && lab.Control.Starts(t, c.Run, "n02") == 1
	})

	// Somebody works on a node, which is verified and landed as any other.
	first := claimNode(t, lab, c.Run)
	require.Contains(t, first.Text, "# Task "+first.Node)
	require.Equal(t, "desk", first.Pool)
	r := lab.Client.Starter(t, "node", "claim", c.Run, "n01")
	require.Equal(t, 1, r.Code, r.Err)
	require.Contains(t, r.Err, "node n01 is worked on by attempt 1 on pool scripted")
	lab.Control.Mark(t, c.Run, first.Node, first.Attempt, first.Worktree)
	require.Contains(t, lab.Client.OK(t, "node", "accept", c.Run, first.Node), first.Node+" landed as ")

	// One who is killed with work in the tree: the node comes back.
	killed, lost := keeper(t, lab, c.Run)
	lab.Control.Mark(t, c.Run, lost.Node, lost.Attempt, lost.Worktree)
	require.NoError(t, killed.Process.Kill())
	row := claimOf(t, lab, c.Run, lost.Claim, ended)
	require.Equal(t, contract.OutcomeInterrupted, row.Outcome)
	require.Contains(t, row.Reason, "the claim was taken back")
	require.NotEmpty(t, row.Salvage)
	r = lab.Client.Starter(t, "node", "accept", c.Run, lost.Node)
	require.Equal(t, 1, r.Code, "what was taken back cannot land")
	require.Contains(t, r.Err, "taken back")

	// One who gives up says so.
	given := claimNode(t, lab, c.Run, "n12")
	require.Equal(t, "n12", given.Node)
	lab.Control.Mark(t, c.Run, given.Node, given.Attempt, given.Worktree)
	lab.Client.OK(t, "node", "release", c.Run, "n12", "--reason", "too hard")
	require.Contains(t, claimOf(t, lab, c.Run, given.Claim, ended).Reason, "too hard")

	// The rest is done by whoever comes first.
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	var people sync.WaitGroup
	for range 2 {
		people.Go(func() { workUntilDone(t, lab, c.Run) })
	}
	v := lab.Client.AwaitClosed(t, c.Run)
	people.Wait()
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)
	testkit.CheckInvariants(t, lab.Scene(c))
	requireAllLanded(t, lab, c)
	requireNothingLeft(t, lab, c)
	rows := lab.Client.Nodes(t, c.Run)
	require.Zero(t, lab.Control.Starts(t, c.Run, first.Node), "nobody else works on what is claimed")
	require.Contains(t, rows[lost.Node].Attempts[0].Reason, "taken back")
	for id, row := range rows {
		for i, a := range row.Attempts {
			require.False(t, a.Charged && a.Outcome != contract.OutcomeSuccess, "%s attempt %d is charged: %s", id, a.K, a.Reason)
			require.Equal(t, i == len(row.Attempts)-1, a.Outcome == contract.OutcomeSuccess, "%s attempt %d", id, a.K)
		}
	}
}

// workUntilDone is a person who takes one node after the other.
func workUntilDone(t *testing.T, lab *testkit.Lab, run string) {
	for {
		r := lab.Client.Starter(t, "node", "claim", run, "--json")
		var d desk
		switch {
		case r.Code == 0 && json.Unmarshal([]byte(r.Out), &d) == nil:
			lab.Control.Mark(t, run, d.Node, d.Attempt, d.Worktree)
			if r := lab.Client.Starter(t, "node", "accept", run, d.Node); r.Code != 0 {
				t.Errorf("accept %s: %s", d.Node, r.Err)
				return
			}
		case strings.Contains(r.Err, "no node waits"), strings.Contains(r.Err, "nothing may start"), strings.Contains(r.Err, "closing"),
			strings.Contains(r.Err, "has closed"), strings.Contains(r.Err, "has ended"):
			if v, err := lab.Client.Status(run); err == nil && v.Nodes["landed"] == v.Nodes["total"] {
				return
			}
		default:
			t.Errorf("claim: %d %s", r.Code, r.Err)
			return
		}
	}
}

// Nothing of ours runs at a desk: the host may crash and come back, and a pause
// keeps the tree for whoever claims the node again.
func TestAClaimOutlivesItsHostAndItsTreeAPause(t *testing.T) {
	t.Parallel()
	lab := testkit.NewLab(t, testkit.LabOptions{Pools: []testkit.Pool{{ID: "desk", Max: 1, Quiet: "10m"}}})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: nodesNamed(2), Policy: map[string]any{"unattended": true}})
	lab.Start(t, c)
	testkit.Eventually(t, "a node is offered", func() bool {
		return strings.Contains(lab.Client.Starter(t, "explain", c.Run, "n01").Out, "attended: a node goes there when somebody claims it")
	})

	d := claimNode(t, lab, c.Run, "n02", "--wait")
	lab.Control.Mark(t, c.Run, d.Node, d.Attempt, d.Worktree)
	lab.Host.Kill()
	require.NoError(t, lab.Host.Restart())
	again := claimNode(t, lab, c.Run, "n02")
	require.Equal(t, d.Claim, again.Claim, "who holds it gets the same desk")
	require.Equal(t, 1, lab.Client.Starter(t, "node", "claim", c.Run).Code, "one at a time")

	lab.Client.OK(t, "pause", c.Run)
	lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	require.Equal(t, 1, lab.Client.Starter(t, "node", "accept", c.Run, "n02").Code)
	lab.Client.OK(t, "resume", c.Run)
	d2 := claimNode(t, lab, c.Run, "n02", "--wait")
	require.Equal(t, d.Worktree, d2.Worktree, "the tree was kept")
	require.Contains(t, d2.Text, "unfinished work")
	require.Contains(t, lab.Client.OK(t, "node", "accept", c.Run, "n02"), "n02 landed as ")

	// A result file decides over the findings.
	d3 := claimNode(t, lab, c.Run, "--wait")
	require.Equal(t, "n01", d3.Node)
	path := c.Dir + "/result.json"
	require.NoError(t, os.WriteFile(path, []byte(`{"items":[{"finding":"F-n01","status":"blocked","reason":"nobody knows how"}]}`), 0o600))
	r := lab.Client.Starter(t, "node", "accept", c.Run, "n01", "--result", path)
	require.Equal(t, 1, r.Code, r.Err)
	require.Contains(t, r.Err, "did not land (blocked)")
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunBlocked, v.Status)
	testkit.CheckInvariants(t, lab.Scene(c))
	requireNothingLeft(t, lab, c)
}

// Attendance is the pool's membership in the run.
func TestSomebodyComesToARunAndLeavesIt(t *testing.T) {
	t.Parallel()
	lab := attendedLab(t, "10m")
	programs, both := attendance(t, lab)
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: nodesNamed(5)})
	lab.Control.Script(t, c.Run, "default", "wait go", "mark {node}/work.txt", "result resolved")
	lab.Client.Start(t, c.Run, c.Repo.URL, c.Path, programs)
	testkit.Eventually(t, "programs are at work", func() bool { return lab.Control.Starts(t, c.Run, "n02") == 1 })
	r := lab.Client.Starter(t, "node", "claim", c.Run)
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "starter pools set")

	lab.Client.OK(t, "pools", "set", c.Run, "--pools", both)
	d := claimNode(t, lab, c.Run, "n05", "--wait")
	lab.Client.OK(t, "pools", "set", c.Run, "--pools", programs)
	require.Contains(t, lab.Client.Starter(t, "node", "claim", c.Run).Err, "starter pools set")
	lab.Control.Mark(t, c.Run, d.Node, d.Attempt, d.Worktree)
	require.Contains(t, lab.Client.OK(t, "node", "accept", c.Run, "n05"), "landed", "what was begun goes to its end")
	require.NoError(t, lab.Control.Tell(c.Run, "go"))
	require.Equal(t, contract.RunCompleted, lab.Client.AwaitClosed(t, c.Run).Status)
	testkit.CheckInvariants(t, lab.Scene(c))
	require.Zero(t, lab.Control.Starts(t, c.Run, "n05"))
}

// attendance writes the pools files of a run without and with somebody.
func attendance(t *testing.T, lab *testkit.Lab) (programs, both string) {
	t.Helper()
	dir := t.TempDir()
	programs, both = dir+"/programs.yaml", dir+"/both.yaml"
	scripted, desk := testkit.Pool{ID: "scripted", Max: 2}, testkit.Pool{ID: "desk", Max: 2, Quiet: "10m"}
	require.NoError(t, testkit.WritePools(programs, lab.Control, scripted))
	require.NoError(t, testkit.WritePools(both, lab.Control, scripted, desk))
	return programs, both
}
