package workercmd

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"mendflow/workflows"
)

// busyServer is a frontend whose sticky queue has a backlog, says so once, and is then silent.
type busyServer struct {
	workflowservice.UnimplementedWorkflowServiceServer
	told   atomic.Bool
	normal chan struct{} // a poll on the main queue after the backlog was told
}

func (s *busyServer) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (s *busyServer) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (s *busyServer) PollWorkflowTaskQueue(ctx context.Context, req *workflowservice.PollWorkflowTaskQueueRequest) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	if req.TaskQueue.Kind == enumspb.TASK_QUEUE_KIND_STICKY {
		if !s.told.Swap(true) {
			return &workflowservice.PollWorkflowTaskQueueResponse{
				TaskToken: []byte("t"), BacklogCountHint: 3, WorkflowType: &commonpb.WorkflowType{Name: "Remediation"},
				WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "w", RunId: "r"}, History: &historypb.History{},
			}, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.told.Load() {
		select {
		case s.normal <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return &workflowservice.PollWorkflowTaskQueueResponse{}, nil
}

// New workflows, and questions to closed runs, come by the main queue: a backlog
// of the sticky one must not take all polls from it.
func TestMainQueueIsPolledBesideAStickyBacklog(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	frontend := &busyServer{normal: make(chan struct{})}
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, frontend)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connected, err := client.Dial(client.Options{HostPort: listener.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(connected.Close)
	w := worker.New(connected, "q", worker.Options{WorkflowTaskPollerBehavior: workflows.Pollers(), LocalActivityWorkerOnly: true})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	// Each was open beside the backlog and ended: as many again have to follow.
	for range 20 {
		select {
		case <-frontend.normal:
		case <-time.After(20 * time.Second):
			t.Fatal("nobody polls the main queue any more")
		}
	}
}
