package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// view answers the status query.
func (r *remediation) view() contract.RunView {
	v := contract.RunView{
		Run: r.in.Run, WorkflowID: contract.RemediationID(r.in.Run), PlanID: r.opened.PlanID,
		Status: r.status, Reason: r.reason, Holds: r.holdRows(),
		Repository: r.in.Repository, Branch: contract.RunBranch(r.in.Run),
		BaseCommit: r.opened.BaseCommit, HeadCommit: r.opened.Truth, // moved on with every landing
		Pools: slices.Clone(r.pools.states), Usage: r.usage, Budget: r.budgetView(), Friction: r.friction.Entries(), Unproven: r.unproven(),
		Events: slices.Clone(r.events), StartedAt: r.start,
		Nodes: map[string]int{"total": 0}, Items: map[string]int{},
	}
	if r.stage == stageDone {
		v.ClosedAt = r.closed
	}
	if r.front != nil {
		p := r.front.Progress()
		v.Nodes, v.Items, v.Level = p.NodeMap(), p.ItemMap(), p.Level
	}
	for _, d := range r.drives {
		v.Drives = append(v.Drives, d.Number)
	}
	switch {
	case r.gate != nil:
		v.Gate = contract.GateView{Kind: r.gate.Kind, Verdict: r.gate.Verdict, Detail: r.gate.Detail, Attributions: r.gates.attributions()}
	case r.stage == stageGate && r.work != nil:
		v.Gate = contract.GateView{Kind: "executed", Verdict: "running"}
	}
	if r.report != nil {
		v.Report, v.HeadCommit, v.Refs = &r.report.Markdown, r.report.Head, r.report.Refs
	}
	v.Publication = r.publicationView()
	return v
}

func (r *remediation) holdRows() []contract.Hold {
	rows := r.holds.List(r.in.Run)
	if r.leaseBinds() {
		if i := slices.IndexFunc(rows, func(h contract.Hold) bool { return h.Kind == contract.HoldBudget }); i >= 0 {
			rows[i].Reason = "what the run was leased of the deployment's budget is used up"
			rows[i].Lift = "starter scheduler budget --tokens N"
		}
	}
	return rows
}

// show brings the Web UI up to date: current details at every turn (they cost
// nothing), search attributes when they changed.
func (r *remediation) show(ctx workflow.Context) {
	r.notify(ctx)
	workflow.SetCurrentDetails(ctx, r.details())
	r.shown.upsert(ctx, r)
}

// details is the run's page in the Web UI.
func (r *remediation) details() string {
	v := r.view()
	var b strings.Builder
	fmt.Fprintf(&b, "## %s: %s\n\n", v.Run, v.Status)
	if v.Reason != "" {
		fmt.Fprintf(&b, "%s\n\n", v.Reason)
	}
	for _, h := range v.Holds {
		fmt.Fprintf(&b, "**Held (%s)** since %s", h.Kind, h.Since.UTC().Format(time.RFC3339))
		if h.By != "" {
			fmt.Fprintf(&b, " by %s", h.By)
		}
		fmt.Fprintf(&b, ": %s", h.Reason)
		if h.Until != nil {
			fmt.Fprintf(&b, ", until %s", h.Until.UTC().Format(time.RFC3339))
		}
		if h.Lift != "" {
			fmt.Fprintf(&b, ". Lift it with `%s`", h.Lift)
		}
		b.WriteString("\n\n")
	}
	for _, u := range v.Unproven {
		fmt.Fprintf(&b, "**Pausing**: %s. Give it up with `starter quiesce %s --force`\n\n", unprovenText(u), v.Run)
	}
	fmt.Fprintf(&b, "| | |\n|---|---|\n| repository | `%s` |\n| branch | `%s` |\n| base | `%s` |\n", v.Repository, v.Branch, shortCommit(v.BaseCommit))
	gate := "not run yet"
	if v.Gate.Kind != "" {
		gate = v.Gate.Kind + " " + v.Gate.Verdict
	}
	fmt.Fprintf(&b, "| gate | %s |\n", gate)
	for _, a := range v.Gate.Attributions {
		fmt.Fprintf(&b, "| %s | %s |\n", a.Verdict, strings.ReplaceAll(a.Detail, "|", "\\|"))
	}
	if p := v.Publication; p != nil {
		fmt.Fprintf(&b, "| %s | %s %s %s |\n", p.Action, p.State, p.URL, strings.ReplaceAll(p.Detail, "|", "\\|"))
	}
	b.WriteString("\n")
	if r.front != nil {
		p := r.front.Progress()
		b.WriteString("| nodes | |\n|---|---|\n")
		fmt.Fprintf(&b, "| total | %d |\n", p.Total)
		for _, c := range p.Nodes {
			if c.N > 0 {
				fmt.Fprintf(&b, "| %s | %d |\n", c.State, c.N)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("| pool | state | slots | until |\n|---|---|---|---|\n")
	for _, p := range v.Pools {
		until := ""
		if p.Until != nil {
			until = p.Until.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", p.ID, p.State, p.Max, until)
	}
	if running := r.runningNodes(); running != "" {
		fmt.Fprintf(&b, "\nWith drives: %s\n", running)
	}
	b.WriteString("\n**Last events**\n\n")
	for _, e := range slices.Backward(v.Events) {
		fmt.Fprintf(&b, "- %s %s\n", e.At.UTC().Format(time.TimeOnly), strings.ReplaceAll(e.Text, "|", "\\|"))
	}
	const limit = 18_000 // the server refuses more than 20 000 bytes
	return clip(b.String(), limit)
}

// runningNodes names what the drives have, bounded.
func (r *remediation) runningNodes() string {
	var ids []string
	for _, d := range r.drives {
		for _, a := range d.Nodes {
			ids = append(ids, "`"+a.Node+"`")
		}
	}
	if n := len(ids); n > 30 {
		ids = append(ids[:30], fmt.Sprintf("and %d more", n-30))
	}
	return strings.Join(ids, ", ")
}

// setStatus says where the run stands; its scheduler hears of every step.
func (r *remediation) setStatus(status contract.RunStatus) {
	if r.scheduling != nil && status != r.status {
		if r.verdict != "" && run.CheckMove(r.status, status) != nil {
			return // a hold that is still there does not pause a run that closes
		}
		r.scheduling.Path = append(r.scheduling.Path, status)
	}
	r.status = status
}

// attributes remembers what the server was last told, since every upsert is an event.
type attributes struct {
	told   bool
	status contract.RunStatus
	holds  string
	reset  time.Time
}

func (a *attributes) upsert(ctx workflow.Context, r *remediation) {
	var kinds []string
	var reset time.Time
	for _, h := range r.holds.List(r.in.Run) {
		kinds = append(kinds, string(h.Kind))
		if h.Until != nil && (reset.IsZero() || h.Until.Before(reset)) {
			reset = *h.Until
		}
	}
	holds := strings.Join(kinds, ",")
	if len(r.opened.Attributes) == 0 || a.told && a.status == r.status && a.holds == holds && a.reset.Equal(reset) {
		return
	}
	has := func(name string) bool { return slices.Contains(r.opened.Attributes, name) }
	var updates []temporal.SearchAttributeUpdate
	if !a.told {
		if has(contract.AttributeRun) {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(contract.AttributeRun).ValueSet(r.in.Run))
		}
		if has(contract.AttributeRepository) {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(contract.AttributeRepository).ValueSet(clip(r.in.Repository, 200)))
		}
		if has(contract.AttributePool) {
			updates = append(updates, temporal.NewSearchAttributeKeyKeywordList(contract.AttributePool).ValueSet(r.pools.ids()))
		}
	}
	if has(contract.AttributeStatus) {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(contract.AttributeStatus).ValueSet(string(r.status)))
	}
	if has(contract.AttributeOutcome) && r.status.Closed() {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(contract.AttributeOutcome).ValueSet(string(r.status)))
	}
	if has(contract.AttributeHold) {
		key := temporal.NewSearchAttributeKeyKeywordList(contract.AttributeHold)
		if len(kinds) > 0 {
			updates = append(updates, key.ValueSet(kinds))
		} else if a.holds != "" {
			updates = append(updates, key.ValueUnset())
		}
	}
	if key := temporal.NewSearchAttributeKeyTime(contract.AttributeResetAt); has(contract.AttributeResetAt) {
		if !reset.IsZero() {
			updates = append(updates, key.ValueSet(reset))
		} else if !a.reset.IsZero() {
			updates = append(updates, key.ValueUnset())
		}
	}
	*a = attributes{told: true, status: r.status, holds: holds, reset: reset}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("upsert search attributes", "error", err)
	}
}
