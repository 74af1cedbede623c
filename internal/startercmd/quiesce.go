package startercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"mendflow/internal/contract"
)

func (a *app) quiesceCommand() *cobra.Command {
	var order contract.Operator
	cmd := &cobra.Command{
		Use:   "quiesce RUN",
		Short: "Wait until nothing of a run is alive on any host",
		Long: "Wait until nothing of a run is alive on any host: no worker, no verification, no gate, no drive. The run is not\n" +
			"stopped by this: pause it first. A run that stays `pausing` waits for a host that does not answer, or for a\n" +
			"program that cannot be ended; --force gives these up. The run is then not paused, it has to be recovered\n" +
			"(hold recovery, host_lost): look at the host yourself before `starter recover RUN continue`.",
		Example: "  starter pause tls-2026-11-3fa9c1 && starter quiesce tls-2026-11-3fa9c1\n  starter quiesce tls-2026-11-3fa9c1 --force",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if order.Force {
				return a.order(cmd.Context(), args[0], contract.CommandQuiesce, order)
			}
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return a.quiesce(cmd.Context(), c, args[0])
		},
	}
	cmd.Flags().BoolVar(&order.Force, "force", false, "give up what does not end: the run has to be recovered then")
	return a.repeatable(cmd)
}

// quiesce waits until the run is quiet, and says what it waits for.
func (a *app) quiesce(ctx context.Context, c client.Client, run string) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	said := ""
	for {
		v, running, err := fullView(ctx, c, run)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(a.Err, "stopped waiting; nothing was changed\n")
			return exit(ExitInterrupted)
		case err != nil && !errors.Is(err, errNoWorker):
			return err
		case err == nil && quietNow(v):
			if a.json {
				return json.NewEncoder(a.Out).Encode(v)
			}
			fmt.Fprintf(a.Out, "%s: %s\n  nothing of the run is alive\n", run, v.Status)
			return nil
		}
		if text := waitsFor(v, running, err); text != said {
			fmt.Fprintln(a.Err, text)
			said = text
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// quietNow reports whether the status proves that nothing of the run is alive.
func quietNow(v contract.RunView) bool {
	still := []contract.RunStatus{contract.RunQueued, contract.RunPaused, contract.RunRecovery}
	return len(v.Drives) == 0 && len(v.Unproven) == 0 && (slices.Contains(still, v.Status) || v.Status.Closed() && v.ClosedAt != nil)
}

// waitsFor says what quiesce waits for.
func waitsFor(v contract.RunView, running []contract.RunningNode, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(v.Unproven) > 0:
		return unprovenLine(v.Run, v.Unproven)
	case v.Status == contract.RunPausing:
		return fmt.Sprintf("pausing: %d attempts under way", len(running))
	default:
		return fmt.Sprintf("the run goes on (%s): stop it with: starter pause %s", v.Status, v.Run)
	}
}

// unprovenLine says what keeps a run pausing, and the way out.
func unprovenLine(run string, list []contract.Unproven) string {
	u := list[0]
	what, host := "the gate", "host "+u.Host
	if u.Node != "" {
		what = fmt.Sprintf("attempt %d of %s", u.Attempt, u.Node)
	}
	if u.Host == "" {
		host = "an unknown host"
	}
	line := fmt.Sprintf("%s does not say that %s has ended, since %s", host, what, u.Since.Local().Format(time.DateTime))
	if u.Why != "" {
		line += ": " + u.Why
	}
	if n := len(list) - 1; n > 0 {
		line += fmt.Sprintf(" (and %d more)", n)
	}
	return line + "; start its worker again, or give it up with: starter quiesce " + run + " --force"
}

// stands reports whether a run waits for somebody: --no-hold ends the waiting then.
func stands(status contract.RunStatus) bool {
	return status == contract.RunPaused || status == contract.RunRecovery
}
