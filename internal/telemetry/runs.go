package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"mendflow/internal/contract"
)

// Lister is the part of a Temporal client that open runs are counted with.
type Lister interface {
	ListWorkflow(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
}

// How open runs are counted: at most so many, and not more often than this.
const (
	runsCounted = 1000
	runsAge     = 10 * time.Second
	runsTime    = 5 * time.Second
)

// WatchRuns exports the open runs by status and hold. Every worker exports the
// same numbers, as the server's visibility has them: take the maximum over the
// workers, and decide nothing by it.
func (t *Telemetry) WatchRuns(server Lister, namespace string) error {
	if t.metrics == nil {
		return nil
	}
	meter := t.metrics.Meter("mendflow")
	gauge, err := meter.Int64ObservableGauge(contract.MetricRuns, metric.WithDescription("Open runs by status and hold."))
	if err != nil {
		return fmt.Errorf("count runs: %w", err)
	}
	c := &counter{server: server, namespace: namespace}
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		for key, n := range c.count(ctx) {
			o.ObserveInt64(gauge, n, metric.WithAttributes(attribute.String(contract.TagStatus, key.status), attribute.String(contract.TagHold, key.hold)))
		}
		return nil
	}, gauge)
	if err != nil {
		return fmt.Errorf("count runs: %w", err)
	}
	return nil
}

type runKey struct{ status, hold string }

// counter remembers a count for a moment: two exporters may ask at once.
type counter struct {
	server    Lister
	namespace string

	mu   sync.Mutex
	at   time.Time
	last map[runKey]int64
}

// count counts the open runs. One that is held for several reasons counts for
// each; what was there before is told with 0. A server that does not answer
// leaves the last count.
func (c *counter) count(ctx context.Context) map[runKey]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < runsAge {
		return c.last
	}
	ctx, cancel := context.WithTimeout(ctx, runsTime)
	defer cancel()
	counts, err := c.ask(ctx)
	if err != nil {
		return c.last
	}
	for key := range c.last {
		if _, ok := counts[key]; !ok {
			counts[key] = 0
		}
	}
	c.at, c.last = time.Now(), counts
	return counts
}

func (c *counter) ask(ctx context.Context) (map[runKey]int64, error) {
	counts := map[runKey]int64{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.namespace, PageSize: 200,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", contract.WorkflowRemediation),
	}
	for seen := 0; seen < runsCounted; {
		page, err := c.server.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, info := range page.GetExecutions() {
			fields := info.GetSearchAttributes().GetIndexedFields()
			var status string
			var holds []string
			read(fields[contract.AttributeStatus], &status)
			read(fields[contract.AttributeHold], &holds)
			if len(holds) == 0 {
				holds = []string{""}
			}
			for _, hold := range holds {
				counts[runKey{status, hold}]++
			}
		}
		seen += len(page.GetExecutions())
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return counts, nil
}

// read reads a search attribute; one that is not there leaves the value as it is.
func read(payload *commonpb.Payload, value any) {
	if data := payload.GetData(); len(data) > 0 {
		_ = json.Unmarshal(data, value)
	}
}
