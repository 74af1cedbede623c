package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// describedRuns bounds the rows of the scheduler's page.
const describedRuns = 50

// describe shows the scheduler in the Web UI.
func (s *scheduler) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, s.details())
}

func (s *scheduler) details() string {
	status := s.machine.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "## scheduler: %s\n\nsince %s", status.Mode, status.ChangedAt.UTC().Format(time.RFC3339))
	if status.By != "" {
		fmt.Fprintf(&b, " by %s", status.By)
	}
	if status.Reason != "" {
		fmt.Fprintf(&b, ": %s", status.Reason)
	}
	switch {
	case status.Drained:
		b.WriteString(". **Nothing works any more.** Go on with `starter scheduler enable`")
	case status.Mode != contract.ModeEnabled:
		b.WriteString(". Go on with `starter scheduler enable`")
	}
	fmt.Fprintf(&b, "\n\n| running | queued | held | closed | max_running | max_queued |\n|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d |\n\n",
		status.Running, status.Queued, status.Held, status.Closed, status.Limits.MaxRunning, status.Limits.MaxQueued)
	if budget := status.Budget; budget != nil {
		fmt.Fprintf(&b, "Budget: %d tokens settled and %d leased of %d; %d and %d of %d millionths of a dollar\n\n",
			budget.Settled.Tokens, budget.Reserved.Tokens, budget.Cap.Tokens,
			budget.Settled.USDMicros, budget.Reserved.USDMicros, budget.Cap.USDMicros)
	}
	b.WriteString("| run | status | place | priority | why |\n|---|---|---|---|---|\n")
	for _, row := range s.machine.Runs(0, describedRuns) {
		place := "slot"
		switch {
		case row.Position > 0:
			place = fmt.Sprintf("%d.", row.Position)
		case !row.Slot:
			place = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s |\n", row.Run, row.Status, place, row.Priority, strings.ReplaceAll(row.Reason, "|", "\\|"))
	}
	for _, f := range s.friction.Entries() {
		fmt.Fprintf(&b, "\n- %s: %s", f.Type, f.Note)
	}
	b.WriteString("\n**Last events**\n\n")
	for i := len(status.Events) - 1; i >= 0; i-- {
		e := status.Events[i]
		fmt.Fprintf(&b, "- %s %s\n", e.At.UTC().Format(time.TimeOnly), strings.ReplaceAll(e.Text, "|", "\\|"))
	}
	const limit = 18_000 // the server refuses more than 20 000 bytes
	return clip(b.String(), limit)
}
