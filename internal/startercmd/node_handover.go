package startercmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mendflow/internal/contract"
	"mendflow/internal/run"
)

// showEnd tells how a claim ended; the error says that nothing of it landed.
func (a *app) showEnd(row contract.ClaimRow) error {
	if a.json {
		if err := json.NewEncoder(a.Out).Encode(row); err != nil {
			return err
		}
	}
	if row.Outcome != contract.OutcomeSuccess || row.Became == contract.NodeBlocked {
		text := row.Reason
		if row.Salvage != "" {
			text += fmt.Sprintf("; the work is kept: starter diff RUN %s/%d", row.Node, row.Attempt)
		}
		return fmt.Errorf("%s attempt %d did not land (%s): %s", row.Node, row.Attempt, cmp.Or(string(row.Became), string(row.Outcome)), text)
	}
	if a.json {
		return nil
	}
	if row.Commit == "" {
		fmt.Fprintf(a.Out, "%s is done, nothing was to be changed\n", row.Node)
		return nil
	}
	fmt.Fprintf(a.Out, "%s landed as %s\n", row.Node, short(row.Commit))
	return nil
}

func (a *app) nodeAcceptCommand() *cobra.Command {
	var result string
	var detach bool
	cmd := &cobra.Command{
		Use:   "accept RUN NODE",
		Short: "Hand over what was done for a claimed node: it is verified and landed",
		Long: "Hand over what was done for a claimed node: it is checked against the node's scope, verified and landed, as\n" +
			"any worker's work. Without a result file every finding counts as repaired. Exit code 1: it did not land.",
		Example: "  starter node accept tls-2026-11-3fa9c1 B-001\n  starter node accept tls-2026-11-3fa9c1 B-001 --result result.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			order := contract.Operator{Node: args[1], By: operatorName()}
			if result != "" {
				if order.Result, err = a.storeResult(cmd.Context(), args[0], args[1], result); err != nil {
					return err
				}
			}
			answer, err := sendOrder(cmd.Context(), c, contract.RemediationID(args[0]), contract.CommandNodeAccept, order)
			if err != nil {
				return err
			}
			row := *answer.Claim
			if !row.State.Open() {
				return fmt.Errorf("accept %s of %s: %s", args[1], args[0], row.Reason)
			}
			if detach {
				return a.showAnswer(args[0], answer)
			}
			for row.State.Open() {
				if err := nap(cmd.Context()); err != nil {
					return err
				}
				if row, err = claimRow(cmd.Context(), c, args[0], row.ID); err != nil {
					return err
				}
			}
			return a.showEnd(row)
		},
	}
	cmd.Flags().StringVar(&result, "result", "", "result file (the prompt says what it holds)")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for the landing")
	return cmd
}

// storeResult brings a result file to where the host of the tree finds it.
func (a *app) storeResult(ctx context.Context, id, node, path string) (*contract.Artifact, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if len(data) > run.MaxResultBytes || !json.Valid(data) {
		return nil, usage("accept %s: %s is no JSON of at most %d bytes: the prompt shows what a result holds", node, path, run.MaxResultBytes)
	}
	store, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	ref, err := store.Put(ctx, fmt.Sprintf("runs/%s/nodes/%s/handed-over-%s.json", id, node, rand.Text()), data)
	if err != nil {
		return nil, fmt.Errorf("store result: %w", err)
	}
	stored := contract.Artifact(ref)
	stored.Tail = ""
	return &stored, nil
}

func (a *app) nodeReleaseCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:     "release RUN NODE",
		Short:   "Give a claimed node back; what was done is put aside",
		Example: "  starter node release tls-2026-11-3fa9c1 B-001 --reason 'too large for me'",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			order.Node, order.By = args[1], operatorName()
			answer, err := sendOrder(cmd.Context(), c, contract.RemediationID(args[0]), contract.CommandNodeRelease, order)
			if err == nil && !answer.Claim.State.Open() {
				err = errors.New(answer.Claim.Reason)
			}
			if err != nil {
				return fmt.Errorf("release %s of %s: %w", args[1], args[0], err)
			}
			return a.showAnswer(args[0], answer)
		},
	}
	cmd.Flags().StringVar(&order.Reason, "reason", "", "shown with the attempt")
	return cmd
}

// showAnswer prints what an order did.
func (a *app) showAnswer(id string, answer contract.OperatorAnswer) error {
	if a.json {
		return json.NewEncoder(a.Out).Encode(answer)
	}
	a.sayAnswer(id, answer)
	return nil
}
