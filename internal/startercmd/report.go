package startercmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/report"
)

// reportFormats are the renderings of a report.
const reportFormats = "md, json, sarif or junit"

func (a *app) reportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:     "report RUN",
		Short:   "Print the report of a closed run",
		Long:    "Print the report of a closed run. It is read from the artifact store, also after the server has forgotten the run.",
		Example: "  starter report tls-2026-11-3fa9c1\n  starter report tls-2026-11-3fa9c1 --format json -o outcomes.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json && !cmd.Flags().Changed("format") {
				format = "json"
			}
			data, err := a.renderReport(cmd.Context(), args[0], format)
			if err != nil {
				return err
			}
			if output != "" {
				return os.WriteFile(output, data, 0o644)
			}
			_, err = a.Out.Write(data)
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "md", reportFormats)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file")
	return cmd
}

func (a *app) renderReport(ctx context.Context, run, format string) ([]byte, error) {
	model, data, err := a.reportModel(ctx, run)
	if err != nil {
		return nil, err
	}
	switch format {
	case "md":
		return report.Markdown(model), nil
	case "json":
		return data, nil
	case "sarif":
		return report.SARIF(model)
	case "junit":
		return report.JUnit(model)
	}
	return nil, usage("print report: unknown format %q: want %s", format, reportFormats)
}

// reportModel reads a run's report from the artifact store.
func (a *app) reportModel(ctx context.Context, run string) (report.Model, []byte, error) {
	store, err := a.store(ctx)
	if err != nil {
		return report.Model{}, nil, err
	}
	defer func() { _ = store.Close() }()
	data, err := store.Get(ctx, contract.ReportKey(run, contract.ReportJSON))
	if errors.Is(err, artifacts.ErrNotFound) {
		return report.Model{}, nil, fmt.Errorf("read report of %s: there is none yet: it is written when the run closes (`starter status %s`)", run, run)
	}
	if err != nil {
		return report.Model{}, nil, fmt.Errorf("read report of %s: %w", run, err)
	}
	model, err := report.Parse(data)
	return model, data, err
}

// closed prints how a run ended, from its report where there is one, and returns its exit code.
func (a *app) closed(ctx context.Context, v contract.RunView) error {
	if a.json {
		return exit(closedCode(v.Status, v.Publication))
	}
	model, _, err := a.reportModel(ctx, v.Run)
	if err != nil {
		fmt.Fprintf(a.Out, "%s: %s %s\n", v.Run, v.Status, v.Reason)
		fmt.Fprintln(a.Err, "starter:", err)
		return exit(closedCode(v.Status, v.Publication))
	}
	fmt.Fprint(a.Out, report.Terminal(model, "starter report "+v.Run))
	return exit(closedCode(v.Status, v.Publication))
}
