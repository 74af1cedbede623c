package dispatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// node makes a unit with one finding per given name, else "F-<id>".
func node(id, write string, deps ...string) plan.Unit {
	u := plan.Unit{ID: id, Findings: []string{"F-" + id}, DependsOn: deps, Severity: 2, Tier: plan.TierStandard}
	if write != "" {
		u.Write = strings.Fields(write)
	}
	return u
}

func with(u plan.Unit, change func(*plan.Unit)) plan.Unit {
	change(&u)
	return u
}

func admitted(f *Frontier, free int) []string {
	ids := []string{}
	for _, a := range f.Admissions(epoch, free) {
		ids = append(ids, a.Admission.Node)
	}
	return ids
}

// admission admits until the node runs and returns how.
func admission(t *testing.T, f *Frontier, id string) contract.Admission {
	t.Helper()
	for _, a := range f.Admissions(epoch, 100) {
		if a.Admission.Node == id {
			return a.Admission
		}
	}
	require.Fail(t, "not admitted", id)
	return contract.Admission{}
}

// ends settles a running node with items as FINDING=status pairs; "omitted" is a status here.
func ends(t *testing.T, f *Frontier, id string, state contract.NodeState, items ...string) Changes {
	t.Helper()
	row := rowOf(t, f, id)
	s := contract.Settlement{Node: id, Opening: row.Opening, State: state, Reason: "why", NextAttempt: len(row.Attempts) + 2}
	s.Charged = f.s.Nodes[f.ix.byID[id]].Charged
	r := contract.AttemptResult{Node: id, Opening: row.Opening, Attempt: len(row.Attempts) + 1, Outcome: contract.OutcomeSuccess, State: state}
	if state == contract.NodeLanded || state == contract.NodePartial {
		r.Commit = "c-" + id
	}
	if state == contract.NodeBlocked && len(items) == 0 {
		r.Outcome, r.Cause, r.Tail, r.Salvage = contract.OutcomeError, contract.CauseWork, "FAIL", "refs/salvage"
		s.Charged.Work++
	}
	for _, item := range items {
		finding, status, _ := strings.Cut(item, "=")
		ir := contract.ItemResult{Finding: finding, Status: contract.ItemStatus(status), Reason: "said so", Question: "which?"}
		if status == "omitted" {
			ir.Status, ir.Omitted = contract.ItemPending, true
		}
		r.Items = append(r.Items, ir)
	}
	s.Attempts = []contract.AttemptResult{r}
	c := f.Settle(s, epoch)
	require.Empty(t, c.Ignored)
	return c
}

func rowOf(t *testing.T, f *Frontier, id string) contract.NodeRow {
	t.Helper()
	view, ok := f.Explain(id, epoch)
	require.True(t, ok)
	return view.NodeRow
}

func status(t *testing.T, f *Frontier, finding string) contract.ItemRow {
	t.Helper()
	for _, it := range f.Items() {
		if it.Finding == finding {
			return it
		}
	}
	require.Fail(t, "no such item", finding)
	return contract.ItemRow{}
}

func TestOnlyVerifiedCompleteDependenciesSatisfyEdges(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a/**"), node("B", "b/**", "A"), node("C", "c/**", "B")}, FrontierOptions{})
	require.Equal(t, []string{"A"}, admitted(f, 9))
	ends(t, f, "A", contract.NodeNoChange, "F-A=resolved_no_change")
	require.Equal(t, []string{"B"}, admitted(f, 9))
	ends(t, f, "B", contract.NodeBlocked, "F-B=blocked")
	require.Empty(t, admitted(f, 9))
	_, err := f.Triage(TriageIgnore, "F-B")
	require.NoError(t, err)
	require.Equal(t, contract.NodeSkipped, rowOf(t, f, "B").State)
	require.Empty(t, admitted(f, 9), "a skip satisfies no edge")
	blocked := f.DeadEnds()
	require.Len(t, blocked, 1)
	require.Equal(t, "C", blocked[0].Node)
	require.Equal(t, "B", blocked[0].By)
	require.Contains(t, blocked[0].Reason, "depends on B, which is skipped")
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-C").Status)
	require.Empty(t, f.DeadEnds(), "said once")
}

func TestDeadEndsReachThroughChainsMissingNodesAndCycles(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{
		node("A", "a/**"), node("B", "b/**", "A"), node("C", "c/**", "B"), node("D", "d/**", "gone"),
		node("X", "x/**", "Y"), node("Y", "y/**", "X"), node("Z", "z/**"), node("W", "w/**", "Z"),
	}, FrontierOptions{})
	f.s.Units[2].Depth, f.s.Units[1].Depth = 2, 1
	admitted(f, 9)
	ends(t, f, "A", contract.NodeBlocked)
	require.Equal(t, "why", status(t, f, "F-A").Reason)
	reasons := map[string]string{}
	for _, b := range f.DeadEnds() {
		reasons[b.Node] = b.Reason
	}
	require.Equal(t, map[string]string{
		"B": "depends on A, which is blocked: why",
		"C": "depends on B, which is blocked: depends on A, which is blocked: why",
		"D": "depends on gone, which is not in this run",
		"X": "its dependencies form a cycle",
		"Y": "depends on X, which is blocked: its dependencies form a cycle",
	}, reasons, "W waits for Z, which runs")
}

func TestRetriedDependencyFreesItsDeadEnds(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a/**"), node("B", "b/**", "A")}, FrontierOptions{})
	admitted(f, 9)
	ends(t, f, "A", contract.NodeBlocked)
	require.Len(t, f.DeadEnds(), 1)
	c, err := f.Triage(TriageRetry, "F-A")
	require.NoError(t, err)
	require.Equal(t, []string{"A"}, c.Opened)
	require.Equal(t, []string{"B"}, c.Freed)
	a := admission(t, f, "A")
	require.Equal(t, 2, a.Opening)
	require.Equal(t, 2, a.NextAttempt)
	require.Equal(t, "FAIL", a.Tail)
	require.Zero(t, a.Charged, "an operator's retry has new bounds")
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	b := admission(t, f, "B")
	require.Equal(t, 1, b.Opening, "it never ran")
}

func TestOverlappingScopesNeverRunTogetherWhateverTheirLevel(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{
		node("A", "a/**"), node("B", "b/**"), with(node("C", "a/x.go", "B"), func(u *plan.Unit) { u.Depth = 1 }), node("D", "A/x.go"),
	}, FrontierOptions{})
	require.Equal(t, []string{"A", "B", "D"}, admitted(f, 9))
	ends(t, f, "B", contract.NodeLanded, "F-B=resolved")
	require.Empty(t, admitted(f, 9))
	view, _ := f.Explain("C", epoch)
	require.Equal(t, []string{"its write scope overlaps A, which runs"}, view.Waits)
	require.Equal(t, []string{"A"}, view.Conflicts)
	ends(t, f, "A", contract.NodeLanded, "F-A=resolved")
	require.Equal(t, []string{"C"}, admitted(f, 9))

	folded := NewFrontier([]plan.Unit{node("A", "a/**"), node("D", "A/x.go")}, FrontierOptions{FoldCase: true})
	require.Equal(t, []string{"A"}, admitted(folded, 9))
}

func TestSharedAppendOnBothSidesMayOverlap(t *testing.T) {
	t.Parallel()
	share := func(u *plan.Unit) { u.SharedAppend = true }
	f := NewFrontier([]plan.Unit{with(node("A", "log.md"), share), with(node("B", "log.md"), share), node("C", "log.md")}, FrontierOptions{})
	require.Equal(t, []string{"A", "B"}, admitted(f, 9))
}

func TestExclusiveNodeRunsAloneAndIsNotStarved(t *testing.T) {
	t.Parallel()
	units := []plan.Unit{with(node("A", "a/**"), func(u *plan.Unit) { u.Severity = 0 }), with(node("E", ""), func(u *plan.Unit) { u.Severity = 1 })}
	for i := range 8 {
		units = append(units, node(fmt.Sprintf("N%d", i), fmt.Sprintf("n%d/**", i)))
	}
	f := NewFrontier(units, FrontierOptions{})
	require.Equal(t, []string{"A", "N0", "N1", "N2"}, admitted(f, 9), "three may go before it, no more")
	for _, id := range []string{"N0", "A", "N1"} {
		ends(t, f, id, contract.NodeLanded, "F-"+id+"=resolved")
		require.Empty(t, admitted(f, 9))
	}
	view, _ := f.Explain("N3", epoch)
	require.Contains(t, view.Waits, "E waits longer and was overtaken 3 times")
	ends(t, f, "N2", contract.NodeLanded, "F-N2=resolved")
	require.Equal(t, []string{"E"}, admitted(f, 9))
	require.Empty(t, admitted(f, 9))
	ends(t, f, "E", contract.NodeLanded, "F-E=resolved")
	require.Len(t, admitted(f, 9), 5)
}

func TestOrderIsContinuityThenSeverityThenID(t *testing.T) {
	t.Parallel()
	at := func(severity int, folder string) func(*plan.Unit) {
		return func(u *plan.Unit) { u.Severity, u.Files = severity, []string{folder} }
	}
	f := NewFrontier([]plan.Unit{
		with(node("A", "a.go"), at(0, "pkg/client")), with(node("B", "b.go"), at(1, "docs")), with(node("C", "c.go"), at(1, "cmd")),
		with(node("D", "d.go"), at(4, "pkg/client")), with(node("E", "e.go"), at(3, "pkg/server")), with(node("G", "g.go"), at(1, "apkg/client")),
	}, FrontierOptions{})
	require.Equal(t, []string{"A"}, admitted(f, 1))
	s := contract.Settlement{Node: "A", Opening: 1, State: contract.NodeLanded, NextAttempt: 3, Attempts: []contract.AttemptResult{
		{Attempt: 1, Outcome: contract.OutcomeError, Paths: []string{"cmd/lost.go"}}, // did not land: changed nothing
		{Attempt: 2, Outcome: contract.OutcomeSuccess, Commit: "c", Paths: []string{"pkg/client/tls.go"}},
	}}
	require.Empty(t, f.Settle(s, epoch).Ignored)
	require.Equal(t, []string{"D", "E", "B", "C", "G"}, admitted(f, 9))
}

func TestLeftOutFindingIsRetriedOnceThenBlocked(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2"} })
	f := NewFrontier([]plan.Unit{u, node("B", "b/**", "A")}, FrontierOptions{})
	require.Empty(t, admission(t, f, "A").Findings, "all of the node")
	c := ends(t, f, "A", contract.NodePartial, "F-1=resolved", "F-2=omitted")
	require.Equal(t, []string{"A"}, c.Opened)
	require.Equal(t, contract.NodePending, c.State)
	a := admission(t, f, "A")
	require.Equal(t, []string{"F-2"}, a.Findings)
	require.Equal(t, 2, a.Opening)
	c = ends(t, f, "A", contract.NodeBlocked, "F-2=omitted")
	require.Equal(t, contract.NodeBlocked, c.State)
	require.Equal(t, "left out of the worker's result 2 times", status(t, f, "F-2").Reason)
	require.Equal(t, contract.ItemResolved, status(t, f, "F-1").Status)
}

func TestFindingLeftOutTwiceIsNotRetriedByALaterPartialLanding(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2", "F-3"} })
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodePartial, "F-1=resolved", "F-2=omitted", "F-3=omitted")
	admitted(f, 1)
	c := ends(t, f, "A", contract.NodePartial, "F-2=omitted", "F-3=resolved")
	require.Empty(t, c.Opened)
	require.Equal(t, contract.NodePartial, c.State)
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-2").Status)
}

func TestPartialLandingIsRetriedWithinTheCarriedBound(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2", "F-3"} })
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodePartial, "F-1=resolved", "F-2=blocked", "F-3=needs_clarification")
	a := admission(t, f, "A")
	require.Equal(t, []string{"F-2"}, a.Findings, "the question waits for its answer")
	require.Equal(t, contract.Charged{Work: 1}, a.Charged)
	c := ends(t, f, "A", contract.NodePartial, "F-2=blocked")
	require.Equal(t, contract.NodePartial, c.State)
	require.Empty(t, c.Opened, "the bound is reached")
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-2").Status)
}

func TestBoundReachedBlocksOpenItemsOnly(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2"} })
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodePartial, "F-1=resolved", "F-2=omitted")
	admitted(f, 1)
	c := ends(t, f, "A", contract.NodeBlocked)
	require.Equal(t, []contract.ItemRow{{Finding: "F-2", Node: "A", Status: contract.ItemBlocked, Reason: "why", Attempt: 2}}, c.Items)
	require.Equal(t, contract.ItemResolved, status(t, f, "F-1").Status)
	require.Equal(t, contract.NodeBlocked, c.State, "no commit of opening 2 is on the truth")
}

func TestWorkerNeverChangesATerminalItem(t *testing.T) {
	t.Parallel()
	u := with(node("A", "a/**"), func(u *plan.Unit) { u.Findings = []string{"F-1", "F-2"} })
	f := NewFrontier([]plan.Unit{u}, FrontierOptions{})
	admitted(f, 1)
	ends(t, f, "A", contract.NodePartial, "F-1=blocked", "F-2=needs_clarification")
	admitted(f, 1)
	_, err := f.Answer("F-2", AnswerReject, "not ours")
	require.NoError(t, err)
	ends(t, f, "A", contract.NodeLanded, "F-1=resolved", "F-2=resolved")
	require.Equal(t, contract.ItemDeemedInappropriate, status(t, f, "F-2").Status)
	require.Equal(t, contract.NodeLanded, rowOf(t, f, "A").State)
}

func TestStaleAndRepeatedReportsAreIgnoredAndSaid(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a/**")}, FrontierOptions{})
	report := contract.Settlement{Node: "A", Opening: 1, State: contract.NodeLanded, NextAttempt: 2}
	require.Contains(t, f.Settle(report, epoch).Ignored, "not running")
	admitted(f, 1)
	require.Empty(t, f.Settle(report, epoch).Ignored)
	require.Equal(t, contract.ItemResolved, status(t, f, "F-A").Status)
	require.Contains(t, f.Settle(report, epoch).Ignored, "taken before")
	require.Empty(t, f.Reopen("A", "culprit", true, "gate is red").Ignored)
	require.Contains(t, f.Settle(report, epoch).Ignored, "opening 1")
	require.Equal(t, contract.Charged{Work: 1}, admission(t, f, "A").Charged)
	require.Contains(t, f.Strand(contract.Stranding{Node: "A", Opening: 2, NextAttempt: 1}, epoch).Ignored, "before attempt 2")
	require.Contains(t, f.Settle(contract.Settlement{Node: "nobody"}, epoch).Ignored, "not in this run")
	require.Contains(t, f.Reopen("A", "again", false, "").Ignored, "running")
	require.Contains(t, f.Reopen("nobody", "again", false, "").Ignored, "not in this run")
}

func TestStrandedNodeFreesItsScopeAndComesBackInFront(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a/**"), node("B", "a/b.go"), with(node("C", "c/**"), func(u *plan.Unit) { u.Severity = 0 })}, FrontierOptions{})
	require.Equal(t, []string{"C", "A"}, admitted(f, 2))
	at := epoch.Add(time.Minute)
	kept := &contract.Kept{Attempt: 1, Host: "h"}
	c := f.Strand(contract.Stranding{
		Node: "A", Opening: 1, Cause: contract.StrandQuotaPaused, NotBefore: &at, NextAttempt: 2, Kept: kept,
		Refused: []string{"small"}, FirstPool: "big", Limited: []contract.Streak{{Pool: "big", Count: 1}}, Salvage: "refs/s",
		Attempts: []contract.AttemptResult{{Node: "A", Opening: 1, Attempt: 1, Outcome: contract.OutcomeRateLimited}},
	}, epoch)
	require.Equal(t, contract.NodeStranded, c.State)
	require.False(t, rowOf(t, f, "A").Attempts[0].Charged)
	require.Equal(t, []string{"B"}, admitted(f, 9), "its scope is free")
	require.Empty(t, f.Admissions(at.Add(-1), 9))
	ends(t, f, "B", contract.NodeLanded, "F-B=resolved")
	given := f.Admissions(at, 9)
	require.Len(t, given, 1)
	require.Equal(t, contract.Admission{
		Node: "A", Opening: 1, NextAttempt: 2, Tier: "standard", Kept: kept, Refused: []string{"small"}, FirstPool: "big",
		Limited: []contract.Streak{{Pool: "big", Count: 1}}, Salvage: "refs/s",
	}, given[0].Admission)
}

func TestNodeThatComesBackAgainAndAgainOvertakesNoMoreThanOthers(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{with(node("A", "a/**"), func(u *plan.Unit) { u.Severity = 0 }), node("B", "a/b.go")}, FrontierOptions{})
	for range MaxOvertaken + 1 {
		require.Equal(t, []string{"A"}, admitted(f, 9))
		require.Empty(t, f.Strand(contract.Stranding{Node: "A", Opening: 1, Cause: contract.StrandHeld, NextAttempt: 1}, epoch).Ignored)
		f.Rearm(contract.StrandHeld)
	}
	require.Equal(t, []string{"B"}, admitted(f, 9))
}

func TestRearmTakesUpTheNamedCausesOnly(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), node("B", "b"), node("C", "c")}, FrontierOptions{})
	admitted(f, 9)
	for id, cause := range map[string]contract.StrandCause{"A": contract.StrandHeld, "B": contract.StrandNoCapablePool, "C": contract.StrandEmptyPool} {
		f.Strand(contract.Stranding{Node: id, Opening: 1, Cause: cause, NextAttempt: 1}, epoch)
	}
	require.Empty(t, admitted(f, 9))
	require.Equal(t, []string{"A", "B"}, f.Rearm(contract.StrandHeld, contract.StrandNoCapablePool))
	require.Equal(t, []string{"A", "B"}, admitted(f, 9))
	given := f.BlockStranded(contract.StrandEmptyPool)
	require.Len(t, given, 1)
	require.Equal(t, contract.NodeBlocked, rowOf(t, f, "C").State)
	require.Equal(t, contract.ItemBlocked, status(t, f, "F-C").Status)
}

func TestRowsProgressAndPages(t *testing.T) {
	t.Parallel()
	f := NewFrontier([]plan.Unit{node("A", "a"), with(node("B", "b"), func(u *plan.Unit) { u.Depth = 4 }), node("C", "c", "A")}, FrontierOptions{})
	admitted(f, 9)
	p := f.Progress()
	require.Equal(t, map[string]int{"total": 3, "running": 2, "pending": 1}, p.NodeMap())
	require.Equal(t, map[string]int{"pending": 3}, p.ItemMap())
	require.Equal(t, 4, p.Level)
	require.Len(t, p.Nodes, len(nodeStates))
	require.Equal(t, "B", f.Nodes(1, 1)[0].ID)
	require.Len(t, f.Nodes(1, 0), 2)
	require.Empty(t, f.Nodes(9, 5))
	view, ok := f.Explain("C", epoch)
	require.True(t, ok)
	require.Equal(t, []string{"dependency A is running"}, view.Waits)
	require.Equal(t, []int{2, 1, 0}, []int{f.OpenAt(0), f.OpenAt(4), f.OpenAt(1)})
	_, ok = f.Explain("nobody", epoch)
	require.False(t, ok)
	require.Error(t, json.Unmarshal([]byte(`{"units":[{"id":"A","f":["x"],"l":0,"t":"","s":0}],"nodes":[],"items":[]}`), &Frontier{}))
}
