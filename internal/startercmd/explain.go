package startercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain RUN NODE",
		Short:   "Say why a node stands where it does: what it waits for, its attempts, the pools that passed it over",
		Example: "  starter explain tls-2026-11-3fa9c1 B-001",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			v, err := explain(cmd.Context(), c, args[0], args[1])
			if err != nil {
				return err
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(v)
			}
			writeExplanation(a.Out, v)
			return nil
		},
	}
}

// explain asks the run, and the drive that has the node now.
func explain(ctx context.Context, c client.Client, run, node string) (contract.NodeView, error) {
	v, err := ask[contract.NodeView](ctx, c, contract.RemediationID(run), contract.QueryExplain, node)
	if err != nil || v.State != contract.NodeRunning {
		return v, err
	}
	status, err := view(ctx, c, run)
	if err != nil {
		return v, err
	}
	for _, drive := range status.Drives {
		reasons, err := ask[[]contract.PoolReason](ctx, c, contract.LevelID(run, drive), contract.QueryExplain, node)
		if err == nil && len(reasons) > 0 { // a drive that has just closed has no say any more
			v.Passed = reasons
		}
	}
	return v, nil
}

func writeExplanation(w io.Writer, v contract.NodeView) {
	fmt.Fprintf(w, "%s is %s (level %d, opening %d)\n", v.ID, v.State, v.Level, v.Opening)
	if v.Reason != "" {
		fmt.Fprintf(w, "  because   %s\n", v.Reason)
	}
	if v.Cause != "" {
		fmt.Fprintf(w, "  cause     %s\n", v.Cause)
	}
	if v.NotBefore != nil {
		fmt.Fprintf(w, "  not before %s\n", v.NotBefore.Local().Format(time.DateTime))
	}
	for _, wait := range v.Waits {
		fmt.Fprintf(w, "  waits     %s\n", wait)
	}
	for _, p := range v.Passed {
		fmt.Fprintf(w, "  pool %s: %s\n", p.Pool, p.Reason)
	}
	for _, item := range v.Items {
		fmt.Fprintf(w, "  finding %s: %s %s\n", item.Finding, item.Status, item.Reason)
	}
	for _, at := range v.Attempts {
		charged := "charged"
		if !at.Charged {
			charged = "not charged"
		}
		fmt.Fprintf(w, "  attempt %d on %s: %s %s (%s, %ds) %s\n", at.K, at.Pool, at.Outcome, at.Cause, charged, at.Seconds, at.Reason)
		if at.Commit != "" {
			fmt.Fprintf(w, "    landed as %s on %s, verified on %s\n", short(at.Commit), short(at.LandedOn), short(at.VerifiedOn))
		}
		if at.Salvage != "" {
			fmt.Fprintf(w, "    its unlanded work: starter diff RUN %s/%d\n", v.ID, at.K)
		}
	}
}
