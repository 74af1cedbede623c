package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func hostPool(id string, slots int) contract.Pool {
	return contract.Pool{ID: id, Provider: contract.ProviderHost, Account: id, Tier: plan.TierSmall, MaxConcurrent: slots}
}

// attendedRig is a drive that knows attended pools.
func attendedRig(t *testing.T, pools []contract.Pool, nodes ...string) *rig {
	t.Helper()
	in := input(pools)
	in.Attended = true
	r := newRig(t, in)
	r.drive.Admit(admissions(nodes...))
	r.step()
	return r
}

func (r *rig) claim(id, pool, node string) {
	r.t.Helper()
	r.drive.Claim(contract.Claim{ID: id, Pool: pool, Node: node, By: "ann"}, r.now)
	r.step()
}

// last is the last word about a claim.
func (r *rig) last(id string) contract.ClaimReport {
	var last contract.ClaimReport
	for _, c := range r.claims {
		if c.ID == id {
			last = c
		}
	}
	return last
}

func TestAnAttendedPoolTakesNothingByItself(t *testing.T) {
	t.Parallel()
	r := attendedRig(t, []contract.Pool{hostPool("desk", 2)}, "a", "b")
	r.advance(time.Hour)
	require.Empty(t, r.running)
	require.Empty(t, r.stranded, "what is offered waits")
	reasons, ok := r.drive.Explain("a", r.now)
	require.True(t, ok)
	require.Contains(t, reasons[0].Reason, "starter node claim")

	r.claim("1", "desk", "")
	require.Len(t, r.running, 1)
	require.Equal(t, "a", r.running[0].Input.Node)
	require.Equal(t, "1", r.running[0].Input.Claim.ID)
	require.Equal(t, contract.ClaimReport{ID: "1", Node: "a", Attempt: 1, State: contract.ClaimGiven}, r.last("1"))
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeSuccess, State: contract.NodeLanded, Commit: "c"})
	require.Equal(t, contract.ClaimEnded, r.last("1").State)
	require.Equal(t, "c", r.last("1").Commit)
	require.Len(t, r.settled, 1)
}

// A cheaper tier of people must not keep nodes from programs.
func TestAttendedPoolsDoNotShapeWhatProgramsMayTake(t *testing.T) {
	t.Parallel()
	program := commandPool("program", 1)
	r := attendedRig(t, []contract.Pool{hostPool("desk", 2), program}, "a", "b")
	require.Len(t, r.running, 1)
	require.Equal(t, "program", r.running[0].Input.Pool)
	r.claim("1", "desk", "a")
	require.Contains(t, r.last("1").Reason, "worked on by attempt 1 on pool program")
	r.claim("2", "desk", "b")
	require.Equal(t, contract.ClaimGiven, r.last("2").State)
	r.claim("3", "desk", "")
	require.Equal(t, "no node waits", r.last("3").Reason)
	r.claim("4", "elsewhere", "")
	require.Equal(t, contract.ClaimDeclined, r.last("4").State)
}

func TestAPoolOfPeopleHasItsCap(t *testing.T) {
	t.Parallel()
	r := attendedRig(t, []contract.Pool{hostPool("desk", 1)}, "a", "b")
	r.claim("1", "desk", "b")
	r.claim("1", "desk", "") // told twice
	require.Len(t, r.running, 1)
	r.claim("2", "desk", "")
	require.Contains(t, r.last("2").Reason, "pool desk has 1 of 1 nodes already")
	r.drive.SetPools([]contract.Pool{commandPool("program", 1)})
	r.step()
	r.claim("3", "desk", "")
	require.Contains(t, r.last("3").Reason, "not an attended pool of the run")
	require.Len(t, r.running, 2, "the program took the other")
}

// Nobody waits for somebody who left: a program takes the node, and the tree is put aside.
func TestATreeThatSomebodyLeftTiesNobody(t *testing.T) {
	t.Parallel()
	r := attendedRig(t, []contract.Pool{hostPool("desk", 1)}, "a")
	r.claim("1", "desk", "a")
	kept := &contract.Kept{Attempt: 1, Host: "h", Pool: "desk"}
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Reason: "stopped", Kept: kept})
	require.Equal(t, contract.OutcomeInterrupted, r.last("1").Outcome)
	r.claim("2", "desk", "a")
	require.Equal(t, kept, r.running[0].Input.Kept, "who claims it again goes on in it")
	r.end("a", contract.AttemptResult{Outcome: contract.OutcomeInterrupted, Reason: "stopped", Kept: &contract.Kept{Attempt: 2, Host: "h", Pool: "desk"}})
	r.drive.SetPools([]contract.Pool{hostPool("desk", 1), commandPool("program", 1)})
	r.step()
	require.Len(t, r.running, 1)
	require.Equal(t, "program", r.running[0].Input.Pool)
	require.Nil(t, r.running[0].Input.Claim)
	require.Equal(t, 2, r.running[0].Leaves.Attempt)
}

func TestAClaimIsTakenBackBeforeItsAttemptBegins(t *testing.T) {
	t.Parallel()
	in := input([]contract.Pool{hostPool("desk", 1)}, admissions("a")...)
	in.Attended = true
	d := NewDrive(in)
	d.Decide(t0)
	d.Claim(contract.Claim{ID: "1", Pool: "desk"}, t0)
	require.Len(t, d.Decide(t0).Messages[0].Tickets.Reserve, 1)
	d.Unclaim("1")
	a := d.Decide(t0)
	require.Len(t, a.Messages[0].Tickets.Withdraw, 1)
	require.Equal(t, contract.ClaimDeclined, a.Reports[0].Claims[0].State)
}

func TestAClaimIsDeclinedWhenItsPoolLeavesBeforeTheGrant(t *testing.T) {
	t.Parallel()
	in := input([]contract.Pool{hostPool("desk", 1)}, admissions("a")...)
	in.Attended = true
	d := NewDrive(in)
	d.Claim(contract.Claim{ID: "1", Pool: "desk"}, t0)
	ticket := d.Decide(t0).Messages[0].Tickets.Reserve[0].Ticket
	d.SetPools([]contract.Pool{commandPool("program", 1)})
	require.Empty(t, d.Receive(contract.Grants{Account: "desk", Granted: []string{ticket}, Seq: 1}, t0))
	a := d.Decide(t0)
	require.Equal(t, contract.ClaimDeclined, a.Reports[0].Claims[0].State)
	require.Equal(t, "program", d.Status().Pools[0].ID)
	require.Len(t, a.Messages, 2, "given back there, asked for here")
}

// A drive of a build that did not know attended pools goes on as it began.
func TestDrivesThatDoNotKnowAttendedPoolsPlaceNodesThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, input([]contract.Pool{hostPool("desk", 1)}, admissions("a")...))
	require.Len(t, r.running, 1)
}

// Whatever people and programs do: a node has one attempt at a time, and every
// claim hears of its end exactly once.
func TestClaimsAndProgramsNeverShareANode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := attendedRig(t, []contract.Pool{hostPool("desk", 2), commandPool("program", 2)}, "a", "b", "c", "d", "e", "f")
		asked := 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				asked++
				node := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(rt, "node")
				r.claim(fmt.Sprint(asked), "desk", node)
			case 1:
				r.drive.Unclaim(fmt.Sprint(rapid.IntRange(1, max(asked, 1)).Draw(rt, "claim")))
				r.step()
			case 2:
				r.advance(time.Minute)
			default:
				if len(r.running) == 0 {
					continue
				}
				l := r.running[rapid.IntRange(0, len(r.running)-1).Draw(rt, "attempt")]
				outcome := rapid.SampledFrom([]contract.Outcome{contract.OutcomeSuccess, contract.OutcomeInterrupted, contract.OutcomeError}).Draw(rt, "outcome")
				r.end(l.Input.Node, contract.AttemptResult{Outcome: outcome, Cause: contract.CauseWork})
			}
			at := map[string]bool{}
			for _, l := range r.running {
				require.False(rt, at[l.Input.Node], "node %s has two attempts", l.Input.Node)
				at[l.Input.Node] = true
				require.Equal(rt, l.Pool.ID == "desk", l.Input.Claim != nil)
			}
		}
		for len(r.running) > 0 {
			r.end(r.running[0].Input.Node, contract.AttemptResult{Outcome: contract.OutcomeSuccess})
		}
		over := map[string]int{}
		for _, c := range r.claims {
			if !c.State.Open() {
				over[c.ID]++
			}
		}
		for i := range asked {
			require.Equal(rt, 1, over[fmt.Sprint(i+1)], "claim %d", i+1)
		}
	})
}
