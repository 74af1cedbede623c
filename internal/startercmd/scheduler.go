package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

func (a *app) schedulerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Say which runs may work: modes, limits and the queue of the deployment",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.schedulerStatusCommand(), a.schedulerEnableCommand(), a.schedulerDrainCommand(), a.schedulerDisableCommand(),
		a.schedulerLimitsCommand(), a.schedulerBudgetCommand(), a.schedulerPriorityCommand(), a.schedulerHoldCommand(), a.schedulerReleaseCommand())
	return cmd
}

func (a *app) schedulerEnableCommand() *cobra.Command {
	var order contract.SchedulerOrder
	cmd := &cobra.Command{
		Use:   "enable",
		Short: "Admit, start and resume runs",
		Long: "Admit, start and resume runs, and lift the scheduler's holds; operators' holds stay. Refused while runs are\n" +
			"pausing: enable again when `starter scheduler status` shows none.",
		Example: "  starter scheduler enable",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.orderScheduler(cmd.Context(), contract.CommandEnable, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown in the status")
	return a.repeatable(cmd)
}

func (a *app) schedulerDrainCommand() *cobra.Command {
	var order contract.SchedulerOrder
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Let what works go to its end, and start nothing more",
		Long: "Let runs that work go to their end; admit, start and resume nothing. Runs that wait in a hold stay there,\n" +
			"or, with --finish, go on when it ends. `starter scheduler status` says when nothing works any more.",
		Example: "  starter scheduler drain --reason 'upgrade at noon'\n  starter scheduler drain --finish",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.orderScheduler(cmd.Context(), contract.CommandDrain, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown in the status")
	cmd.Flags().BoolVar(&order.Finish, "finish", false, "runs that wait in a hold go on when it ends, and finish too")
	return a.repeatable(cmd)
}

func (a *app) schedulerDisableCommand() *cobra.Command {
	var order contract.SchedulerOrder
	cmd := &cobra.Command{
		Use:     "disable",
		Short:   "Pause everything that works; the work is kept",
		Long:    "Pause every run that works, with the hold scheduler; `starter scheduler enable` lifts it. The work is kept.",
		Example: "  starter scheduler disable --reason 'the host goes down'\n  starter scheduler disable --only-if-idle",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.orderScheduler(cmd.Context(), contract.CommandDisable, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown in the status and on every run that is paused")
	cmd.Flags().BoolVar(&order.OnlyIfIdle, "only-if-idle", false, "refuse while a run works")
	return a.repeatable(cmd)
}

func (a *app) schedulerLimitsCommand() *cobra.Command {
	var running, queued int
	cmd := &cobra.Command{
		Use:     "limits",
		Short:   "Say how many runs may work at once, and wait",
		Long:    "Say how many runs may work at once and how many may wait. What works goes on when the limit is lowered.\nWithout a flag the limits are shown.",
		Example: "  starter scheduler limits --max-running 3\n  starter scheduler limits --max-queued 100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var order contract.SchedulerOrder
			if cmd.Flags().Changed("max-running") {
				if running < 1 {
					return usage("scheduler limits: --max-running must be at least 1: `starter scheduler drain` starts nothing")
				}
				order.MaxRunning = &running
			}
			if cmd.Flags().Changed("max-queued") {
				if queued < 0 {
					return usage("scheduler limits: --max-queued must not be negative")
				}
				order.MaxQueued = &queued
			}
			return a.orderScheduler(cmd.Context(), contract.CommandLimits, order)
		},
	}
	cmd.Flags().IntVar(&running, "max-running", 0, "runs that work at once")
	cmd.Flags().IntVar(&queued, "max-queued", 0, "runs that wait; more are deferred")
	return a.repeatable(cmd)
}

func (a *app) schedulerBudgetCommand() *cobra.Command {
	var flags amountFlags
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Set what all runs together may spend",
		Long: "Set what all runs of the deployment together may spend, from its start. A cap that is not named stays; 0\n" +
			"removes it. Runs are leased their share in slabs, and wait in the hold budget when nothing is left.",
		Example: "  starter scheduler budget --tokens 200000000\n  starter scheduler budget --usd 500",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var amount contract.Operator
			if err := flags.fill(cmd, &amount); err != nil {
				return err
			}
			return a.orderScheduler(cmd.Context(), contract.CommandBudget, contract.SchedulerOrder{Tokens: amount.Tokens, USDMicros: amount.USDMicros})
		},
	}
	flags.add(cmd, "what all runs together may spend (0: no cap)")
	return a.repeatable(cmd)
}

func (a *app) schedulerPriorityCommand() *cobra.Command {
	return a.repeatable(&cobra.Command{
		Use:     "priority RUN N",
		Short:   "Change a run's place in the queue; lower goes first",
		Example: "  starter scheduler priority tls-2026-11-3fa9c1 -- -5",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usage("scheduler priority %s: %q is no whole number", args[0], args[1])
			}
			return a.orderScheduler(cmd.Context(), contract.CommandPriority, contract.SchedulerOrder{Run: args[0], Priority: &n})
		},
	})
}

func (a *app) schedulerHoldCommand() *cobra.Command {
	var order contract.SchedulerOrder
	cmd := &cobra.Command{
		Use:     "hold RUN",
		Short:   "Keep a run from starting, or pause it when it works",
		Example: "  starter scheduler hold tls-2026-11-3fa9c1 --reason 'wait for the release'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			order.Run = args[0]
			return a.orderScheduler(cmd.Context(), contract.CommandHold, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown to everybody who looks at the run")
	return a.repeatable(cmd)
}

func (a *app) schedulerReleaseCommand() *cobra.Command {
	return a.repeatable(&cobra.Command{
		Use:     "release RUN",
		Short:   "Lift an operator's hold",
		Long:    "Lift an operator's hold. A run that was held in the queue keeps its arrival and goes before those that never began.",
		Example: "  starter scheduler release tls-2026-11-3fa9c1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.orderScheduler(cmd.Context(), contract.CommandRelease, contract.SchedulerOrder{Run: args[0]})
		},
	})
}

// orderScheduler sends a command to the scheduler and prints what it did; a refusal is an error.
func (a *app) orderScheduler(ctx context.Context, command string, order contract.SchedulerOrder) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	order.By, order.RequestID = operatorName(), a.requestID
	answer, err := updateScheduler[contract.SchedulerAnswer](ctx, c, command, order)
	if errors.Is(err, errNoWorker) {
		return fmt.Errorf("%w; what was sent may still be obeyed: repeat it with --request-id %s", err, order.RequestID)
	}
	if err != nil {
		return err
	}
	if a.json {
		if err := json.NewEncoder(a.Out).Encode(answer); err != nil {
			return err
		}
	}
	if answer.Refused != "" {
		return fmt.Errorf("%s: %s", command, answer.Refused)
	}
	if !a.json {
		writeAnswer(a.Out, answer)
	}
	return nil
}

func writeAnswer(w io.Writer, answer contract.SchedulerAnswer) {
	fmt.Fprintf(w, "scheduler: %s since %s\n", answer.Mode, answer.ChangedAt.Local().Format(time.DateTime))
	for _, done := range answer.Done {
		fmt.Fprintf(w, "  %s\n", done)
	}
	for _, run := range answer.Running {
		fmt.Fprintf(w, "  works on: %s\n", run)
	}
	for _, run := range answer.Pausing {
		fmt.Fprintf(w, "  pausing: %s\n", run)
	}
}

// schedulerView is what `starter scheduler status --json` prints.
type schedulerView struct {
	contract.SchedulerStatus
	Runs []contract.SchedulerRun `json:"runs"` // open ones: those that work, the queue in its order, those that are held
}

func (a *app) schedulerStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the mode, the limits, and every open run with its place",
		Example: "  starter scheduler status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			v, err := askScheduler(cmd.Context(), c)
			if errors.Is(err, errUnknownRun) {
				return errors.New("show scheduler: none was started yet: `starter setup`, `starter dev` or the first `starter start` does")
			}
			if err != nil {
				return err
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(v)
			}
			return writeScheduler(a.Out, v)
		},
	}
}

// askScheduler reads the status and all open runs, page by page.
func askScheduler(ctx context.Context, c client.Client) (schedulerView, error) {
	const page = 100
	status, err := ask[contract.SchedulerStatus](ctx, c, contract.SchedulerID, contract.QueryStatus)
	if err != nil {
		return schedulerView{}, err
	}
	v := schedulerView{SchedulerStatus: status, Runs: []contract.SchedulerRun{}}
	for offset := 0; ; offset += page {
		rows, err := ask[[]contract.SchedulerRun](ctx, c, contract.SchedulerID, contract.QueryRuns, contract.RunsQuery{Offset: offset, Limit: page})
		if err != nil {
			return v, err
		}
		for _, row := range rows {
			if row.ClosedAt != nil {
				return v, nil
			}
			v.Runs = append(v.Runs, row)
		}
		if len(rows) < page {
			return v, nil
		}
	}
}

func writeScheduler(w io.Writer, v schedulerView) error {
	fmt.Fprintf(w, "mode     %s since %s", v.Mode, v.ChangedAt.Local().Format(time.DateTime))
	if v.By != "" {
		fmt.Fprintf(w, " by %s", v.By)
	}
	if v.Reason != "" {
		fmt.Fprintf(w, ": %s", v.Reason)
	}
	switch {
	case v.Drained:
		fmt.Fprint(w, "; nothing works any more")
	case v.Finish:
		fmt.Fprint(w, "; runs that wait in a hold finish too")
	}
	fmt.Fprintf(w, "\nruns     %d of %d work, %d of %d wait, %d are held, %d have closed\n",
		v.Running, v.Limits.MaxRunning, v.Queued, v.Limits.MaxQueued, v.Held, v.Closed)
	if b := v.Budget; b != nil {
		fmt.Fprintf(w, "budget   %s used and %s leased of %s\n", amountText(b.Settled), amountText(b.Reserved), amountText(b.Cap))
	}
	for _, f := range v.Friction {
		fmt.Fprintf(w, "friction %s %s: %s\n", f.Type, f.Discriminator, f.Note)
	}
	if len(v.Runs) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nPLACE\tRUN\tSTATUS\tPRIORITY\tHELD BY\tWHY")
	for _, row := range v.Runs {
		place := ""
		switch {
		case row.Slot:
			place = "slot"
		case row.Position > 0:
			place = strconv.Itoa(row.Position)
		}
		held := ""
		for i, h := range row.Holds {
			if i > 0 {
				held += ","
			}
			held += string(h.Kind)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", place, row.Run, row.Status, row.Priority, held, row.Reason)
	}
	return table.Flush()
}

// sendQueued gives an order about a run that has no workflow to the scheduler,
// where it waits; missing is what there is to say when it does not wait there either.
func sendQueued(ctx context.Context, c client.Client, run, command string, order contract.Operator, missing error) (contract.OperatorAnswer, error) {
	told, ok := map[string]string{
		contract.CommandPause: contract.CommandHold, contract.CommandResume: contract.CommandRelease, contract.CommandCancel: contract.CommandCancel,
	}[command]
	row, err := schedulerRow(ctx, c, run)
	switch {
	case err != nil || row.ClosedAt != nil:
		return contract.OperatorAnswer{}, missing
	case !ok:
		return contract.OperatorAnswer{}, fmt.Errorf("%s %s: the run is %s and has not begun", command, run, row.Status)
	}
	answer, err := updateScheduler[contract.SchedulerAnswer](ctx, c, told, contract.SchedulerOrder{
		RequestID: order.RequestID, By: order.By, Reason: order.Reason, Run: run, Finish: order.Finish, Now: order.Now,
	})
	if err != nil {
		return contract.OperatorAnswer{}, err
	}
	if answer.Refused != "" {
		return contract.OperatorAnswer{}, fmt.Errorf("%s %s: %s", command, run, answer.Refused)
	}
	if row, err = schedulerRow(ctx, c, run); err != nil {
		return contract.OperatorAnswer{}, err
	}
	return contract.OperatorAnswer{Status: row.Status, Done: answer.Done, Holds: row.Holds}, nil
}
