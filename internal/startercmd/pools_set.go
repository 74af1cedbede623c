package startercmd

import (
	"slices"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
)

func (a *app) poolsSetCommand() *cobra.Command {
	var pools string
	cmd := &cobra.Command{
		Use:   "set RUN",
		Short: "Give a run other pools while it goes on",
		Long: "Give a run other pools while it goes on. The file replaces the run's composition: pools that it leaves out\n" +
			"start nothing any more (what runs there goes to its end), and whatever waits for a pool is tried again.\n" +
			"A pool that runs something else now starts its nodes fresh. The limit_patterns stay those of the start.",
		Example: "  starter pools set tls-2026-11-3fa9c1 --pools more-pools.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if pools == "" {
				return usage("change pools: give --pools FILE")
			}
			file, err := a.readPools(pools)
			if err != nil {
				return err
			}
			order := contract.Operator{Pools: slices.DeleteFunc(file.Pools, func(p contract.Pool) bool { return slices.Contains(file.Exclude, p.ID) })}
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if err := a.checkServed(cmd.Context(), c, order.Pools); err != nil {
				return err
			}
			return a.order(cmd.Context(), args[0], contract.CommandPools, order)
		},
	}
	cmd.Flags().StringVar(&pools, "pools", "", "pools file: the run's composition from now on")
	return a.repeatable(cmd)
}
