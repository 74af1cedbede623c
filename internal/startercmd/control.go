package startercmd

import (
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
)

func (a *app) pauseCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:     "pause RUN",
		Short:   "Stop a run's workers and keep their work",
		Example: "  starter pause tls-2026-11-3fa9c1 --reason 'maintenance'\n  starter pause tls-2026-11-3fa9c1 --finish",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd.Context(), args[0], contract.CommandPause, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown to everybody who looks at the run")
	cmd.Flags().BoolVar(&order.Finish, "finish", false, "let running attempts go to their end, landing included")
	return a.repeatable(cmd)
}

func (a *app) resumeCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:     "resume RUN",
		Short:   "Let a paused run go on",
		Example: "  starter resume tls-2026-11-3fa9c1\n  starter resume tls-2026-11-3fa9c1 --now\n  starter resume tls-2026-11-3fa9c1 --budget 20000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("budget") && order.Budget <= 0 {
				return usage("resume %s: the budget must be a positive number of tokens: `starter budget set` also removes a cap", args[0])
			}
			return a.order(cmd.Context(), args[0], contract.CommandResume, order)
		},
	}
	cmd.Flags().BoolVar(&order.Now, "now", false, "end a wait for a provider's quota as well: one attempt tries each account")
	cmd.Flags().Int64Var(&order.Budget, "budget", 0, "the run may use this many tokens in all from now on")
	return a.repeatable(cmd)
}

func (a *app) cancelCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "End a run; branch, salvage and report stay",
		Example: "  starter cancel tls-2026-11-3fa9c1 --reason 'wrong plan'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd.Context(), args[0], contract.CommandCancel, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "stands in the report")
	return a.repeatable(cmd)
}

func (a *app) gateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Run a run's gate again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.repeatable(&cobra.Command{
		Use:     "retry RUN",
		Short:   "Run the gate again that holds a run",
		Example: "  starter gate retry tls-2026-11-3fa9c1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd.Context(), args[0], contract.CommandGateRetry, contract.Operator{})
		},
	}))
	return cmd
}

// operatorName says who gave an order, for the run's history.
func operatorName() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
