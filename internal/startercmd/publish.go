package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/report"
)

func (a *app) publishCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Publish a closed run's result again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var partial, detach bool
	retry := &cobra.Command{
		Use:   "retry RUN",
		Short: "Try a run's closing action again",
		Long: "Try a run's closing action (merge, push, pull-request) again: after its automatic tries failed, or at once when\n" +
			"the run waits for its next one. What is there already is looked up first, so nothing is published twice.",
		Example: "  starter publish retry tls-2026-11-3fa9c1\n  starter publish retry tls-2026-11-3fa9c1 --allow-partial",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.publishRetry(cmd.Context(), c, args[0], partial, detach)
		},
	}
	retry.Flags().BoolVar(&partial, "allow-partial", false, "publish what landed although the run is not green")
	retry.Flags().BoolVar(&detach, "detach", false, "return at once")
	cmd.AddCommand(a.repeatable(retry))
	return cmd
}

// publishRetry hurries a run that is publishing, or publishes beside one that has closed.
func (a *app) publishRetry(ctx context.Context, c client.Client, run string, partial, detach bool) error {
	described, err := c.DescribeWorkflow(ctx, contract.RemediationID(run), "")
	var missing *serviceerror.NotFound
	switch {
	case err == nil && described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return a.order(ctx, run, contract.CommandPublishRetry, contract.Operator{})
	case err != nil && !errors.As(err, &missing): // one that the server forgot has its report
		return fmt.Errorf("look for run %s: %w", run, err)
	}
	input, err := a.publicationInput(ctx, run, partial)
	if err != nil {
		return err
	}
	handle, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: contract.PublicationID(run), TaskQueue: contract.QueueMain,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            fmt.Sprintf("%s of %s", input.Action, run),
	}, contract.WorkflowPublication, input)
	if err != nil {
		return fmt.Errorf("publish %s: %w", run, err)
	}
	// One that waits for its next try does it now; one that just began waits for nothing.
	if err := c.SignalWorkflow(ctx, handle.GetID(), "", contract.CommandPublishRetry, nil); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("hurry publication of %s: %w", run, err)
	}
	if detach {
		return a.sayPublication(run, contract.PublicationView{Action: input.Action, State: contract.PublishPending})
	}
	var result contract.PublicationResult
	if err := handle.Get(ctx, &result); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "stopped waiting; the publication goes on: starter publish retry %s\n", run)
			return exit(ExitInterrupted)
		}
		return fmt.Errorf("publish %s: %w", run, err)
	}
	if err := a.sayPublication(run, result.Publication); err != nil {
		return err
	}
	if result.Publication.State != contract.PublishSucceeded {
		return exit(ExitError)
	}
	return nil
}

// publicationInput is made of what the artifact store keeps, so that it can be
// made long after the run.
func (a *app) publicationInput(ctx context.Context, run string, partial bool) (contract.PublicationInput, error) {
	var none contract.PublicationInput
	model, _, err := a.reportModel(ctx, run)
	if err != nil {
		return none, err
	}
	if err := mayPublish(model, partial); err != nil {
		return none, err
	}
	store, err := a.store(ctx)
	if err != nil {
		return none, err
	}
	defer func() { _ = store.Close() }()
	key := contract.ConfigKey(run)
	entries, err := store.List(ctx, key)
	if err == nil && !slices.ContainsFunc(entries, func(e artifacts.Entry) bool { return e.Key == key }) {
		err = artifacts.ErrNotFound
	}
	if err != nil {
		return none, fmt.Errorf("read configuration of %s: %w", run, err)
	}
	return contract.PublicationInput{
		Action:  string(model.Publication.Action),
		Publish: contract.PublishInput{Run: run, Config: contract.Artifact{URI: key}, Head: model.HeadCommit},
	}, nil
}

// mayPublish refuses what would be no publication of this run.
func mayPublish(m report.Model, partial bool) error {
	p := m.Publication
	switch {
	case p == nil || p.Action == plan.CloseNone:
		return usage("publish %s: its plan has no closing action: take the branch %s, or start a run with close.action", m.Run, m.Branch)
	case p.State == string(contract.PublishSucceeded):
		return fmt.Errorf("publish %s: it is published already: %s", m.Run, strings.TrimSpace(p.URL+" "+p.Detail))
	case m.Verdict.Status != contract.RunCompleted && m.Verdict.Status != contract.RunBlocked:
		return fmt.Errorf("publish %s: the run is %s: take the branch %s by hand", m.Run, m.Verdict.Status, m.Branch)
	case m.Verdict.Status == contract.RunBlocked && !partial:
		return fmt.Errorf("publish %s: the run is not green: give --allow-partial to publish what landed", m.Run)
	case m.HeadCommit == "" || m.HeadCommit == m.BaseCommit:
		return fmt.Errorf("publish %s: nothing landed", m.Run)
	}
	return nil
}

func (a *app) sayPublication(run string, v contract.PublicationView) error {
	if a.json {
		return json.NewEncoder(a.Out).Encode(contract.PublicationResult{Run: run, Publication: v})
	}
	fmt.Fprintf(plain{a.Out}, "%s: %s\n", run, publicationLine(v))
	return nil
}

// publicationLine says how far a closing action came.
func publicationLine(v contract.PublicationView) string {
	line := fmt.Sprintf("%s %s", v.Action, v.State)
	if v.Attempts > 1 {
		line += fmt.Sprintf(" after %d tries", v.Attempts)
	}
	for _, part := range []string{v.URL, v.Detail} {
		if part != "" {
			line += ", " + part
		}
	}
	if v.Until != nil {
		line += ", again at " + v.Until.Local().Format(time.DateTime)
	}
	return line
}
