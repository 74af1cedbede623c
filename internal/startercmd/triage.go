package startercmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

func (a *app) triageCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:   "triage RUN [ITEM retry|ignore|halt]",
		Short: "Show what a run waits for an answer to, or decide about it",
		Long: "Without ITEM: show the blocked findings and the questions of workers that wait for an answer.\n" +
			"ITEM is a finding, a node (all its blocked findings) or `all`. retry begins the node's next opening with new\n" +
			"bounds, ignore leaves the finding alone for good, halt closes the run at once and keeps everything.\n" +
			"Questions are answered with `starter answer`.",
		Example: "  starter triage tls-2026-11-3fa9c1\n  starter triage tls-2026-11-3fa9c1 F-001 retry\n  starter triage tls-2026-11-3fa9c1 all ignore --reason 'next quarter'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 3 {
				return usage("triage: want RUN, or RUN ITEM retry|ignore|halt\nsee: starter triage --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.showAsked(cmd.Context(), args[0])
			}
			switch args[2] {
			case contract.TriageRetry, contract.TriageIgnore, contract.TriageHalt:
			default:
				return usage("triage %s: want retry, ignore or halt, not %q", args[1], args[2])
			}
			order.Run, order.Item, order.Action = args[0], args[1], args[2]
			return a.decide(cmd.Context(), contract.CommandTriage, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "stands in the report when the run is halted")
	return a.repeatable(cmd)
}

func (a *app) answerCommand() *cobra.Command {
	return a.repeatable(&cobra.Command{
		Use:   "answer RUN FINDING clarified TEXT|reject [REASON]|defer [REASON]",
		Short: "Answer a worker's question about a finding",
		Long: "clarified hands TEXT to the node's next attempt, reject finds the finding inappropriate,\n" +
			"defer puts it off: it stays blocked and nobody is asked again in this run.",
		Example: "  starter answer tls-2026-11-3fa9c1 F-001 clarified 'keep the old name, customer X calls it'\n  starter answer tls-2026-11-3fa9c1 F-002 reject 'works as designed'",
		Args:    cobra.RangeArgs(3, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			order := contract.Operator{Run: args[0], Item: args[1], Action: args[2], Text: strings.TrimSpace(strings.Join(args[3:], " "))}
			switch {
			case order.Action != contract.AnswerClarified && order.Action != contract.AnswerReject && order.Action != contract.AnswerDefer:
				return usage("answer %s: want clarified, reject or defer, not %q", order.Item, order.Action)
			case order.Action == contract.AnswerClarified && order.Text == "":
				return usage("answer %s: clarified needs the TEXT that the worker is told", order.Item)
			}
			return a.decide(cmd.Context(), contract.CommandAnswer, order)
		},
	})
}

// decide sends an answer, bound to what the finding says now: if an attempt says
// something else meanwhile, the answer is refused.
func (a *app) decide(ctx context.Context, command string, order contract.Operator) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	rows, err := itemRows(ctx, c, order.Run, false)
	c.Close()
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Finding == order.Item {
			order.Asked = row.Attempt
		}
	}
	return a.order(ctx, order.Run, command, order)
}

// itemRows returns findings of a run, page by page; with asked those that wait for an answer.
func itemRows(ctx context.Context, c client.Client, run string, asked bool) ([]contract.ItemRow, error) {
	const page = 25 // a question may have 1000 bytes, a reason 500
	var rows []contract.ItemRow
	for {
		got, err := ask[[]contract.ItemRow](ctx, c, contract.RemediationID(run), contract.QueryItems,
			contract.ItemsQuery{Offset: len(rows), Limit: page, Asked: asked})
		if err != nil {
			return nil, err
		}
		rows = append(rows, got...)
		if len(got) < page {
			return rows, nil
		}
	}
}

func (a *app) showAsked(ctx context.Context, run string) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	rows, err := itemRows(ctx, c, run, true)
	if err != nil {
		return err
	}
	if a.json {
		return eachJSON(a.Out, rows)
	}
	writeAsked(plain{a.Out}, run, rows)
	return nil
}

// writeAsked shows what waits, with the commands that answer it.
func writeAsked(w io.Writer, run string, rows []contract.ItemRow) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "nothing waits for an answer")
		return
	}
	for _, row := range rows {
		attempt := ""
		if row.Attempt > 0 {
			attempt = fmt.Sprintf(" (attempt %d)", row.Attempt)
		}
		fmt.Fprintf(w, "%s of %s: %s%s\n", row.Finding, row.Node, row.Status, attempt)
		if row.Status == contract.ItemNeedsClarification {
			fmt.Fprintf(w, "  asks:   %s\n  answer: starter answer %s %s clarified TEXT|reject|defer\n", row.Question, run, row.Finding)
			continue
		}
		fmt.Fprintf(w, "  why:    %s\n  answer: starter triage %s %s retry|ignore|halt\n  look:   starter explain %s %s\n", row.Reason, run, row.Finding, run, row.Node)
	}
}
