package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// failsTwice settles a node as one whose worker delivered work that its verification refused.
func failsTwice(t *testing.T, f *Frontier, id string) {
	t.Helper()
	row := rowOf(t, f, id)
	next := len(row.Attempts) + 1
	c := f.Settle(contract.Settlement{
		Node: id, Opening: row.Opening, State: contract.NodeBlocked, Reason: "2 failed attempts (work)", NextAttempt: next + 1,
		Attempts: []contract.AttemptResult{{Node: id, Opening: row.Opening, Attempt: next, Outcome: contract.OutcomeError, Cause: contract.CauseWork, Delivered: true}},
	}, epoch)
	require.Empty(t, c.Ignored)
}

func TestOnlyItemsThatNobodyDecidedAreAsked(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), node("C", "c"), node("D", "d", "A")}, FrontierOptions{})
	admitted(f, 9)
	ends(t, f, "A", contract.NodeBlocked, "F-A=needs_clarification")
	ends(t, f, "B", contract.NodeBlocked)
	ends(t, f, "C", contract.NodeLanded, "F-C=resolved")
	blocked, questions := f.Asked()
	require.Equal(t, []int{1, 1}, []int{blocked, questions}, "D may still run")
	require.Len(t, f.ItemPage(0, 0, false), 4)
	require.Equal(t, []string{"F-A"}, findingsOf(f.ItemPage(0, 1, true)))
	require.Equal(t, []string{"F-B"}, findingsOf(f.ItemPage(1, 1, true)))
	require.Empty(t, f.ItemPage(2, 1, true))

	_, err := f.Answer("F-A", AnswerDefer, "next year")
	require.NoError(t, err)
	f.DeadEnds()
	require.Equal(t, []string{"F-B", "F-D"}, findingsOf(f.ItemPage(0, 0, true)), "what was put off is not asked again")
	row, ok := f.Item("F-A")
	require.True(t, ok)
	require.True(t, row.Deferred)
	require.Equal(t, contract.ItemBlocked, row.Status)
	_, err = f.Triage(TriageRetry, "F-A")
	require.NoError(t, err, "an operator may think better of it")
	require.Equal(t, []string{"F-B"}, findingsOf(f.ItemPage(0, 0, true)))
}

func findingsOf(rows []contract.ItemRow) []string {
	ids := []string{}
	for _, row := range rows {
		ids = append(ids, row.Finding)
	}
	return ids
}

func TestBlockedItemsAreVerifiedAgainOncePerTruth(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), node("C", "c"), node("D", "d", "A")}, FrontierOptions{})
	admitted(f, 9)
	failsTwice(t, f, "A")
	ends(t, f, "B", contract.NodeBlocked, "F-B=blocked") // its worker said so
	ends(t, f, "C", contract.NodeBlocked)                // nothing was delivered
	f.DeadEnds()                                         // D never ran
	node, findings, ok := f.VerifyAgain("t1")
	require.True(t, ok)
	require.Equal(t, "A", node)
	require.Equal(t, []string{"F-A"}, findings)
	require.Empty(t, f.VerifiedAgain("A", "t1", nil, "").Items)
	_, _, ok = f.VerifyAgain("t1")
	require.False(t, ok, "asked once on this truth, and of no other node")
	_, _, ok = f.VerifyAgain("t2")
	require.True(t, ok)

	c := f.VerifiedAgain("A", "t2", []string{"F-A", "F-B", "F-none"}, "green now")
	require.Equal(t, []string{"F-A", "F-D"}, findingsOf(c.Items))
	require.Equal(t, []string{"D"}, c.Freed)
	require.Equal(t, contract.NodeNoChange, c.State)
	require.Equal(t, "green now", status(t, f, "F-A").Reason)
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-B").Status, "it is another node's")
	require.Equal(t, []string{"D"}, admitted(f, 9))
	require.NotEmpty(t, f.VerifiedAgain("nobody", "t", nil, "").Ignored)
}

func TestOperatorsDecisionStandsAgainstAVerificationUnderWay(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a")}, FrontierOptions{})
	admitted(f, 9)
	failsTwice(t, f, "A")
	_, _, ok := f.VerifyAgain("t1")
	require.True(t, ok)
	_, err := f.Triage(TriageRetry, "F-A")
	require.NoError(t, err)
	require.Empty(t, f.VerifiedAgain("A", "t1", []string{"F-A"}, "green now").Items)
	require.Equal(t, contract.ItemPending, status(t, f, "F-A").Status)
	require.Equal(t, contract.NodePending, rowOf(t, f, "A").State)
}

func TestAnswersThatTravelAreBounded(t *testing.T) {
	t.Parallel()
	u := node("A", "a")
	u.Findings = nil
	var questions []string
	for i := range 40 {
		u.Findings = append(u.Findings, fmt.Sprintf("F-%02d", i))
		questions = append(questions, u.Findings[i]+"=needs_clarification")
	}
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodeBlocked, questions...)
	for _, finding := range u.Findings {
		_, err := f.Answer(finding, AnswerClarified, strings.Repeat("x", 5000))
		require.NoError(t, err)
	}
	a := admission(t, f, "A")
	size := 0
	for _, c := range a.Clarified {
		require.Len(t, c.Answer, maxAnswer)
		size += len(c.Answer) + len(c.Question) + len(c.Finding)
	}
	require.LessOrEqual(t, size, maxClarified)
	require.Len(t, a.Clarified, 12)
}

func TestNewQuestionForgetsTheOldAnswer(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a")}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodeBlocked, "F-A=needs_clarification")
	_, err := f.Answer("F-A", AnswerClarified, "the red one")
	require.NoError(t, err)
	admitted(f, 1)
	ends(t, f, "A", contract.NodeBlocked, "F-A=needs_clarification")
	require.Empty(t, status(t, f, "F-A").Answer)
	_, err = f.Answer("F-A", AnswerClarified, "the left one")
	require.NoError(t, err)
	admitted(f, 1)
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	row := status(t, f, "F-A")
	require.Equal(t, []string{"which?", "the left one"}, []string{row.Question, row.Answer}, "the report shows both")
}

func TestAnAnswerForAllReachesDeadEndsToo(t *testing.T) {
	t.Parallel()
	for _, action := range []string{TriageIgnore, TriageRetry} {
		f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b", "A"), node("C", "c", "B")}, FrontierOptions{})
		admitted(f, 1)
		ends(t, f, "A", contract.NodeBlocked)
		require.Len(t, f.DeadEnds(), 2)
		_, err := f.Triage(action, "F-A", "F-none")
		require.Error(t, err)
		require.Equal(t, contract.ItemBlocked, status(t, f, "F-A").Status, "all or nothing")
		c, err := f.Triage(action, "F-A", "F-B", "F-C")
		require.NoError(t, err)
		require.Len(t, c.Items, 3)
		require.Empty(t, f.DeadEnds())
		if action == TriageIgnore {
			require.Equal(t, TerminalDone, f.Waiting().Kind)
			continue
		}
		require.Equal(t, []string{"A"}, c.Opened, "the others never ran")
		require.Equal(t, []string{"A"}, admitted(f, 9))
	}
}
