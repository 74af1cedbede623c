package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

func (a *app) poolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pools",
		Short: "Show, reopen and change the pools of runs and their accounts",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.poolsStatusCommand(), a.poolsReopenCommand(), a.poolsSetCommand())
	return cmd
}

func (a *app) poolsStatusCommand() *cobra.Command {
	var pools string
	cmd := &cobra.Command{
		Use:     "status [ACCOUNT…]",
		Short:   "Show the slots, pauses and windows of accounts",
		Example: "  starter pools status team-a\n  starter pools status --pools pools.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			accounts := args
			if pools != "" {
				file, err := a.readPools(pools)
				if err != nil {
					return err
				}
				for _, p := range file.Pools {
					if !slices.Contains(accounts, p.Account) {
						accounts = append(accounts, p.Account)
					}
				}
			}
			if len(accounts) == 0 {
				return usage("show pools: name an account (a pool without one is its own), or give --pools FILE")
			}
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.showAccounts(cmd.Context(), c, accounts)
		},
	}
	cmd.Flags().StringVar(&pools, "pools", "", "show the accounts of this pools file")
	return cmd
}

func (a *app) showAccounts(ctx context.Context, c client.Client, accounts []string) error {
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	if !a.json {
		fmt.Fprintln(table, "ACCOUNT\tMODEL\tSTATE\tRUNNING\tWAITING\tUNTIL\tREASON")
	}
	for _, account := range accounts {
		s, err := askBroker(ctx, c, account)
		if err != nil {
			return err
		}
		if a.json {
			if err := json.NewEncoder(a.Out).Encode(s); err != nil {
				return err
			}
			continue
		}
		if len(s.States) == 0 {
			fmt.Fprintf(table, "%s\t*\tlive\t%d of %d\t%d\t\t\n", s.Account, s.Running, s.Max, s.Waiting)
		}
		for _, state := range s.States {
			until := ""
			if state.Until != nil {
				until = state.Until.Local().Format(time.DateTime)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%d of %d\t%d\t%s\t%s\n", s.Account, orStar(state.Model), state.State, s.Running, s.Max, s.Waiting, until, state.Reason)
		}
	}
	return table.Flush()
}

func orStar(model string) string {
	if model == "" {
		return "*"
	}
	return model
}

// askBroker returns what the broker of an account knows; an account that no run has used yet is live.
func askBroker(ctx context.Context, c client.Client, account string) (contract.BrokerStatus, error) {
	value, err := c.QueryWorkflow(ctx, contract.BrokerID(account), "", contract.QueryStatus)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return contract.BrokerStatus{Account: account, Coverage: "none"}, nil
	}
	if err != nil {
		return contract.BrokerStatus{}, explainQuery(contract.BrokerID(account), err)
	}
	var s contract.BrokerStatus
	if err := value.Get(&s); err != nil {
		return s, fmt.Errorf("read status of account %s: %w", account, err)
	}
	return s, nil
}

func (a *app) poolsReopenCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:     "reopen ACCOUNT",
		Short:   "End the pauses and exhaustions of an account; it is probed by one attempt first",
		Example: "  starter pools reopen team-a\n  starter pools reopen team-a --model opus",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			order.By, order.RequestID = operatorName(), a.requestID
			ctx, cancel := context.WithTimeout(cmd.Context(), queryTimeout)
			defer cancel()
			handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
				WorkflowID: contract.BrokerID(args[0]), UpdateName: contract.CommandReopen, Args: []any{order},
				WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			var missing *serviceerror.NotFound
			if errors.As(err, &missing) {
				return fmt.Errorf("reopen %s: no run has used this account: a pool without an account of its own is named by its id", args[0])
			}
			var s contract.BrokerStatus
			if err == nil {
				err = handle.Get(ctx, &s)
			}
			if err != nil {
				return fmt.Errorf("reopen %s: %w", args[0], err)
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(s)
			}
			fmt.Fprintf(a.Out, "account %s is open again\n", args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&order.Model, "model", "", "only what holds for this model")
	return a.repeatable(cmd)
}
