package startercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"mendflow/internal/contract"
)

func (a *app) setupCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "setup",
		Short:   "Register search attributes and retention in the namespace, and start the scheduler",
		Example: "  starter setup --address temporal.example:7233 --namespace mendflow",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			options, err := a.connection.Options(a.logger())
			if err != nil {
				return err
			}
			done, err := setupNamespace(cmd.Context(), c, options.Namespace)
			if err != nil {
				return err
			}
			if err := ensureScheduler(cmd.Context(), c); err != nil {
				return err
			}
			if a.json {
				return json.NewEncoder(a.Out).Encode(done)
			}
			fmt.Fprintf(a.Out, "namespace %s: %d search attributes added, %d were there; closed runs are remembered for %d days; the scheduler runs\n",
				options.Namespace, len(done.Added), len(done.Present), contract.RetentionDays)
			return nil
		},
	}
}

// setupDone says what setup changed.
type setupDone struct {
	Namespace string   `json:"namespace"`
	Added     []string `json:"added"`
	Present   []string `json:"present"`
}

// setupNamespace registers what runs need; doing it twice changes nothing.
func setupNamespace(ctx context.Context, c client.Client, namespace string) (setupDone, error) {
	done := setupDone{Namespace: namespace, Added: []string{}, Present: []string{}}
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return done, fmt.Errorf("list search attributes of namespace %s: %w", namespace, err)
	}
	missing := make(map[string]enumspb.IndexedValueType)
	for _, attribute := range contract.Attributes() {
		want, err := enumspb.IndexedValueTypeFromString(attribute.Type)
		if err != nil {
			return done, fmt.Errorf("register %s: %w", attribute.Name, err)
		}
		have, ok := known.GetCustomAttributes()[attribute.Name]
		switch {
		case !ok:
			missing[attribute.Name] = want
			done.Added = append(done.Added, attribute.Name)
		case have != want:
			return done, fmt.Errorf("register %s: the namespace has it as %s, we need %s: remove it with `temporal operator search-attribute remove --name %s`",
				attribute.Name, have, want, attribute.Name)
		default:
			done.Present = append(done.Present, attribute.Name)
		}
	}
	if len(missing) > 0 {
		_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
		if err != nil {
			return done, fmt.Errorf("register search attributes: %w", err)
		}
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace,
		Config: &namespacepb.NamespaceConfig{
			WorkflowExecutionRetentionTtl: durationpb.New(contract.RetentionDays * 24 * time.Hour),
		},
	})
	if err != nil {
		return done, fmt.Errorf("set retention of namespace %s: %w", namespace, err)
	}
	return done, nil
}
