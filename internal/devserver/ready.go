package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// readyLine is what parsers of the --json form rely on.
type readyLine struct {
	Ready     bool   `json:"ready"`
	Address   string `json:"address"`
	UI        string `json:"ui"` // empty: headless
	Namespace string `json:"namespace"`
	Database  string `json:"db"` // empty: in memory
}

func (r readyLine) write(w io.Writer, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(w).Encode(r); err != nil {
			return fmt.Errorf("write ready line: %w", err)
		}
		return nil
	}
	line := "devserver ready: address=" + r.Address
	if r.UI != "" {
		line += " ui=" + r.UI
	}
	if r.Database == "" {
		r.Database = "memory"
	}
	if _, err := fmt.Fprintf(w, "%s namespace=%s db=%s\n", line, r.Namespace, r.Database); err != nil {
		return fmt.Errorf("write ready line: %w", err)
	}
	return nil
}

// probeInterval is how often something that is starting is asked whether it has started.
const probeInterval = 20 * time.Millisecond

// await repeats probe until it succeeds or ctx ends; then the error says what it last failed with.
func await(ctx context.Context, what string, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, err)
		case <-time.After(probeInterval):
		}
	}
}

// awaitServer returns once the frontend is healthy and the services behind it answer for the namespace.
func awaitServer(ctx context.Context, address, namespace string) error {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: probeInterval, Multiplier: 1, MaxDelay: probeInterval}}),
	)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	return await(ctx, "the server at "+address, func(ctx context.Context) error {
		return probeServer(ctx, conn, namespace)
	})
}

// probeName is a workflow and a task queue that nobody has.
const probeName = "devserver-probe"

// frontendHealth is the name under which the frontend reports its health.
const frontendHealth = "temporal.api.workflowservice.v1.WorkflowService"

func probeServer(ctx context.Context, conn *grpc.ClientConn, namespace string) error {
	health, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: frontendHealth})
	if err != nil {
		return err
	}
	if state := health.GetStatus(); state != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("frontend is %v", state)
	}
	service := workflowservice.NewWorkflowServiceClient(conn)

	// History: it owns the shard when it knows that there is no such workflow.
	_, err = service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: probeName},
	})
	if _, unknown := errors.AsType[*serviceerror.NotFound](serviceerror.FromStatus(status.Convert(err))); !unknown {
		return fmt.Errorf("history service: %w", err)
	}
	// Matching.
	_, err = service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     namespace,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: probeName},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	if err != nil {
		return fmt.Errorf("matching service: %w", err)
	}
	// Visibility, and with it the search attributes of the namespace.
	_, err = service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace,
		Query:     "MendflowRun = '" + probeName + "'",
	})
	if err != nil {
		return fmt.Errorf("visibility: %w", err)
	}
	return nil
}

func awaitUI(ctx context.Context, url string) error {
	return await(ctx, "the Web UI at "+url, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", response.Status)
		}
		return nil
	})
}
