package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"mendflow/internal/contract"
	"mendflow/internal/gate"
	"mendflow/internal/gitrepo"
	"mendflow/internal/report"
)

// Publication writes reports and carries out closing actions.
type Publication struct {
	Host *Host
	Now  func() time.Time
	// HTTP speaks to forges; nil: a client with a time limit.
	HTTP *http.Client
}

// WriteReport renders the report pair from what the run stored and what git says.
func (a *Publication) WriteReport(ctx context.Context, in contract.ReportInput) (contract.ReportEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "report")
	defer heart.end()
	end, err := a.write(ctx, in)
	return end, translate(ctx, err)
}

func (a *Publication) write(ctx context.Context, in contract.ReportInput) (contract.ReportEnd, error) {
	var end contract.ReportEnd
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return end, err
	}
	record, err := a.record(ctx, in.State)
	if err != nil {
		return end, err
	}
	state, err := opened.mirror.State(ctx, in.Run, opened.config.BaseCommit)
	if err != nil {
		return end, fmt.Errorf("read truth: %w", err)
	}
	end.Head = state.Truth
	if end.Refs, end.Note, err = a.refs(ctx, opened, in.Run, record, state); err != nil {
		return end, err
	}
	facts, err := a.facts(ctx, opened, record, end)
	if err != nil {
		return end, err
	}
	if facts.Protected, err = protectedPaths(ctx, opened, state); err != nil {
		return end, err
	}
	model := report.Build(facts)
	stored, err := a.store(ctx, in.Run, model)
	if err != nil {
		return end, err
	}
	end.JSON, end.Markdown = stored.JSON, stored.Markdown
	end.Refs = end.Refs[:min(len(end.Refs), shownRefs)] // the report has them all
	return end, nil
}

// store renders the report pair and keeps it.
func (a *Publication) store(ctx context.Context, run string, model report.Model) (contract.ReportEnd, error) {
	var end contract.ReportEnd
	data, err := report.JSON(model)
	if err != nil {
		return end, fmt.Errorf("render report: %w", err)
	}
	ref, err := a.Host.Artifacts.Put(ctx, contract.ReportKey(run, contract.ReportJSON), data)
	if err != nil {
		return end, fmt.Errorf("store report: %w", err)
	}
	end.JSON = reference(ref)
	ref, err = a.Host.Artifacts.Put(ctx, contract.ReportKey(run, contract.ReportMarkdown), report.Markdown(model))
	if err != nil {
		return end, fmt.Errorf("store report: %w", err)
	}
	end.Markdown = reference(ref)
	return end, nil
}

// record joins the parts of the run's own account.
func (a *Publication) record(ctx context.Context, parts []contract.Artifact) (contract.RunRecord, error) {
	var record contract.RunRecord
	var data []byte
	for _, part := range parts {
		bytes, err := a.Host.Artifacts.Get(ctx, part.URI)
		if err != nil {
			return record, fmt.Errorf("read run record: %w", err)
		}
		data = append(data, bytes...)
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return record, fmt.Errorf("read run record: %w", err)
	}
	return record, nil
}

// refs lists what the run keeps in the hub. A run that is not green takes its
// salvage there, where it outlives this host; hosts that are not alone did so at once.
func (a *Publication) refs(ctx context.Context, opened *openRun, run string, record contract.RunRecord, state gitrepo.RunState) ([]string, string, error) {
	refs := []string{contract.TruthRef(run)}
	note, err := opened.mirror.FollowBranch(ctx, run, state)
	if err != nil {
		return nil, "", fmt.Errorf("follow branch: %w", err)
	}
	if note == "" {
		refs = append(refs, gitrepo.BranchRef(run))
	}
	for _, n := range record.Nodes {
		if len(n.Attempts) > 0 {
			refs = append(refs, gitrepo.FenceRef(run, n.ID))
		}
	}
	salvage := opened.mirror.HubSalvage
	if record.View.Status != contract.RunCompleted {
		salvage = opened.mirror.PushSalvage
	}
	salvaged, err := salvage(ctx, run)
	if err != nil {
		return nil, "", fmt.Errorf("push salvage: %w", err)
	}
	return append(refs, salvaged...), note, nil
}

func (a *Publication) facts(ctx context.Context, opened *openRun, record contract.RunRecord, end contract.ReportEnd) (report.Facts, error) {
	v := record.View
	facts := report.Facts{
		Run: v.Run, Repository: v.Repository, Plan: opened.config.Plan, BaseCommit: v.BaseCommit, HeadCommit: end.Head,
		Status: v.Status, Reason: v.Reason, StartedAt: v.StartedAt, ClosedAt: v.ClosedAt,
		Items: record.Items, Nodes: record.Nodes, Dispositions: opened.config.Dropped,
		Friction: v.Friction, Holds: v.Holds, Refs: end.Refs,
	}
	if v.Publication != nil {
		facts.Publication = published(*v.Publication)
	}
	if end.Note != "" {
		facts.Notes = append(facts.Notes, end.Note)
	}
	for _, left := range a.Host.Git.Leftovers() {
		facts.Notes = append(facts.Notes, "could not be removed: "+left)
	}
	var err error
	if facts.Baseline, err = a.gate(ctx, "baseline", 0, record.Baseline); err != nil {
		return facts, err
	}
	facts.Gates, err = a.rounds(ctx, record)
	return facts, err
}

// gate reads a gate's full result back for the report.
func (a *Publication) gate(ctx context.Context, purpose string, round int, end *contract.GateEnd) (*report.Gate, error) {
	if end == nil {
		return nil, nil
	}
	shown := &report.Gate{Purpose: purpose, Round: round}
	if end.Result == nil {
		shown.Result = gate.Disabled(end.Commit, end.Residual)
		return shown, nil
	}
	data, err := a.Host.Artifacts.Get(ctx, end.Result.URI)
	if err != nil {
		return nil, fmt.Errorf("read gate result: %w", err)
	}
	if err := json.Unmarshal(data, &shown.Result); err != nil {
		return nil, fmt.Errorf("read gate result: %w", err)
	}
	return shown, nil
}
