package startercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
)

func (a *app) budgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show, set and reconcile what a run may spend",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.budgetShowCommand(), a.budgetSetCommand(), a.budgetReconcileCommand())
	return cmd
}

func (a *app) budgetShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show RUN",
		Short:   "Show a run's caps, what was used, and what was charged without knowing",
		Example: "  starter budget show tls-2026-11-3fa9c1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			v, err := view(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if v.Budget == nil {
				return fmt.Errorf("show budget of %s: the run has not opened its plan yet", args[0])
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(v.Budget)
			}
			writeBudget(a.Out, v.Budget)
			return nil
		},
	}
}

func writeBudget(w io.Writer, b *contract.BudgetView) {
	limit := "none"
	if b.Cap != (contract.Amount{}) {
		limit = amountText(b.Cap)
	}
	fmt.Fprintf(w, "cap        %s\nused       %s\nreserved   %s\nuncertain  %s\n",
		limit, amountText(b.Settled), amountText(b.Reserved), amountText(b.Uncertain))
	for _, at := range b.Attempts {
		fmt.Fprintf(w, "  %s told no usage and is charged %s\n", at.Attempt, amountText(at.Amount))
	}
	if b.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", b.More)
	}
}

func amountText(amount contract.Amount) string {
	var parts []string
	if amount.Tokens != 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", amount.Tokens))
	}
	if amount.USDMicros != 0 {
		parts = append(parts, plan.FormatUSD(amount.USDMicros)+" USD")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// amountFlags are --tokens and --usd.
type amountFlags struct {
	tokens int64
	usd    string
}

func (f *amountFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().Int64Var(&f.tokens, "tokens", 0, what+", in tokens")
	cmd.Flags().StringVar(&f.usd, "usd", "", what+", in USD")
}

// fill puts the flags that were given into an order.
func (f *amountFlags) fill(cmd *cobra.Command, order *contract.Operator) error {
	if cmd.Flags().Changed("tokens") {
		if f.tokens < 0 {
			return usage("%s: %d tokens are negative", cmd.CommandPath(), f.tokens)
		}
		order.Tokens = &f.tokens
	}
	if cmd.Flags().Changed("usd") {
		micros, err := plan.ParseMicros(f.usd)
		if err != nil {
			return usage("%s: read --usd: %w", cmd.CommandPath(), err)
		}
		order.USDMicros = &micros
	}
	if order.Tokens == nil && order.USDMicros == nil {
		return usage("%s: give --tokens or --usd", cmd.CommandPath())
	}
	return nil
}

func (a *app) budgetSetCommand() *cobra.Command {
	var flags amountFlags
	cmd := &cobra.Command{
		Use:     "set RUN",
		Short:   "Set a run's caps; what waited for them goes on",
		Long:    "Set what a run may spend in all, from its start. A cap that is not named stays; 0 removes it.",
		Example: "  starter budget set tls-2026-11-3fa9c1 --tokens 20000000\n  starter budget set tls-2026-11-3fa9c1 --usd 25 --tokens 0",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var order contract.Operator
			if err := flags.fill(cmd, &order); err != nil {
				return err
			}
			return a.order(cmd.Context(), args[0], contract.CommandBudget, order)
		},
	}
	flags.add(cmd, "what the run may spend in all (0: no cap)")
	return a.repeatable(cmd)
}

func (a *app) budgetReconcileCommand() *cobra.Command {
	var flags amountFlags
	cmd := &cobra.Command{
		Use:   "reconcile RUN [NODE/K]",
		Short: "Say what attempts used that told nothing",
		Long: "Say what attempts used that told nothing usable and were charged at their whole reservation: one attempt,\n" +
			"or, without one, all of them together. `starter budget show` lists them.",
		Example: "  starter budget reconcile tls-2026-11-3fa9c1 B-001/2 --tokens 81000\n  starter budget reconcile tls-2026-11-3fa9c1 --usd 3.20",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var order contract.Operator
			if err := flags.fill(cmd, &order); err != nil {
				return err
			}
			if len(args) == 2 {
				order.Attempt = args[1]
			}
			return a.order(cmd.Context(), args[0], contract.CommandReconcile, order)
		},
	}
	flags.add(cmd, "what was used")
	return a.repeatable(cmd)
}
