package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

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
	return cmd
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
	return cmd
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
	return cmd
}

func (a *app) gateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Run a run's gate again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "retry RUN",
		Short:   "Run the gate again that holds a run",
		Example: "  starter gate retry tls-2026-11-3fa9c1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd.Context(), args[0], contract.CommandGateRetry, contract.Operator{})
		},
	})
	return cmd
}

func (a *app) recoverCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "recover RUN continue|abandon",
		Short: "Go on after a recovery hold, or give the run up",
		Long: "Go on after a recovery hold. For branch_moved: put refs/mendflow/run/RUN back where the run left it\n" +
			"(`starter status` names the commit), then continue; or abandon, which ends the run and keeps what it landed.",
		Example: "  starter recover tls-2026-11-3fa9c1 continue",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "continue" && args[1] != "abandon" {
				return usage("recover %s: want continue or abandon, not %q", args[0], args[1])
			}
			return a.order(cmd.Context(), args[0], contract.CommandRecover, contract.Operator{How: args[1]})
		},
	}
}

// order sends an operator command as an update and prints what it did.
func (a *app) order(ctx context.Context, run, command string, order contract.Operator) error {
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	order.By = operatorName()
	answer, err := sendOrder(ctx, c, contract.RemediationID(run), command, order)
	if err != nil {
		return err
	}
	if a.json {
		return json.NewEncoder(a.Out).Encode(answer)
	}
	fmt.Fprintf(a.Out, "%s: %s\n", run, answer.Status)
	for _, done := range answer.Done {
		fmt.Fprintf(a.Out, "  %s\n", done)
	}
	for _, h := range answer.Holds {
		fmt.Fprintf(a.Out, "  held by %s\n", holdLine(h))
	}
	return nil
}

func sendOrder(ctx context.Context, c client.Client, workflowID, command string, order contract.Operator) (contract.OperatorAnswer, error) {
	var answer contract.OperatorAnswer
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: command, Args: []any{order},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &missing):
		return answer, fmt.Errorf("%s %s: the run has closed or never was: `starter runs` lists them", command, workflowID)
	case errors.Is(err, context.DeadlineExceeded):
		return answer, fmt.Errorf("%s %s: %w", command, workflowID, errNoWorker)
	}
	return answer, fmt.Errorf("%s %s: %w", command, workflowID, err)
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
