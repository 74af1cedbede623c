package startercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"mendflow/internal/contract"
)

// runRow is one line of `starter runs --json`.
type runRow struct {
	Run        string     `json:"run"`
	Status     string     `json:"status"`
	Holds      []string   `json:"holds,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	ClosedAt   *time.Time `json:"closed_at,omitempty"`
	Plan       string     `json:"plan,omitempty"`
	Repository string     `json:"repository,omitempty"`
}

func (a *app) runsCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "runs",
		Short:   "List every run, newest first",
		Example: "  starter runs\n  starter runs --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			codec, err := a.connection.Codec()
			if err != nil {
				return err
			}
			rows, err := listRuns(cmd.Context(), c, codec.Converter(), limit)
			if err != nil {
				return err
			}
			scheduled, told := scheduledRuns(cmd.Context(), c)
			rows = append(queuedRuns(scheduled), rows...)
			if told && len(rows) < limit {
				forgotten, err := a.forgottenRuns(cmd.Context(), c, scheduled, rows)
				if err != nil {
					return err
				}
				rows = append(rows, forgotten...)
			}
			rows = rows[:min(len(rows), limit)]
			if a.json {
				return eachJSON(a.Out, rows)
			}
			return writeRuns(a.Out, rows)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 200, "at most so many")
	return cmd
}

// listRuns asks the server's index, which may lag by a moment: a list to look at, nothing decides by it.
func listRuns(ctx context.Context, c client.Client, memo converter.DataConverter, limit int) ([]runRow, error) {
	var rows []runRow
	var next []byte
	plain := converter.GetDefaultDataConverter() // search attributes are never encrypted
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = '%s'", contract.WorkflowRemediation), NextPageToken: next,
		})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			run, ok := contract.ParseRemediationID(info.GetExecution().GetWorkflowId())
			if !ok || info.GetStatus().String() == "ContinuedAsNew" {
				continue
			}
			row := runRow{Run: run, Status: outcomeOf(info.GetStatus()), StartedAt: info.GetStartTime().AsTime()}
			if info.GetCloseTime() != nil {
				closed := info.GetCloseTime().AsTime()
				row.ClosedAt = &closed
			}
			decodeField(memo, info.GetMemo().GetFields(), "plan", &row.Plan)
			decodeField(memo, info.GetMemo().GetFields(), "repository", &row.Repository)
			decodeField(plain, info.GetSearchAttributes().GetIndexedFields(), contract.AttributeStatus, &row.Status)
			decodeField(plain, info.GetSearchAttributes().GetIndexedFields(), contract.AttributeHold, &row.Holds)
			if rows = append(rows, row); len(rows) == limit {
				return rows, nil
			}
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return rows, nil
		}
	}
}

// scheduledRuns are the runs that the scheduler lists; told is false when no scheduler told all of them.
func scheduledRuns(ctx context.Context, c client.Client) (runs []contract.SchedulerRun, told bool) {
	const page = 200
	for {
		got, err := ask[[]contract.SchedulerRun](ctx, c, contract.SchedulerID, contract.QueryRuns, contract.RunsQuery{Offset: len(runs), Limit: page})
		if runs = append(runs, got...); err != nil || len(got) < page {
			return runs, err == nil
		}
	}
}

// queuedRuns are the runs that wait for their start, last in the queue first.
func queuedRuns(scheduled []contract.SchedulerRun) []runRow {
	var rows []runRow
	for _, row := range scheduled {
		if row.Begun || row.ClosedAt != nil {
			continue
		}
		queued := runRow{Run: row.Run, Status: string(row.Status), StartedAt: row.SubmittedAt, Plan: row.Plan, Repository: row.Repository}
		for _, h := range row.Holds {
			queued.Holds = append(queued.Holds, string(h.Kind))
		}
		rows = append([]runRow{queued}, rows...)
	}
	return rows
}

// decodeField reads a field when it is there; what cannot be read stays as it was.
func decodeField[T any](how converter.DataConverter, fields map[string]*commonpb.Payload, name string, to *T) {
	if p, ok := fields[name]; ok {
		var v T
		if how.FromPayload(p, &v) == nil {
			*to = v
		}
	}
}

func writeRuns(w io.Writer, rows []runRow) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "RUN\tSTATUS\tHELD BY\tSTARTED\tTOOK\tREPOSITORY")
	for _, r := range rows {
		end := time.Now()
		if r.ClosedAt != nil {
			end = *r.ClosedAt
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Run, r.Status, strings.Join(r.Holds, ","),
			r.StartedAt.Local().Format(time.DateTime), age(r.StartedAt, end), r.Repository)
	}
	return table.Flush()
}

func (a *app) logsCommand() *cobra.Command {
	var attempt int
	var follow bool
	cmd := &cobra.Command{
		Use:     "logs RUN NODE",
		Short:   "Print what a node's worker printed",
		Example: "  starter logs tls-2026-11-3fa9c1 B-001\n  starter logs tls-2026-11-3fa9c1 B-001 --attempt 1",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow {
				return a.followLog(cmd.Context(), args[0], args[1])
			}
			key, err := a.logKey(cmd.Context(), args[0], args[1], attempt)
			if err != nil {
				return err
			}
			return a.copyArtifact(cmd.Context(), key)
		},
	}
	cmd.Flags().IntVar(&attempt, "attempt", 0, "attempt number (default: the last one)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for the node's next attempts and print each as it ends")
	return cmd
}

// logKey finds the log of an attempt: from the run, or from its report once the server forgot it.
func (a *app) logKey(ctx context.Context, run, node string, attempt int) (string, error) {
	rows, err := a.attempts(ctx, run, node)
	if err != nil {
		return "", err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if attempt == 0 && rows[i].Log != "" || attempt == rows[i].K && attempt > 0 {
			if rows[i].Log == "" {
				return "", fmt.Errorf("print log: attempt %d of %s printed nothing", attempt, node)
			}
			return rows[i].Log, nil
		}
	}
	return "", fmt.Errorf("print log: %s has no such attempt that ended: see `starter nodes %s`", node, run)
}

func (a *app) attempts(ctx context.Context, run, node string) ([]contract.AttemptRow, error) {
	c, err := a.dial(ctx)
	if err == nil {
		defer c.Close()
		v, err := ask[contract.NodeView](ctx, c, contract.RemediationID(run), contract.QueryExplain, node)
		if err == nil {
			return v.Attempts, nil
		}
	}
	model, _, reportErr := a.reportModel(ctx, run)
	if reportErr != nil {
		return nil, fmt.Errorf("find attempts of %s: %w", node, reportErr)
	}
	for _, n := range model.Nodes {
		if n.ID == node {
			return n.Attempts, nil
		}
	}
	return nil, fmt.Errorf("find attempts of %s: run %s has no such node", node, run)
}

func (a *app) copyArtifact(ctx context.Context, key string) error {
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	r, err := store.Open(ctx, key)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = r.Close() }()
	if _, err := io.Copy(a.Out, r); err != nil {
		return fmt.Errorf("print log: %w", err)
	}
	return nil
}

// followLog prints the log of every attempt of a node as it ends, until the run closes.
func (a *app) followLog(ctx context.Context, run, node string) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	printed := 0
	for {
		v, err := view(ctx, c, run)
		if err != nil {
			return err
		}
		rows, err := a.attempts(ctx, run, node)
		if err != nil {
			return err
		}
		for ; printed < len(rows); printed++ {
			fmt.Fprintf(a.Out, "--- attempt %d on %s: %s\n", rows[printed].K, rows[printed].Pool, rows[printed].Outcome)
			if rows[printed].Log == "" {
				continue
			}
			if err := a.copyArtifact(ctx, rows[printed].Log); err != nil {
				return err
			}
		}
		if v.Status.Closed() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "diff RUN [NODE[/ATTEMPT]]",
		Short:   "Show what a run landed, or what an attempt left unlanded",
		Long:    "Show what a run landed, what a node landed, or what an attempt left unlanded (its salvage), as a patch, with the git command that applies it.",
		Example: "  starter diff tls-2026-11-3fa9c1\n  starter diff tls-2026-11-3fa9c1 B-001/2",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := ""
			if len(args) == 2 {
				what = args[1]
			}
			return a.diff(cmd.Context(), args[0], what)
		},
	}
}

// diffOut is what `starter diff --json` prints.
type diffOut struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Apply string `json:"apply"`
	Patch string `json:"patch"`
}

func (a *app) sayDiff(d diffOut) error {
	if a.json {
		return json.NewEncoder(a.Out).Encode(d)
	}
	fmt.Fprintf(a.Err, "apply it with: %s\n", d.Apply)
	_, err := io.WriteString(a.Out, d.Patch)
	return err
}
