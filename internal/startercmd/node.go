package startercmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"mendflow/internal/config"
	"mendflow/internal/contract"
)

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Work on a run's nodes yourself: claim one, accept what was done, or release it",
		Long: "Work on a run's nodes yourself, or let an attended agent do so. The run needs a pool of provider host\n" +
			"(`starter pools set` gives it one while it goes on). A claimed node has a worktree and a prompt; nothing of\n" +
			"Mendflow runs there until you accept or release it. Without a sign of life for long (option `quiet` of the\n" +
			"pool, 15 minutes) the claim is taken back and the work is put aside.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.nodeClaimCommand(), a.nodeAcceptCommand(), a.nodeReleaseCommand())
	return cmd
}

// claimPoll is how often a run is asked about a claim.
const claimPoll = 300 * time.Millisecond

// claimed is what `node claim --json` prints: the desk, and the prompt's text.
type claimed struct {
	contract.Desk
	Text string `json:"prompt_text"`
}

func (a *app) nodeClaimCommand() *cobra.Command {
	var order contract.Operator
	var keep, wait bool
	cmd := &cobra.Command{
		Use:   "claim RUN [NODE]",
		Short: "Take a node, the next one or a certain one, and print its worktree and prompt",
		Long: "Take a node, the next one or a certain one, and print its worktree and prompt. Naming a node that you hold\n" +
			"already prints it again and is a sign of life; so is every change in its worktree.",
		Example: "  starter node claim tls-2026-11-3fa9c1\n  starter node claim tls-2026-11-3fa9c1 B-001 --json\n  starter node claim tls-2026-11-3fa9c1 --wait --keep",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				order.Node = args[1]
			}
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			order.By = operatorName()
			if order.Host == "" {
				order.Host = a.workerHere(cmd.Context(), c)
			}
			return a.claim(cmd.Context(), c, args[0], order, keep, wait)
		},
	}
	cmd.Flags().StringVar(&order.Pool, "pool", "", "the host pool, when the run has several")
	cmd.Flags().StringVar(&order.Host, "host", "", "host on which the worktree is made (default: this machine when a worker runs here, else any that serves the pool)")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is a node")
	cmd.Flags().BoolVar(&keep, "keep", false, "stay, and keep the claim alive until it is accepted or released")
	return cmd
}

// workerHere is the host identity of the worker on this machine; empty when none runs.
func (a *app) workerHere(ctx context.Context, c client.Client) string {
	state, err := a.state()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(state, "host-id")); err != nil {
		return ""
	}
	id, err := config.HostID(state)
	if err != nil {
		return ""
	}
	described, err := c.DescribeTaskQueue(ctx, contract.HostQueue(id), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil || len(described.GetPollers()) == 0 {
		return ""
	}
	return id
}

func (a *app) claim(ctx context.Context, c client.Client, id string, order contract.Operator, keep, wait bool) error {
	for {
		row, err := requestNode(ctx, c, id, order)
		switch {
		case err != nil:
			return err
		case row.State.Open():
			return a.deskOf(ctx, c, id, row, keep)
		case !wait:
			return fmt.Errorf("claim a node of %s: %s", id, row.Reason)
		}
		if err := a.awaitOffer(ctx, c, id, order.Node, row.Reason); err != nil {
			return err
		}
	}
}

// requestNode asks for a node and returns the claim once it has one or was declined.
func requestNode(ctx context.Context, c client.Client, id string, order contract.Operator) (contract.ClaimRow, error) {
	order.Claim = rand.Text()
	answer, err := sendOrder(ctx, c, contract.RemediationID(id), contract.CommandNodeClaim, order)
	if err != nil {
		return contract.ClaimRow{}, err
	}
	row := *answer.Claim
	for row.State == contract.ClaimAsked {
		if err := nap(ctx); err != nil {
			withdraw(ctx, c, id, row)
			return row, err
		}
		if row, err = claimRow(ctx, c, id, row.ID); err != nil {
			return row, err
		}
	}
	return row, nil
}

// withdraw gives a claim back whose asker does not wait for it any more.
func withdraw(ctx context.Context, c client.Client, id string, row contract.ClaimRow) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
	defer cancel()
	// Nobody is there any more to be told of an error; a claim that stays goes quiet.
	_, _ = sendOrder(ctx, c, contract.RemediationID(id), contract.CommandNodeRelease, contract.Operator{Claim: row.ID, By: row.By, Reason: "withdrawn"})
}

func nap(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(claimPoll):
		return nil
	}
}

func claimRow(ctx context.Context, c client.Client, id, claim string) (contract.ClaimRow, error) {
	rows, err := ask[[]contract.ClaimRow](ctx, c, contract.RemediationID(id), contract.QueryClaims)
	if err != nil {
		return contract.ClaimRow{}, err
	}
	for _, row := range rows {
		if row.ID == claim {
			return row, nil
		}
	}
	return contract.ClaimRow{}, fmt.Errorf("find claim %s of %s: the run does not know it any more", claim, id)
}

// awaitOffer waits until it makes sense to ask again: queries leave no trace in
// the run's history, refused claims do.
func (a *app) awaitOffer(ctx context.Context, c client.Client, id, node, why string) error {
	fmt.Fprintf(a.Err, "waiting: %s\n", why)
	for {
		if err := nap(ctx); err != nil {
			return err
		}
		v, err := view(ctx, c, id)
		switch {
		case err != nil:
			return err
		case v.Status.Closed() || v.Status == contract.RunClosing:
			return fmt.Errorf("claim a node of %s: the run is %s", id, v.Status)
		case v.Status != contract.RunImplementing:
			continue
		}
		for _, drive := range v.Drives {
			status, err := ask[contract.LevelStatus](ctx, c, contract.LevelID(id, drive), contract.QueryStatus)
			if err != nil {
				continue // it may have closed meanwhile
			}
			for _, waiting := range status.Waiting {
				if node == "" || node == waiting {
					return nil
				}
			}
		}
	}
}

// deskOf waits until the node's tree is there and prints it.
func (a *app) deskOf(ctx context.Context, c client.Client, id string, row contract.ClaimRow, keep bool) error {
	node := contract.NodeID(id, row.Drive, row.Node, row.Attempt)
	for {
		desk, err := ask[contract.Desk](ctx, c, node, contract.QueryDesk)
		if err == nil && desk.Worktree != "" {
			return a.showDesk(ctx, c, id, desk, keep)
		}
		now, rowErr := claimRow(ctx, c, id, row.ID)
		switch {
		case rowErr != nil:
			return rowErr
		case !now.State.Open():
			return fmt.Errorf("claim %s of %s: %s", row.Node, id, now.Reason)
		}
		if err := nap(ctx); err != nil {
			return err
		}
	}
}

func (a *app) showDesk(ctx context.Context, c client.Client, id string, desk contract.Desk, keep bool) error {
	text, err := a.promptText(ctx, desk)
	if err != nil {
		return err
	}
	if a.json {
		if err := json.NewEncoder(a.Out).Encode(claimed{Desk: desk, Text: text}); err != nil {
			return err
		}
	} else {
		writeDesk(a.Out, desk, text, a.workerHere(ctx, c))
	}
	if !keep {
		return nil
	}
	return a.keepClaim(ctx, c, id, desk)
}

func (a *app) promptText(ctx context.Context, desk contract.Desk) (string, error) {
	if data, err := os.ReadFile(desk.PromptFile); err == nil {
		return string(data), nil
	}
	store, err := a.store(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = store.Close() }()
	data, err := store.Get(ctx, desk.Prompt.URI)
	if err != nil {
		return "", fmt.Errorf("read prompt of %s: %w", desk.Node, err)
	}
	return string(data), nil
}

func writeDesk(w io.Writer, d contract.Desk, text, here string) {
	fmt.Fprintf(w, "%s is yours: attempt %d on pool %s\n", d.Node, d.Attempt, d.Pool)
	where := ""
	if d.Host != here {
		where = " on host " + d.Host
	}
	fmt.Fprintf(w, "  worktree   %s%s\n", d.Worktree, where)
	fmt.Fprintf(w, "  prompt     %s\n", d.PromptFile)
	fmt.Fprintf(w, "  result     %s (optional)\n", d.ResultFile)
	fmt.Fprintf(w, "  hand over  starter node accept %s %s\n", d.Run, d.Node)
	fmt.Fprintf(w, "  give back  starter node release %s %s\n", d.Run, d.Node)
	if d.QuietUntil != nil {
		fmt.Fprintf(w, "  taken back at %s unless something changes in the worktree\n", d.QuietUntil.Local().Format(time.DateTime))
	}
	fmt.Fprintf(w, "\n%s", text)
}

// keepClaim gives signs of life until the claim is over.
func (a *app) keepClaim(ctx context.Context, c client.Client, id string, desk contract.Desk) error {
	row, err := claimRow(ctx, c, id, desk.Claim)
	if err != nil {
		return err
	}
	every := max(time.Duration(row.Quiet)*time.Second/3, claimPoll)
	for next := time.Now().Add(every); row.State.Open(); {
		if err := nap(ctx); err != nil {
			return err
		}
		if time.Now().After(next) {
			next = time.Now().Add(every)
			order := contract.Operator{Claim: desk.Claim, By: desk.By}
			if _, err := sendOrder(ctx, c, contract.RemediationID(id), contract.CommandNodeClaim, order); err != nil {
				return err
			}
		}
		if row, err = claimRow(ctx, c, id, desk.Claim); err != nil {
			return err
		}
	}
	return a.showEnd(row)
}
