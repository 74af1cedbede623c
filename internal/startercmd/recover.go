package startercmd

import (
	"slices"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
)

func (a *app) recoverCommand() *cobra.Command {
	ways := []string{contract.RecoverContinue, contract.RecoverClean, contract.RecoverAbandon}
	var order contract.Operator
	cmd := &cobra.Command{
		Use:   "recover RUN continue|clean|abandon",
		Short: "Go on after a recovery hold, or give the run up",
		Long: "Go on after a recovery hold: the facts do not match what the run left (`starter status` says which).\n\n" +
			"  continue  the facts are right again, or may be taken as they are: they are checked, kept trees are continued.\n" +
			"            branch_moved: put refs/mendflow/run/RUN back first. host_lost: nothing of the run is alive there any more.\n" +
			"  clean     the run puts right what it can: every node starts clean (kept trees stay as salvage), and a truth\n" +
			"            that somebody else moved goes back to what the run landed; what was there is kept under\n" +
			"            refs/mendflow/salvage/RUN/.\n" +
			"  abandon   the run ends as cancelled; what it landed, salvage and report stay.",
		Example: "  starter recover tls-2026-11-3fa9c1 continue\n  starter recover tls-2026-11-3fa9c1 clean",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(ways, args[1]) {
				return usage("recover %s: want continue, clean or abandon, not %q", args[0], args[1])
			}
			order.How = args[1]
			return a.order(cmd.Context(), args[0], contract.CommandRecover, order)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "of abandon: stands in the report")
	return a.repeatable(cmd)
}
