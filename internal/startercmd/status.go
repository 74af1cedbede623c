package startercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status RUN",
		Short:   "Show where a run stands and what holds it",
		Example: "  starter status tls-2026-11-3fa9c1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			v, running, err := fullView(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(v)
			}
			writeStatus(plain{a.Out}, v)
			for _, r := range running {
				fmt.Fprintf(a.Out, "  running  %s a%d on %s for %s\n", r.Node, r.Attempt, r.Pool, age(r.StartedAt, time.Now()))
			}
			return nil
		},
	}
}

func writeStatus(w io.Writer, v contract.RunView) {
	fmt.Fprintf(w, "run      %s\nstatus   %s", v.Run, v.Status)
	if v.Position > 0 {
		fmt.Fprintf(w, " at place %d", v.Position)
	}
	if v.Reason != "" {
		fmt.Fprintf(w, ": %s", v.Reason)
	}
	fmt.Fprintf(w, "\nhub      %s\nbranch   %s\nbase     %s\nhead     %s\n", v.Repository, v.Branch, short(v.BaseCommit), short(v.HeadCommit))
	fmt.Fprintf(w, "nodes    %s\nitems    %s\n", counts(v.Nodes, "total"), counts(v.Items, ""))
	if v.Gate.Kind != "" {
		fmt.Fprintf(w, "gate     %s %s %s\n", v.Gate.Kind, v.Gate.Verdict, v.Gate.Detail)
	}
	for _, a := range v.Gate.Attributions {
		fmt.Fprintf(w, "culprit  %s: %s\n", a.Verdict, a.Detail)
	}
	if v.Publication != nil {
		fmt.Fprintf(w, "publish  %s\n", publicationLine(*v.Publication))
	}
	for _, h := range v.Holds {
		fmt.Fprintf(w, "hold     %s\n", holdLine(h))
	}
	if len(v.Unproven) > 0 {
		fmt.Fprintf(w, "pausing  %s\n", unprovenLine(v.Run, v.Unproven))
	}
	for _, p := range v.Pools {
		if p.State != "live" && p.State != "ramping" {
			fmt.Fprintf(w, "pool     %s\n", poolLine(p))
		}
	}
	if b := v.Budget; b != nil && b.Cap != (contract.Amount{}) {
		fmt.Fprintf(w, "budget   %s of %s used", amountText(spent(b)), amountText(b.Cap))
		if n := len(b.Attempts) + b.More; n > 0 {
			fmt.Fprintf(w, "; %d attempts told no usage: starter budget show %s", n, v.Run)
		}
		fmt.Fprintln(w)
	}
	for _, f := range v.Friction {
		fmt.Fprintf(w, "friction %s %s: %s\n", f.Type, f.Discriminator, f.Note)
	}
	if v.Report != nil {
		fmt.Fprintf(w, "report   starter report %s\n", v.Run)
	}
}

// poolLine says why a pool takes nothing, until when, and how to change that.
func poolLine(p contract.PoolState) string {
	line := p.ID + " is " + p.State
	if p.Until != nil {
		line += " until " + p.Until.Local().Format(time.DateTime)
	}
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	if p.State == "settled" {
		line += "; open it again with: starter pools reopen " + p.Account
	}
	return line
}

// spent is what counts against the caps.
func spent(b *contract.BudgetView) contract.Amount {
	sum := contract.Amount{Tokens: b.Settled.Tokens + b.Uncertain.Tokens, USDMicros: b.Settled.USDMicros + b.Uncertain.USDMicros}
	if b.Cap.Tokens == 0 {
		sum.Tokens = 0
	}
	if b.Cap.USDMicros == 0 {
		sum.USDMicros = 0
	}
	return sum
}

func holdLine(h contract.Hold) string {
	line := fmt.Sprintf("%s since %s", h.Kind, h.Since.Local().Format(time.DateTime))
	if h.By != "" {
		line += " by " + h.By
	}
	line += ": " + h.Reason
	if h.Until != nil {
		line += ", until " + h.Until.Local().Format(time.DateTime)
	}
	if h.Lift != "" {
		line += "; lift with: " + h.Lift
	}
	return line
}

// counts renders a map in a defined order, the named key first.
func counts(m map[string]int, first string) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		if k != first && m[k] > 0 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var parts []string
	if first != "" {
		parts = append(parts, fmt.Sprintf("%d in all", m[first]))
	}
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

func age(since, now time.Time) string { return now.Sub(since).Round(time.Second).String() }

func (a *app) nodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "nodes RUN",
		Short:   "Show every node with its attempts",
		Example: "  starter nodes tls-2026-11-3fa9c1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			rows, err := nodeRows(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return eachJSON(a.Out, rows)
			}
			return writeNodes(plain{a.Out}, rows)
		},
	}
}

// eachJSON writes one JSON object per line.
func eachJSON[T any](w io.Writer, rows []T) error {
	encoder := json.NewEncoder(w)
	for _, row := range rows {
		if err := encoder.Encode(row); err != nil {
			return fmt.Errorf("write row: %w", err)
		}
	}
	return nil
}

func writeNodes(w io.Writer, rows []contract.NodeRow) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tLEVEL\tSTATE\tATTEMPTS\tPOOL\tCOMMIT\tREASON")
	for _, row := range rows {
		pool, commit := "", ""
		if n := len(row.Attempts); n > 0 {
			pool, commit = row.Attempts[n-1].Pool, row.Attempts[n-1].Commit
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\t%s\n", row.ID, row.Level, row.State, len(row.Attempts), pool, short(commit), row.Reason)
	}
	return table.Flush()
}
