package startercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
)

// forgottenRuns are closed runs that the server's index has not, since they ended longer ago than the
// namespace keeps workflows: the scheduler remembers them, the older ones in pages of the store. Those
// that are known already are left out, and what no scheduler tells is not listed.
func (a *app) forgottenRuns(ctx context.Context, c client.Client, closed []contract.SchedulerRun, known []runRow) ([]runRow, error) {
	status, err := ask[contract.SchedulerStatus](ctx, c, contract.SchedulerID, contract.QueryStatus)
	if err != nil {
		return nil, fmt.Errorf("list closed runs: %w", err)
	}
	if len(status.Pages) > 0 {
		store, err := a.store(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = store.Close() }()
		paged, err := readPages(ctx, store, status.Pages)
		if err != nil {
			return nil, err
		}
		closed = append(closed, paged...)
	}
	return unknownRuns(known, closed), nil
}

// readPages reads the closed runs that a scheduler stored away.
func readPages(ctx context.Context, store *artifacts.Store, pages []contract.Artifact) ([]contract.SchedulerRun, error) {
	var runs []contract.SchedulerRun
	for _, page := range pages {
		data, err := store.Get(ctx, page.URI)
		if err != nil {
			return nil, fmt.Errorf("read closed runs (name the workers' store with --artifacts): %w", err)
		}
		var rows []contract.SchedulerRun
		if err := json.Unmarshal(data, &rows); err != nil {
			return nil, fmt.Errorf("read closed runs in %s: %w", page.URI, err)
		}
		runs = append(runs, rows...)
	}
	return runs, nil
}

// unknownRuns are the closed runs that are not known, newest first.
func unknownRuns(known []runRow, closed []contract.SchedulerRun) []runRow {
	seen := map[string]bool{}
	for _, row := range known {
		seen[row.Run] = true
	}
	var rows []runRow
	for _, r := range closed {
		if r.ClosedAt == nil || seen[r.Run] {
			continue
		}
		seen[r.Run] = true
		row := runRow{Run: r.Run, Status: string(r.Status), StartedAt: r.SubmittedAt, ClosedAt: r.ClosedAt, Plan: r.Plan, Repository: r.Repository}
		if r.StartedAt != nil {
			row.StartedAt = *r.StartedAt
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b runRow) int { return b.StartedAt.Compare(a.StartedAt) })
	return rows
}
