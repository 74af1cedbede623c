package plan

// Overview is what `plan show` tells about a plan: what would run, in which
// order, and what would be left out.
type Overview struct {
	ID         string               `json:"id"`
	Goal       string               `json:"goal,omitempty"`
	Base       string               `json:"base,omitempty"`
	Levels     []OverviewLevel      `json:"levels"`
	Serialised Serialisation        `json:"serialised"`
	Findings   []DispositionCount   `json:"findings"`
	Dropped    []FindingDisposition `json:"dropped,omitempty"` // findings that will not be worked on
	Gate       OverviewGate         `json:"gate"`
	Tokens     int                  `json:"tokens"` // estimate for the first attempt of every node
	Warnings   Faults               `json:"warnings,omitempty"`
}

// OverviewLevel is the nodes of one dependency level.
type OverviewLevel struct {
	Depth int            `json:"depth"`
	Phase int            `json:"phase"`
	Nodes []OverviewNode `json:"nodes"`
}

// OverviewNode is a node as it would run.
type OverviewNode struct {
	ID           string    `json:"id"`
	Findings     []string  `json:"findings"`
	Severity     Severity  `json:"severity"` // of its worst finding
	Tier         Tier      `json:"tier"`
	Tokens       int       `json:"tokens"`
	Write        []string  `json:"write,omitempty"` // empty: alone in the run
	SharedAppend bool      `json:"shared_append,omitempty"`
	DependsOn    []string  `json:"depends_on,omitempty"`
	Verify       []Command `json:"verify,omitempty"`
}

// OverviewGate is the gate as it would run.
type OverviewGate struct {
	Source   string    `json:"source"` // plan | discovered | disabled | unknown (without a repository)
	Commands []Command `json:"commands,omitempty"`
	Baseline Baseline  `json:"baseline"`
	OnRed    OnRed     `json:"on_red"`
}

// Where gate commands come from.
const (
	GateFromPlan   = "plan"
	GateDiscovered = "discovered"
	GateDisabled   = "disabled"
	GateUnknown    = "unknown"
)

// overviewPairs bounds the serialised pairs that are listed one by one.
const overviewPairs = 50

// Show gathers the overview of a valid plan. facts may be nil without a
// repository; warnings are what Parse and ValidateAgainst found.
func Show(p *Plan, facts *Facts, warnings Faults) Overview {
	s := Select(p, facts)
	nodes := SelectedNodes(p, s)
	o := Overview{
		ID: p.ID, Goal: p.Goal, Base: p.Base, Findings: s.Counts(), Gate: gateOverview(p, facts),
		Serialised: Serialised(nodes, facts != nil && facts.FoldCase, overviewPairs), Warnings: warnings.Warnings(),
	}
	for _, f := range s.Findings {
		if f.Disposition != DispositionPlanned {
			o.Dropped = append(o.Dropped, f)
		}
	}
	byID := findingsByID(p)
	depths, _ := Depths(nodes)
	for i, n := range nodes {
		for len(o.Levels) <= depths[i] {
			o.Levels = append(o.Levels, OverviewLevel{Depth: len(o.Levels)})
		}
		findings := pick(byID, n.Findings)
		shown := OverviewNode{
			ID: n.ID, Findings: n.Findings, Severity: severityOf(worst(findings)), Tier: n.Tier,
			Tokens: EstimateTokens(n, findings, facts.sizes()), Write: n.Write, SharedAppend: n.SharedAppend,
			DependsOn: n.DependsOn, Verify: n.Verify,
		}
		level := &o.Levels[depths[i]]
		level.Phase = n.Phase
		level.Nodes = append(level.Nodes, shown)
		o.Tokens += shown.Tokens
	}
	return o
}

func (f *Facts) sizes() map[string]int64 {
	if f == nil {
		return nil
	}
	return f.Sizes
}

func severityOf(rank int) Severity {
	all := Severity("").Values()
	if rank >= len(all) {
		return ""
	}
	return Severity(all[rank])
}

func gateOverview(p *Plan, facts *Facts) OverviewGate {
	g := OverviewGate{Commands: p.Gate.Commands, Baseline: p.Gate.Baseline, OnRed: p.Gate.OnRed}
	switch {
	case p.Gate.Disabled:
		g.Source = GateDisabled
	case len(p.Gate.Commands) > 0:
		g.Source = GateFromPlan
	case facts == nil:
		g.Source = GateUnknown
	default:
		g.Source, g.Commands = GateDiscovered, facts.Gate
	}
	return g
}
