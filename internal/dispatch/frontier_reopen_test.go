package dispatch

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func TestPhasesAreHardBarriers(t *testing.T) {
	t.Parallel()
	later := func(u *plan.Unit) { u.Phase = 3 }
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), with(node("C", "c"), later)}, FrontierOptions{})
	require.Equal(t, []string{"A", "B"}, admitted(f, 9))
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	_, _, boundary := f.PhaseBoundary()
	require.False(t, boundary)
	ends(t, f, "B", contract.NodeBlocked)
	require.Equal(t, []string{"C"}, []string{f.DeadEnds()[0].Node}, "the phase cannot complete")
	require.Equal(t, "phase 0 cannot complete: B is blocked", status(t, f, "F-C").Reason)
	c, err := f.Triage(TriageIgnore, "F-B")
	require.NoError(t, err)
	require.Equal(t, []string{"C"}, c.Freed)
	require.Equal(t, TerminalBusy, f.Waiting().Kind, "the next phase waits to be opened")
	done, next, boundary := f.PhaseBoundary()
	require.True(t, boundary)
	require.Equal(t, []int{0, 3}, []int{done, next})
	require.Empty(t, admitted(f, 9))
	f.OpenPhase(next)
	require.Equal(t, []string{"C"}, admitted(f, 9))
	_, _, boundary = f.PhaseBoundary()
	require.False(t, boundary)
}

func TestPhaseIsStuckBesideWhatStillRuns(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), with(node("C", "c"), func(u *plan.Unit) { u.Phase = 1 })}, FrontierOptions{})
	admitted(f, 9)
	ends(t, f, "B", contract.NodeBlocked)
	blocked := f.DeadEnds()
	require.Len(t, blocked, 1)
	require.Equal(t, "phase 0 cannot complete: B is blocked", blocked[0].Reason, "A runs and is not to blame")
}

func TestFreedDeadEndKeepsItemsThatWereBlockedForAnotherReason(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a", "D"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2"} })
	f := NewFrontier([]plan.Unit{node("D", "d"), u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "D", contract.NodeLanded, "F-D=resolved")
	admitted(f, 1)
	ends(t, f, "A", contract.NodeBlocked, "F-1=omitted", "F-2=needs_clarification")
	_, err := f.Answer("F-2", AnswerDefer, "later")
	require.NoError(t, err)
	require.Empty(t, f.Reject("D", "culprit twice").Ignored)
	require.Equal(t, "A", f.DeadEnds()[0].Node)
	c, err := f.Triage(TriageRetry, "F-D")
	require.NoError(t, err)
	require.Equal(t, []string{"A"}, c.Freed)
	require.Equal(t, contract.ItemPending, status(t, f, "F-1").Status)
	require.Equal(t, "later", status(t, f, "F-2").Reason)
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-2").Status)
}

func TestCulpritTakesItsLandedDependantsAlong(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b", "A"), node("C", "c", "B"), node("D", "d", "A"), node("E", "e")}, FrontierOptions{})
	for _, ids := range [][]string{{"A", "E"}, {"B", "D"}, {"C"}} {
		require.Equal(t, ids, admitted(f, 9))
		for _, id := range ids {
			if id == "D" {
				ends(t, f, id, contract.NodeBlocked)
				continue
			}
			ends(t, f, id, contract.NodeLanded, "F-"+id+"=resolved")
		}
	}
	c := f.Reopen("A", "culprit of a red gate", true, "--- FAIL")
	require.Equal(t, []string{"A", "B", "C"}, c.Opened, "D never landed, E does not depend on it")
	require.Len(t, c.Items, 3)
	given := f.Admissions(epoch, 9)
	require.Len(t, given, 1)
	require.Equal(t, contract.Admission{
		Node: "A", Opening: 2, NextAttempt: 2, Tier: "standard", Charged: contract.Charged{Work: 1}, Tail: "--- FAIL",
	}, given[0].Admission)
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	require.Zero(t, admission(t, f, "B").Charged)
}

func TestReopenedNodeNoLongerGoesToTheFront(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), with(node("B", "b"), func(u *plan.Unit) { u.Severity = 0 })}, FrontierOptions{})
	require.Equal(t, []string{"B", "A"}, admitted(f, 2))
	for _, id := range []string{"A", "B"} {
		require.Empty(t, f.Strand(contract.Stranding{Node: id, Opening: 1, Cause: contract.StrandHeld, NextAttempt: 1}, epoch).Ignored)
	}
	f.Rearm(contract.StrandHeld)
	require.Empty(t, admitted(f, 0), "the line is formed")
	require.Equal(t, []string{"B"}, f.Reopen("B", "again", false, "").Opened)
	require.Equal(t, []string{"A", "B"}, admitted(f, 2))
}

func TestReblockReopensEverythingButSkips(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), node("C", "c"), node("D", "d", "C")}, FrontierOptions{})
	admitted(f, 9)
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	ends(t, f, "B", contract.NodeBlocked, "F-B=blocked")
	ends(t, f, "C", contract.NodeBlocked)
	f.DeadEnds()
	_, err := f.Triage(TriageIgnore, "F-B")
	require.NoError(t, err)
	c := f.Reblock("the gate is red", "FAIL")
	require.Equal(t, []string{"A", "C"}, c.Opened)
	require.Equal(t, contract.ItemIgnored, status(t, f, "F-B").Status)
	require.Equal(t, []string{"A", "C"}, admitted(f, 9))
	require.Equal(t, 1, rowOf(t, f, "D").Opening, "never attempted: it waits, in its first opening")
	require.Equal(t, contract.NodePending, rowOf(t, f, "D").State)
}

func TestClarifiedAnswerReachesTheNextPromptAndCarriesBounds(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b", "A")}, FrontierOptions{})
	admitted(f, 9)
	f.s.Nodes[0].Charged.Host = 2
	ends(t, f, "A", contract.NodeBlocked, "F-A=needs_clarification")
	require.Empty(t, f.DeadEnds(), "an answer may still come")
	require.Equal(t, "which?", status(t, f, "F-A").Question)
	_, err := f.Answer("F-B", AnswerClarified, "x")
	require.ErrorContains(t, err, "nobody asked")
	_, err = f.Answer("F-A", AnswerClarified, "")
	require.ErrorContains(t, err, "text is empty")
	_, err = f.Answer("F-A", "perhaps", "x")
	require.ErrorContains(t, err, "unknown answer")
	_, err = f.Triage(TriageRetry, "F-A")
	require.ErrorContains(t, err, "needs_clarification, not blocked")
	c, err := f.Answer("F-A", AnswerClarified, "the second one")
	require.NoError(t, err)
	require.Equal(t, []string{"A"}, c.Opened)
	a := admission(t, f, "A")
	require.Equal(t, contract.Charged{Host: 2}, a.Charged)
	require.Equal(t, []contract.Clarification{{Finding: "F-A", Question: "which?", Answer: "the second one"}}, a.Clarified)
}

func TestAnswerDuringAnAttemptIsTriedInTheNextOpening(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2"} })
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodePartial, "F-1=omitted", "F-2=needs_clarification")
	require.Equal(t, []string{"F-1"}, admission(t, f, "A").Findings)
	_, err := f.Answer("F-2", AnswerClarified, "yes")
	require.NoError(t, err)
	c := ends(t, f, "A", contract.NodeLanded, "F-1=resolved")
	require.Equal(t, []string{"A"}, c.Opened)
	require.Equal(t, []string{"F-2"}, admission(t, f, "A").Findings)
}

func TestTriageAnswersOnlyBlockedItems(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a")}, FrontierOptions{})
	_, err := f.Triage(TriageRetry, "nothing")
	require.ErrorContains(t, err, "no such finding")
	_, err = f.Triage(TriageRetry, "F-A")
	require.ErrorContains(t, err, "pending, not blocked")
	admitted(f, 1)
	ends(t, f, "A", contract.NodeBlocked)
	_, err = f.Triage("perhaps", "F-A")
	require.ErrorContains(t, err, "want retry, ignore or halt")
	before, _ := json.Marshal(f)
	c, err := f.Triage(TriageHalt, "F-A")
	require.NoError(t, err)
	require.True(t, c.Halt)
	after, _ := json.Marshal(f)
	require.JSONEq(t, string(before), string(after))
	c = f.Abandon("halted")
	require.Equal(t, contract.ItemAbandoned, c.Items[0].Status)
	require.Equal(t, "why", c.Items[0].Reason)
}

func TestRejectedNodeIsBlockedAndSoIsWhatStoodOnIt(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b", "A"), node("C", "c")}, FrontierOptions{})
	for _, ids := range [][]string{{"A", "C"}, {"B"}} {
		require.Equal(t, ids, admitted(f, 9))
		for _, id := range ids {
			ends(t, f, id, contract.NodeLanded, "F-"+id+"=resolved")
		}
	}
	c := f.Reject("A", "turned the gate red twice")
	require.Equal(t, contract.NodeBlocked, c.State)
	require.Equal(t, []string{"A", "B"}, c.Opened)
	require.Equal(t, []contract.ItemRow{
		{Finding: "F-A", Node: "A", Status: contract.ItemBlocked, Reason: "turned the gate red twice"},
		{Finding: "F-B", Node: "B", Status: contract.ItemPending},
	}, c.Items)
	require.Empty(t, admitted(f, 9))
	require.Equal(t, "B", f.DeadEnds()[0].Node)
	require.Equal(t, contract.ItemResolved, status(t, f, "F-C").Status)

	c = f.RejectAll("the gate stays red")
	require.Len(t, c.Items, 3)
	for _, it := range f.Items() {
		require.Equal(t, contract.ItemBlocked, it.Status)
		require.Equal(t, "the gate stays red", it.Reason)
	}
	require.Equal(t, TerminalAsking, f.Waiting().Kind)
}
