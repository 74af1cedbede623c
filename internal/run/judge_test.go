package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

var twoFindings = []plan.Finding{
	{ID: "F-1", Files: []plan.Location{{Path: "a.go"}}},
	{ID: "F-2", Files: []plan.Location{{Path: "b.go"}}},
}

func said(answers ...ItemAnswer) *Result {
	r := &Result{}
	for i, a := range answers {
		if a != "" {
			r.Items = append(r.Items, ResultItem{Finding: twoFindings[i].ID, Status: a, Reason: "because", Question: "what?"})
		}
	}
	return r
}

func withClaim(r *Result) *Result {
	r.Items[0].Evidence = []Evidence{{Text: "seen"}, {Command: plan.Command{Argv: []string{"go", "test"}}, ExitCode: 0}}
	return r
}

func statuses(items []contract.ItemResult) []contract.ItemStatus {
	var s []contract.ItemStatus
	for _, i := range items {
		s = append(s, i.Status)
	}
	return s
}

func frictions(fs []contract.Friction) []contract.FrictionType {
	var s []contract.FrictionType
	for _, f := range fs {
		s = append(s, f.Type)
	}
	return s
}

// TestJudgeFollowsTheTable has a case for every row of "What a worker's end
// means" (landing.md), and for what the rows leave to be read from them.
func TestJudgeFollowsTheTable(t *testing.T) {
	t.Parallel()
	green, red, none := Checked{Verify: VerifyGreen}, Checked{Verify: VerifyRed, Tail: "FAIL x"}, Checked{Verify: VerifyNone}
	both := func(s contract.ItemStatus) []contract.ItemStatus { return []contract.ItemStatus{s, s} }
	edited, elsewhere := []string{"a.go", "b.go"}, []string{"other.go"}
	limited := Classified{Outcome: contract.OutcomeRateLimited, Reason: "limit until 9pm"}
	for name, c := range map[string]struct {
		ended   Ended
		checked Checked
		step    string // land, verify or final
		want    Judgement
		items   []contract.ItemStatus
		noted   []contract.FrictionType
	}{
		"all resolved, green: lands": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited}, green, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolved), nil,
		},
		"no verify commands count as green and are shown": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited}, none, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased, Unverified: true},
			both(contract.ItemResolved), nil,
		},
		"some resolved: lands as partial": {
			Ended{Result: said(AnswerResolved, AnswerBlocked), Changed: edited}, green, "land",
			Judgement{Land: true, State: contract.NodePartial, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolved, contract.ItemBlocked}, nil,
		},
		"one resolved, one asks: lands as partial": {
			Ended{Result: said(AnswerResolved, AnswerNeedsClarification), Changed: edited}, green, "land",
			Judgement{Land: true, State: contract.NodePartial, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolved, contract.ItemNeedsClarification}, nil,
		},
		"one resolved, one left out: lands as partial": {
			Ended{Result: said(AnswerResolved, ""), Changed: edited}, green, "land",
			Judgement{Land: true, State: contract.NodePartial, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolved, contract.ItemPending}, nil,
		},
		"one resolved, one right already with green over red: lands": {
			Ended{Result: said(AnswerResolved, AnswerNoChange), Changed: []string{"a.go"}}, Checked{Verify: VerifyGreen, RedAtBase: true}, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolved, contract.ItemResolvedNoChange}, nil,
		},
		"one resolved, no_change of a finding whose file changed: that one is blocked": {
			Ended{Result: said(AnswerResolved, AnswerNoChange), Changed: edited}, green, "land",
			Judgement{Land: true, State: contract.NodePartial, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolved, contract.ItemBlocked}, []contract.FrictionType{contract.FrictionNoChangeRefused},
		},
		"none resolved: salvage only": {
			Ended{Result: said(AnswerBlocked, AnswerNeedsClarification), Changed: edited}, Checked{}, "final",
			Judgement{State: contract.NodeBlocked, Outcome: contract.OutcomeSuccess, Tree: TreeSalvaged, Reason: "the worker resolved nothing"},
			[]contract.ItemStatus{contract.ItemBlocked, contract.ItemNeedsClarification}, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"all left out: pending": {
			Ended{Result: said("", "")}, Checked{}, "final",
			Judgement{State: contract.NodeBlocked, Outcome: contract.OutcomeSuccess, Tree: TreeReleased, Reason: "the worker resolved nothing"},
			both(contract.ItemPending), nil,
		},
		"resolved, red: error of the work": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited}, red, "land",
			Judgement{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verification is red", Tail: "FAIL x", Tree: TreeSalvaged},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"resolved, scope refused: error of the work": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited},
			Checked{Scope: ScopeVerdict{Refused: []Refusal{{Path: "x", Kind: RefusedUndeclared}}}}, "land",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "changed paths were refused: x is outside the write scope",
				Tail: "These changes were refused and did not land:\nx is outside the write scope\n", Tree: TreeSalvaged,
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"resolved, seam: error of a conflict": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited},
			Checked{Scope: ScopeVerdict{Refused: []Refusal{{Path: "x", Kind: RefusedSeam, Node: "N-2"}}}}, "land",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseConflict, Reason: "changed paths were refused: x belongs to node N-2",
				Tail: "These changes were refused and did not land:\nx belongs to node N-2\n", Tree: TreeSalvaged,
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"resolved, conflict: error of a conflict": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited}, Checked{Conflicts: []string{"a.go"}}, "land",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseConflict, Reason: "does not merge: a.go",
				Tail: "these paths conflict with what landed meanwhile:\na.go", Tree: TreeSalvaged,
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"resolved, nothing changed: error of the work": {
			Ended{Result: said(AnswerResolved, AnswerNoChange)}, Checked{}, "final",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Tree: TreeReleased,
				Reason: "the result says resolved, but nothing was changed: what was right already is no_change, with evidence",
				Tail:   "the result says resolved, but nothing was changed: what was right already is no_change, with evidence",
			},
			nil, nil,
		},
		"no_change, green and red at the base": {
			Ended{Result: said(AnswerNoChange, AnswerNoChange)}, Checked{Verify: VerifyGreen, RedAtBase: true}, "verify",
			Judgement{State: contract.NodeNoChange, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolvedNoChange), nil,
		},
		"no_change, evidence held for one": {
			Ended{Result: withClaim(said(AnswerNoChange, AnswerNoChange))}, Checked{Verify: VerifyGreen, Held: []string{"F-1"}}, "verify",
			Judgement{State: contract.NodeNoChange, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolvedNoChange), []contract.FrictionType{contract.FrictionNoChangeUnverified},
		},
		"no_change without proof: accepted, listed apart": {
			Ended{Result: said(AnswerNoChange, AnswerNoChange)}, green, "verify",
			Judgement{State: contract.NodeNoChange, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolvedNoChange), []contract.FrictionType{contract.FrictionNoChangeUnverified, contract.FrictionNoChangeUnverified},
		},
		"no_change refuted by red verification": {
			Ended{Result: said(AnswerNoChange, AnswerNoChange)}, red, "verify",
			Judgement{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verification is red", Tail: "FAIL x", Tree: TreeReleased},
			nil, nil,
		},
		"no_change beside a blocked one: red may be about that": {
			Ended{Result: said(AnswerNoChange, AnswerBlocked)}, red, "verify",
			Judgement{State: contract.NodeBlocked, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			[]contract.ItemStatus{contract.ItemResolvedNoChange, contract.ItemBlocked}, []contract.FrictionType{contract.FrictionNoChangeUnverified},
		},
		"no_change with changes elsewhere: salvaged and accepted": {
			Ended{Result: said(AnswerNoChange, AnswerNoChange), Changed: elsewhere}, Checked{Verify: VerifyGreen, RedAtBase: true}, "verify",
			Judgement{State: contract.NodeNoChange, Outcome: contract.OutcomeSuccess, Tree: TreeSalvaged},
			both(contract.ItemResolvedNoChange), []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"no_change that changed its files: blocked": {
			Ended{Result: said(AnswerNoChange, AnswerNoChange), Changed: edited}, Checked{}, "final",
			Judgement{State: contract.NodeBlocked, Outcome: contract.OutcomeSuccess, Tree: TreeSalvaged, Reason: "the worker resolved nothing"},
			both(contract.ItemBlocked),
			[]contract.FrictionType{contract.FrictionNoChangeRefused, contract.FrictionNoChangeRefused, contract.FrictionNodeSalvaged},
		},
		"command, no result, changes, green: lands": {
			Ended{Command: true, Changed: elsewhere}, green, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolved), nil,
		},
		"command, no result, changes, red: error": {
			Ended{Command: true, Changed: elsewhere}, red, "land",
			Judgement{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verification is red", Tail: "FAIL x", Tree: TreeSalvaged},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"command, no result, no changes, re-opened, green: no_change": {
			Ended{Command: true, Opening: 2}, green, "verify",
			Judgement{State: contract.NodeNoChange, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolvedNoChange), nil,
		},
		"command, no result, no changes, re-opened, red: error": {
			Ended{Command: true, Opening: 2}, red, "verify",
			Judgement{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verification is red", Tail: "FAIL x", Tree: TreeReleased},
			nil, nil,
		},
		"command, no result, no changes: error": {
			Ended{Command: true, Opening: 1}, Checked{}, "final",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Tree: TreeReleased,
				Reason: "nothing was changed and no result given", Tail: "nothing was changed and no result given",
			},
			nil, nil,
		},
		"command, failed, output says a limit: kept": {
			Ended{Command: true, ExitCode: 1, Changed: edited, Classified: limited}, Checked{}, "final",
			Judgement{Outcome: contract.OutcomeRateLimited, Reason: "limit until 9pm", Tree: TreeKept},
			nil, nil,
		},
		"command, failed, output says nothing: error": {
			Ended{Command: true, ExitCode: 3, Changed: edited}, Checked{}, "final",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Tree: TreeSalvaged,
				Reason: "the program ended with exit code 3 and no result", Tail: "the program ended with exit code 3 and no result",
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"command, stopped by us with exit 0: interrupted, nothing lands": {
			Ended{Command: true, Changed: edited, Classified: Classified{Outcome: contract.OutcomeInterrupted}}, Checked{}, "final",
			Judgement{Outcome: contract.OutcomeInterrupted, Tree: TreeKept}, nil, nil,
		},
		"agent, no result, exit 0: no success": {
			Ended{Changed: edited}, Checked{}, "final",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Tree: TreeSalvaged,
				Reason: "the program ended without a result", Tail: "the program ended without a result",
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"agent, no result, timeout: charged to the host": {
			Ended{Changed: edited, ExitCode: 137, Classified: Classified{Outcome: contract.OutcomeTimeout, Reason: "no output for 10 m"}}, Checked{}, "final",
			Judgement{Outcome: contract.OutcomeTimeout, Cause: contract.CauseHost, Reason: "no output for 10 m", Tail: "no output for 10 m", Tree: TreeSalvaged},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"agent, no result, too large: released after salvage": {
			Ended{Changed: edited, ExitCode: 1, Classified: Classified{Outcome: contract.OutcomePacketTooLarge}}, Checked{}, "final",
			Judgement{Outcome: contract.OutcomePacketTooLarge, Tree: TreeSalvaged}, nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"a delivered result decides, whatever the log says": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited, ExitCode: 1, Classified: limited}, green, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolved), nil,
		},
		"an invalid result is an error that says why": {
			Ended{Command: true, Invalid: "items[0]: status is missing", Changed: edited}, Checked{}, "final",
			Judgement{
				Outcome: contract.OutcomeError, Cause: contract.CauseWork, Tree: TreeSalvaged,
				Reason: "the result file is not valid: items[0]: status is missing", Tail: "the result file is not valid: items[0]: status is missing",
			},
			nil, []contract.FrictionType{contract.FrictionNodeSalvaged},
		},
		"a limit in the middle of writing the result is a limit": {
			Ended{Invalid: "unexpected EOF", ExitCode: 1, Classified: limited}, Checked{}, "final",
			Judgement{Outcome: contract.OutcomeRateLimited, Reason: "limit until 9pm", Tree: TreeKept}, nil, nil,
		},
		"widened paths land with friction": {
			Ended{Result: said(AnswerResolved, AnswerResolved), Changed: edited}, Checked{Verify: VerifyGreen, Scope: ScopeVerdict{Widened: []string{"x"}}}, "land",
			Judgement{Land: true, State: contract.NodeLanded, Outcome: contract.OutcomeSuccess, Tree: TreeReleased},
			both(contract.ItemResolved), []contract.FrictionType{contract.FrictionScopeWidened},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.ended.Node, c.ended.Findings = "N-1", twoFindings
			step := Before(c.ended)
			require.Equal(t, c.step == "land", step.Land)
			require.Equal(t, c.step == "verify", step.Verify)
			require.Equal(t, c.step == "final", step.Final != nil)
			var got Judgement
			if step.Final != nil {
				got = *step.Final
			} else {
				got = After(c.ended, c.checked)
			}
			require.Equal(t, c.items, statuses(got.Items))
			require.Equal(t, c.noted, frictions(got.Friction))
			got.Items, got.Friction = nil, nil
			require.Equal(t, c.want, got)
		})
	}
}

func TestClaimsOfUntouchedFindingsAreTriedAgain(t *testing.T) {
	t.Parallel()
	e := Ended{Findings: twoFindings, Result: withClaim(said(AnswerNoChange, AnswerResolved)), Changed: []string{"b.go"}}
	require.Equal(t, []Claim{{Finding: "F-1", Command: plan.Command{Argv: []string{"go", "test"}}}}, Before(e).Claims)
	e.Changed = []string{"a.go", "b.go"}
	require.Empty(t, Before(e).Claims, "its files were changed: no evidence helps")
}

func TestLeftOutFindingIsMarked(t *testing.T) {
	t.Parallel()
	j := *Before(Ended{Findings: twoFindings, Result: said("", AnswerBlocked)}).Final
	require.True(t, j.Items[0].Omitted)
	require.False(t, j.Items[1].Omitted)
}

func TestFindingInAFolderIsTouchedByItsFiles(t *testing.T) {
	t.Parallel()
	e := Ended{Findings: []plan.Finding{{ID: "F", Files: []plan.Location{{Path: "pkg/"}}}}, Changed: []string{"pkg/x.go"}}
	require.True(t, touches(e, "F"))
	e.Changed = []string{"pkgs/x.go"}
	require.False(t, touches(e, "F"))
}
