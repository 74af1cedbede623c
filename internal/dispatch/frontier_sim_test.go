package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// simScopes overlap in many ways, from nothing to everything.
var simScopes = [][]string{
	{"a/**"}, {"a/x.go"}, {"a/y.go"}, {"b/**"}, {"b/c/*.go"}, {"a/x.go", "b/z.go"}, {"**/x.go"},
	{"d/**"}, {"e/**"}, {"f/g.go"}, {"{d,e}/x.go"}, nil,
}

// drawUnits draws a valid plan: acyclic, dependencies never on a higher phase.
func drawUnits(t *rapid.T) []plan.Unit {
	n := rapid.IntRange(1, 24).Draw(t, "nodes")
	units := make([]plan.Unit, n)
	finding := 0
	for i := range units {
		u := plan.Unit{
			ID: fmt.Sprintf("N-%02d", i), Tier: plan.TierStandard,
			Severity:     rapid.IntRange(0, 4).Draw(t, "severity"),
			Write:        rapid.SampledFrom(simScopes).Draw(t, "scope"),
			SharedAppend: rapid.IntRange(0, 4).Draw(t, "shared") == 0,
			Phase:        rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "phase"),
			Files:        []string{rapid.SampledFrom([]string{"a", "b", "b/c", "", "f"}).Draw(t, "folder")},
		}
		for range rapid.IntRange(1, 3).Draw(t, "findings") {
			u.Findings = append(u.Findings, fmt.Sprintf("F-%03d", finding))
			finding++
		}
		for d := range i {
			if units[d].Phase <= u.Phase && rapid.IntRange(0, n).Draw(t, "edge") == 0 {
				u.DependsOn = append(u.DependsOn, units[d].ID)
				u.Depth = max(u.Depth, units[d].Depth+1)
			}
		}
		units[i] = u
	}
	return units
}

// simulation is a run over simulated drives, with a model of its own of what must hold.
type simulation struct {
	t       *rapid.T
	f       *Frontier
	twin    *Frontier // marshalled and read back at random moments
	units   map[string]plan.Unit
	running map[string]contract.Admission
	now     time.Time
	round   int
	since   map[string]int // round in which a node was first seen eligible
	passed  map[string]int // later conflicting nodes that went before it
	seq     int
}

func newSimulation(t *rapid.T, units []plan.Unit) *simulation {
	s := &simulation{
		t: t, f: NewFrontier(units, FrontierOptions{}), twin: NewFrontier(units, FrontierOptions{}),
		units: map[string]plan.Unit{}, running: map[string]contract.Admission{}, now: epoch,
		since: map[string]int{}, passed: map[string]int{},
	}
	for _, u := range units {
		s.units[u.ID] = u
	}
	return s
}

// both does the same to the frontier and its round-tripped twin, and compares.
func both[T any](s *simulation, do func(*Frontier) T) T {
	if rapid.IntRange(0, 3).Draw(s.t, "carry") == 0 {
		carried := asJSON(s.t, s.twin)
		require.Equal(s.t, asJSON(s.t, s.f), carried, "a round trip changed the state")
		s.twin = &Frontier{}
		require.NoError(s.t, json.Unmarshal([]byte(carried), s.twin))
	}
	got, mirrored := do(s.f), do(s.twin)
	require.Equal(s.t, asJSON(s.t, got), asJSON(s.t, mirrored), "a round trip changed a decision")
	return got
}

func asJSON(t require.TestingT, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

func conflict(a, b plan.Unit) bool {
	return plan.CompileScope(a.Write, false).Conflicts(plan.CompileScope(b.Write, false), a.SharedAppend && b.SharedAppend)
}

// eligible computes anew, from rows alone, which nodes may run but for scopes.
func (s *simulation) eligible() []string {
	complete := map[string]bool{}
	for _, it := range s.f.Items() {
		if was, ok := complete[it.Node]; !ok || was {
			complete[it.Node] = it.Status.VerifiedComplete()
		}
	}
	phase := s.f.Progress().Phase
	var ids []string
	for _, row := range s.f.Nodes(0, 0) {
		u := s.units[row.ID]
		due := row.State == contract.NodePending || row.State == contract.NodeStranded && row.NotBefore != nil && !s.now.Before(*row.NotBefore)
		if due && u.Phase <= phase && !slices.ContainsFunc(u.DependsOn, func(d string) bool { return !complete[d] }) {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// admit asks for admissions and checks every rule about them.
func (s *simulation) admit(free int) int {
	s.round++
	may := s.eligible()
	for id := range s.since {
		if !slices.Contains(may, id) {
			delete(s.since, id)
			delete(s.passed, id)
		}
	}
	for _, id := range may {
		if _, ok := s.since[id]; !ok {
			s.since[id] = s.round
		}
	}
	idle := len(s.running) == 0
	given := both(s, func(f *Frontier) []LevelAdmission { return f.Admissions(s.now, free) })
	require.LessOrEqual(s.t, len(given), free)
	for _, a := range given {
		id := a.Admission.Node
		u := s.units[id]
		require.Contains(s.t, may, id, "not eligible")
		require.NotContains(s.t, s.running, id, "admitted twice")
		require.Equal(s.t, u.Depth, a.Depth)
		for other := range s.running {
			require.False(s.t, conflict(u, s.units[other]), "%s runs beside %s", id, other)
		}
		since := s.since[id]
		delete(s.since, id)
		delete(s.passed, id)
		for other, waits := range s.since {
			if waits < since && conflict(u, s.units[other]) {
				s.passed[other]++
				require.LessOrEqual(s.t, s.passed[other], MaxOvertaken, "%s overtaken by %s", other, id)
			}
		}
		s.running[id] = a.Admission
	}
	if idle && free > 0 && len(may) > 0 {
		require.NotEmpty(s.t, given, "nothing runs and %v may, but nothing was admitted", may)
	}
	require.ElementsMatch(s.t, keys(s.running), s.f.Running())
	return len(given)
}

func keys[V any](m map[string]V) []string {
	var ks []string
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func (s *simulation) findings(a contract.Admission) []string {
	if len(a.Findings) > 0 {
		return a.Findings
	}
	return s.units[a.Node].Findings
}

// attempt draws how an attempt ended.
func (s *simulation) attempt(a contract.Admission, outcome contract.Outcome) contract.AttemptResult {
	s.seq++
	r := contract.AttemptResult{
		Node: a.Node, Opening: a.Opening, Attempt: a.NextAttempt, Pool: "p", Outcome: outcome,
		StartedAt: s.now, EndedAt: s.now.Add(time.Second), Paths: []string{s.units[a.Node].Files[0] + "/f.go"},
	}
	return r
}

// settle ends a running node; calm settles only land or block.
func (s *simulation) settle(id string, calm bool) {
	a := s.running[id]
	kinds := []string{"landed", "error", "partial", "none", "no_change"}
	if calm {
		kinds = []string{"landed", "error"}
	}
	st := contract.Settlement{Node: id, Opening: a.Opening, NextAttempt: a.NextAttempt + 1, Charged: a.Charged}
	r := s.attempt(a, contract.OutcomeSuccess)
	item := func(statuses ...contract.ItemStatus) {
		for _, finding := range s.findings(a) {
			status := rapid.SampledFrom(statuses).Draw(s.t, "item")
			r.Items = append(r.Items, contract.ItemResult{
				Finding: finding, Status: status, Omitted: status == contract.ItemPending, Reason: "said", Question: "why?",
			})
		}
	}
	switch rapid.SampledFrom(kinds).Draw(s.t, "end") {
	case "landed":
		st.State, r.Commit = contract.NodeLanded, fmt.Sprintf("c%d", s.seq)
		item(contract.ItemResolved)
	case "no_change":
		st.State = contract.NodeNoChange
		item(contract.ItemResolvedNoChange)
	case "partial":
		st.State, r.Commit = contract.NodePartial, fmt.Sprintf("c%d", s.seq)
		item(contract.ItemResolved, contract.ItemBlocked, contract.ItemNeedsClarification, contract.ItemPending)
	case "none":
		st.State = contract.NodeBlocked
		item(contract.ItemBlocked, contract.ItemNeedsClarification, contract.ItemPending)
	case "error":
		st.State, st.Reason, r.Outcome, r.Cause = contract.NodeBlocked, "tests are red", contract.OutcomeError, contract.CauseWork
		st.Charged.Work++
	}
	r.State = st.State
	st.Attempts = []contract.AttemptResult{r}
	delete(s.running, id)
	c := both(s, func(f *Frontier) Changes { return f.Settle(st, s.now) })
	require.Empty(s.t, c.Ignored)
	before := asJSON(s.t, s.f)
	again := both(s, func(f *Frontier) Changes { return f.Settle(st, s.now) })
	require.NotEmpty(s.t, again.Ignored, "a repeated settlement was taken")
	require.Equal(s.t, before, asJSON(s.t, s.f))
}

func (s *simulation) strand(id string) {
	a := s.running[id]
	st := contract.Stranding{
		Node: id, Opening: a.Opening, Cause: rapid.SampledFrom(strandCauses[:]).Draw(s.t, "cause"), Reason: "stranded",
		NextAttempt: a.NextAttempt, Charged: a.Charged,
	}
	if st.Cause == contract.StrandQuotaPaused {
		at := s.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(s.t, "reset")) * time.Second)
		st.NotBefore = &at
		st.Attempts = []contract.AttemptResult{s.attempt(a, contract.OutcomeRateLimited)}
		st.NextAttempt++
	}
	delete(s.running, id)
	c := both(s, func(f *Frontier) Changes { return f.Strand(st, s.now) })
	require.Empty(s.t, c.Ignored)
	require.Equal(s.t, contract.NodeStranded, c.State)
	require.NotEmpty(s.t, both(s, func(f *Frontier) Changes { return f.Strand(st, s.now) }).Ignored)
}

// step does something that may happen in a run.
func (s *simulation) step() {
	running := keys(s.running)
	pick := func() string { return rapid.SampledFrom(running).Draw(s.t, "node") }
	switch k := rapid.IntRange(0, 13).Draw(s.t, "step"); {
	case k <= 4:
		s.admit(rapid.IntRange(0, 4).Draw(s.t, "free"))
	case k <= 7 && len(running) > 0:
		s.settle(pick(), false)
	case k == 8 && len(running) > 0:
		s.strand(pick())
	case k == 9:
		s.now = s.now.Add(time.Duration(rapid.IntRange(0, 60).Draw(s.t, "seconds")) * time.Second)
	case k == 10:
		cause := rapid.SampledFrom(strandCauses[:]).Draw(s.t, "rearm")
		both(s, func(f *Frontier) []string { return f.Rearm(cause) })
	case k == 11:
		both(s, (*Frontier).DeadEnds)
	case k == 12:
		s.answer()
	case k == 13:
		id := fmt.Sprintf("N-%02d", rapid.IntRange(0, len(s.units)-1).Draw(s.t, "reopen"))
		charge := rapid.Bool().Draw(s.t, "charge")
		both(s, func(f *Frontier) Changes { return f.Reopen(id, "culprit", charge, "tail") })
	}
}

func (s *simulation) answer() {
	items := s.f.Items()
	it := rapid.SampledFrom(items).Draw(s.t, "asked")
	type answered struct {
		C   Changes
		Err string
	}
	do := func(change func(*Frontier) (Changes, error)) {
		both(s, func(f *Frontier) answered {
			c, err := change(f)
			if err != nil {
				return answered{c, err.Error()}
			}
			return answered{C: c}
		})
	}
	if rapid.Bool().Draw(s.t, "triage") {
		action := rapid.SampledFrom([]string{TriageRetry, TriageIgnore}).Draw(s.t, "action")
		do(func(f *Frontier) (Changes, error) { return f.Triage(action, it.Finding) })
		return
	}
	kind := rapid.SampledFrom([]string{AnswerClarified, AnswerReject, AnswerDefer}).Draw(s.t, "kind")
	do(func(f *Frontier) (Changes, error) { return f.Answer(it.Finding, kind, "because") })
}

// finish drives the run to its end as a host does; it must come to one.
func (s *simulation) finish() {
	for range 40 * len(s.units) {
		if s.admit(3) > 0 || len(s.running) > 0 {
			s.settle(rapid.SampledFrom(keys(s.running)).Draw(s.t, "ends"), true)
			continue
		}
		terminal := both(s, (*Frontier).Waiting)
		hold, held := HoldFor(terminal)
		switch {
		case held && hold.Until != nil:
			require.Equal(s.t, TerminalWaiting, terminal.Kind)
			s.now = *hold.Until
		case len(both(s, func(f *Frontier) []string { return f.Rearm(strandCauses[:5]...) })) > 0:
		case len(both(s, func(f *Frontier) []Blocked {
			return f.BlockStranded(contract.StrandEmptyPool, contract.StrandEscalated)
		})) > 0:
		case len(both(s, (*Frontier).DeadEnds)) > 0:
		case s.deferQuestion():
		default:
			_, next, boundary := s.f.PhaseBoundary()
			if !boundary {
				s.ended(terminal)
				return
			}
			both(s, func(f *Frontier) int { f.OpenPhase(next); return next })
		}
	}
	require.Fail(s.t, "the run spins")
}

// deferQuestion answers one open question as an unattended run does.
func (s *simulation) deferQuestion() bool {
	for _, it := range s.f.Items() {
		if it.Status == contract.ItemNeedsClarification {
			both(s, func(f *Frontier) Changes {
				c, err := f.Answer(it.Finding, AnswerDefer, "")
				require.NoError(s.t, err)
				return c
			})
			return true
		}
	}
	return false
}

// ended checks that nothing is lost: what is not terminal is blocked or asked, with a reason.
func (s *simulation) ended(terminal Terminal) {
	open := false
	for _, it := range s.f.Items() {
		if it.Status.Terminal() {
			continue
		}
		open = true
		require.Contains(s.t, []contract.ItemStatus{contract.ItemBlocked, contract.ItemNeedsClarification}, it.Status, it.Finding)
		require.NotEmpty(s.t, it.Reason, it.Finding)
	}
	for _, row := range s.f.Nodes(0, 0) {
		require.NotContains(s.t, []contract.NodeState{contract.NodePending, contract.NodeRunning, contract.NodeStranded}, row.State, row.ID)
	}
	require.Equal(s.t, asJSON(s.t, s.f), asJSON(s.t, s.twin), "a round trip changed the state")
	require.Equal(s.t, open, terminal.Kind == TerminalAsking)
	require.Equal(s.t, !open, terminal.Kind == TerminalDone)
	both(s, func(f *Frontier) Changes { return f.Abandon("the run was halted") })
	for _, it := range s.f.Items() {
		require.True(s.t, it.Status.Terminal(), it.Finding)
	}
	require.Equal(s.t, TerminalDone, s.f.Waiting().Kind)
}

func TestFrontierKeepsItsRulesWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, drawUnits(t))
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			s.step()
		}
		s.finish()
	})
}
