package plan

import (
	"fmt"

	"mendflow/internal/strictyaml"
)

// Parse reads a plan file, YAML or JSON, applies the defaults and reports all
// faults at once. The plan is nil when there are errors; warnings leave it valid.
// name is the file's name: it stands in the faults and gives the default id.
func Parse(name string, data []byte) (*Plan, Faults) {
	root, found := strictyaml.Parse(data)
	report := NewFaultReport(name, root)
	report.AddFound(found)
	if root == nil {
		return nil, report.Faults()
	}
	file := defaults()
	report.AddFound(strictyaml.Decode(root, &file))
	if root.Kind != strictyaml.Map {
		return nil, report.Faults()
	}
	p := file.plan()
	if id := root.Get("id"); id == nil || id.Kind == strictyaml.Null {
		if p.ID = idFromFile(name); p.ID == "" {
			report.Add("id", "no id can be made from the file's name", "write an id, like tls-2026-11")
		}
	}
	// Nodes are derived only when the key is left out: an empty list is a fault.
	derive := root.Get("nodes") == nil || root.Get("nodes").Kind == strictyaml.Null
	if !derive && len(p.Nodes) == 0 {
		report.Add("nodes", "the list is empty", "leave nodes out for one node per finding")
	}
	checkPlan(p, derive, report)
	faults := report.Faults()
	if faults.Err() != nil {
		return nil, faults
	}
	return p, faults
}

// checkPlan normalises the plan and checks every rule that needs no repository.
func checkPlan(p *Plan, derive bool, r *FaultReport) {
	if p.Version != Version {
		r.Add("version", fmt.Sprintf("version %d is not supported", p.Version), fmt.Sprintf("write version: %d", Version))
	}
	if err := CheckPlanID(p.ID); err != nil {
		r.Add("id", err.Error(), "write an id like tls-2026-11")
	}
	findings := checkFindings(p, r)
	if derive {
		p.Nodes = nodePerFinding(p.Findings)
	}
	checkSettings(p, r)
	checkGlobs(p.Intent.Excluded, "intent.excluded", r)
	checkGlobs(p.Intent.MustNotTouch, "intent.must_not_touch", r)
	nodes := checkNodes(p, findings, derive, r)
	checkAssignment(p, derive, r)
	checkEdges(p, nodes, r)
	if r.Broken("findings") || r.Broken("nodes") || r.Broken("intent") {
		return // what follows needs findings, nodes and edges that fit together
	}
	selection := Select(p, nil)
	deriveTiers(p, selection)
	checkSelection(p, selection, r)
	warnVerification(p, selection, r)
}
