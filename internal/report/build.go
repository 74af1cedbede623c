package report

import (
	"cmp"
	"math"
	"path"
	"slices"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

// Facts is what a run knows about itself. Zero values are unknown or empty.
type Facts struct {
	Run        string
	Repository string
	Plan       plan.Plan // as stored: with its dropped findings
	BaseCommit string
	HeadCommit string
	Status     contract.RunStatus
	Reason     string
	StartedAt  time.Time
	ClosedAt   *time.Time

	Items        []contract.ItemRow
	Evidence     []ItemEvidence
	Nodes        []contract.NodeRow
	Dispositions []contract.Disposition // of findings that were not planned; the others are planned
	Baseline     *Gate
	Gates        []Gate // oldest first
	Friction     []contract.Friction
	Holds        []contract.Hold
	Refs         []string
	Protected    []ProtectedPath
	Publication  *Publication
	Notes        []string
}

// ItemEvidence is what was shown for a finding.
type ItemEvidence struct {
	Finding  string
	Evidence []Evidence
}

// Build derives the model of a run. It does not change the facts.
func Build(f Facts) Model {
	m := Model{
		Version: Version, Run: f.Run, PlanID: f.Plan.ID, Goal: f.Plan.Goal,
		Repository: f.Repository, Branch: contract.RunBranch(f.Run),
		BaseCommit: f.BaseCommit, HeadCommit: f.HeadCommit,
		StartedAt: f.StartedAt.UTC(), ClosedAt: utc(f.ClosedAt),
		Baseline: f.Baseline, Accepted: f.Plan.Gate.Baseline == plan.BaselineAccept, Gates: slices.Clone(f.Gates),
		Friction: slices.Clone(f.Friction), Holds: slices.Clone(f.Holds),
		Refs: slices.Sorted(slices.Values(f.Refs)), Protected: slices.Clone(f.Protected),
		Publication: f.Publication, Notes: slices.Clone(f.Notes),
	}
	slices.SortStableFunc(m.Protected, func(a, b ProtectedPath) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Node, b.Node))
	})
	m.Nodes = buildNodes(f)
	m.NoChangeUnverified = unverifiedNoChange(f)
	m.Items = buildItems(f, m.NoChangeUnverified)
	m.Dispositions = buildDispositions(f)
	m.ItemCounts, m.NodeCounts = countItems(m.Items), countNodes(m.Nodes)
	m.Residual = residual(f)
	for _, n := range m.Nodes {
		for _, a := range n.Attempts {
			if a.Salvage != "" {
				m.Salvage = append(m.Salvage, Salvage{Ref: a.Salvage, Node: n.ID, Attempt: a.K})
			}
		}
		if landedUnverified(n) {
			m.Unverified = append(m.Unverified, n.ID)
		}
	}
	m.Usage, m.Pools = usage(m.Nodes)
	m.Verdict = verdict(f, m)
	m.Next = next(m)
	m.fill()
	return m
}

// fill replaces nil lists, which JSON would write as null.
func (m *Model) fill() {
	fillList(&m.Next)
	fillList(&m.Items)
	fillList(&m.ItemCounts)
	fillList(&m.Dispositions)
	fillList(&m.Nodes)
	fillList(&m.NodeCounts)
	fillList(&m.Gates)
	fillList(&m.Residual)
	fillList(&m.Friction)
	fillList(&m.Salvage)
	fillList(&m.Refs)
	fillList(&m.Protected)
	fillList(&m.Unverified)
	fillList(&m.NoChangeUnverified)
	fillList(&m.Pools)
	m.Nodes, m.Pools = slices.Clone(m.Nodes), slices.Clone(m.Pools) // the model may share them with others
	for i := range m.Nodes {
		fillList(&m.Nodes[i].Findings)
		fillList(&m.Nodes[i].Attempts)
	}
	for i := range m.Pools {
		fillList(&m.Pools[i].Outcomes)
	}
}

func fillList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

func buildNodes(f Facts) []Node {
	findings := map[string][]string{}
	for _, n := range f.Plan.Nodes {
		findings[n.ID] = n.Findings
	}
	nodes := make([]Node, len(f.Nodes))
	for i, row := range f.Nodes {
		nodes[i] = Node{NodeRow: row, Findings: slices.Clone(findings[row.ID])}
		for _, a := range row.Attempts {
			nodes[i].Usage.add(a)
		}
	}
	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.ID, b.ID)) })
	return nodes
}

// landedUnverified reports whether the node's last landing was not verified by any command.
func landedUnverified(n Node) bool {
	if n.State != contract.NodeLanded && n.State != contract.NodePartial {
		return false
	}
	for _, a := range slices.Backward(n.Attempts) {
		if a.Commit != "" {
			return a.Unverified
		}
	}
	return false
}

// unverifiedNoChange reads the findings out of the friction, whose discriminator ends in the finding's id.
func unverifiedNoChange(f Facts) []string {
	known := map[string]bool{}
	for _, i := range f.Items {
		known[i.Finding] = i.Status == contract.ItemResolvedNoChange
	}
	var out []string
	for _, fr := range f.Friction {
		if id := path.Base(fr.Discriminator); fr.Type == contract.FrictionNoChangeUnverified && known[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func buildItems(f Facts, unverified []string) []Item {
	findings := map[string]plan.Finding{}
	for _, x := range f.Plan.Findings {
		findings[x.ID] = x
	}
	evidence := map[string][]Evidence{}
	for _, e := range f.Evidence {
		evidence[e.Finding] = append(evidence[e.Finding], e.Evidence...)
	}
	items := make([]Item, len(f.Items))
	for i, row := range f.Items {
		x := findings[row.Finding]
		items[i] = Item{
			Finding: row.Finding, Title: x.Title, Severity: x.Severity, Lens: x.Lens, Summary: x.Summary, Files: x.Files,
			Node: row.Node, Status: row.Status, Reason: row.Reason, Question: row.Question, Answer: row.Answer, Attempt: row.Attempt,
			NoChangeUnverified: slices.Contains(unverified, row.Finding), Evidence: evidence[row.Finding],
		}
		if row.Status == contract.ItemResolved {
			items[i].Commit = commitOf(f.Nodes, row.Node, row.Attempt)
		}
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)), cmp.Compare(a.Finding, b.Finding))
	})
	return items
}

// commitOf is the commit of the attempt that resolved an item, or of the node's last landing.
func commitOf(nodes []contract.NodeRow, node string, attempt int) string {
	last := ""
	for _, n := range nodes {
		if n.ID != node {
			continue
		}
		for _, a := range n.Attempts {
			if a.Commit == "" {
				continue
			}
			if a.K == attempt {
				return a.Commit
			}
			last = a.Commit
		}
	}
	return last
}

var severities = []plan.Severity{plan.SeverityCritical, plan.SeverityHigh, plan.SeverityMedium, plan.SeverityLow, plan.SeverityInfo}

// severityRank orders severities, worst first; unknown ones come last.
func severityRank(s plan.Severity) int {
	if i := slices.Index(severities, s); i >= 0 {
		return i
	}
	return len(severities)
}

func buildDispositions(f Facts) []Disposition {
	dropped := map[string]contract.Disposition{}
	for _, d := range f.Dispositions {
		if _, seen := dropped[d.Finding]; !seen {
			dropped[d.Finding] = d
		}
	}
	var out []Disposition
	for _, x := range f.Plan.Findings {
		d, ok := dropped[x.ID]
		if !ok {
			d = contract.Disposition{Finding: x.ID, State: Planned}
		}
		delete(dropped, x.ID)
		out = append(out, Disposition{Disposition: d, Title: x.Title, Severity: x.Severity, Lens: x.Lens, Files: x.Files})
	}
	for _, d := range f.Dispositions { // of findings that an importer folded before the plan was written
		if _, left := dropped[d.Finding]; left {
			delete(dropped, d.Finding)
			out = append(out, Disposition{Disposition: d})
		}
	}
	return out
}

var itemOrder = []contract.ItemStatus{
	contract.ItemPending, contract.ItemResolved, contract.ItemResolvedNoChange, contract.ItemBlocked,
	contract.ItemNeedsClarification, contract.ItemIgnored, contract.ItemDeemedInappropriate, contract.ItemAbandoned,
}

var nodeOrder = []contract.NodeState{
	contract.NodePending, contract.NodeRunning, contract.NodeLanded, contract.NodePartial,
	contract.NodeNoChange, contract.NodeBlocked, contract.NodeStranded, contract.NodeSkipped,
}

func countItems(items []Item) []contract.ItemCount {
	var out []contract.ItemCount
	for _, status := range itemOrder {
		if n := count(items, func(i Item) bool { return i.Status == status }); n > 0 {
			out = append(out, contract.ItemCount{Status: status, N: n})
		}
	}
	return out
}

func countNodes(nodes []Node) []contract.NodeCount {
	var out []contract.NodeCount
	for _, state := range nodeOrder {
		if n := count(nodes, func(x Node) bool { return x.State == state }); n > 0 {
			out = append(out, contract.NodeCount{State: state, N: n})
		}
	}
	return out
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// residual is what the last gate did not cover; before the first gate, what the baseline did not.
func residual(f Facts) []string {
	var out []string
	switch {
	case len(f.Gates) > 0:
		out = slices.Clone(f.Gates[len(f.Gates)-1].Residual)
	case f.Baseline != nil:
		out = slices.Clone(f.Baseline.Residual)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (u *Usage) add(a contract.AttemptRow) {
	u.Attempts++
	u.Seconds += a.Seconds
	u.InputTokens += a.Usage.InputTokens
	u.OutputTokens += a.Usage.OutputTokens
	u.USD = math.Round(u.USD*1e6+float64(a.Usage.USDMicros)) / 1e6
	if !a.Usage.Known {
		u.Uncertain++
	}
}

func usage(nodes []Node) (Usage, []PoolUsage) {
	var total Usage
	var pools []PoolUsage
	for _, n := range nodes {
		for _, a := range n.Attempts {
			total.add(a)
			i, found := slices.BinarySearchFunc(pools, a.Pool, func(p PoolUsage, id string) int { return cmp.Compare(p.Pool, id) })
			if !found {
				pools = slices.Insert(pools, i, PoolUsage{Pool: a.Pool})
			}
			pools[i].add(a)
			pools[i].count(a.Outcome)
		}
	}
	return total, pools
}

func (p *PoolUsage) count(o contract.Outcome) {
	i, found := slices.BinarySearchFunc(p.Outcomes, o, func(c OutcomeCount, o contract.Outcome) int { return cmp.Compare(c.Outcome, o) })
	if !found {
		p.Outcomes = slices.Insert(p.Outcomes, i, OutcomeCount{Outcome: o})
	}
	p.Outcomes[i].N++
}
