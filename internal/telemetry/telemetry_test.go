package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/goleak"

	"mendflow/internal/contract"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, address string) *Telemetry {
	t.Helper()
	tele, err := Start(t.Context(), Settings{Service: "test", MetricsAddress: address, Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tele.Close()) })
	return tele
}

func read200(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return string(body)
}

func TestNothingIsExportedUnlessAsked(t *testing.T) {
	defer goleak.VerifyNone(t)
	tele := start(t, "")
	var options client.Options
	require.NoError(t, tele.Configure(&options))
	require.Nil(t, options.MetricsHandler)
	require.Empty(t, options.Interceptors)
	require.NoError(t, tele.WatchRuns(nil, "default"))
	require.Empty(t, tele.Address())
}

func TestTracesAreAskedForByTheStandardVariables(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4318"}, false},
		{map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		{map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, false},
		{map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"}, false},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"} {
			t.Setenv(name, c.env[name])
		}
		require.Equal(t, c.want, asked("TRACES"), "%v", c.env)
	}
}

func TestAnUnknownExporterIsAnError(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "pigeon")
	_, err := Start(t.Context(), Settings{Service: "test", MetricsAddress: "127.0.0.1:0", Log: quiet()})
	require.ErrorContains(t, err, "OTEL_TRACES_EXPORTER=pigeon")
}

func TestMetricsAddressInUseIsAnErrorOfTheStart(t *testing.T) {
	first := start(t, "127.0.0.1:0")
	_, err := Start(t.Context(), Settings{Service: "test", MetricsAddress: first.Address(), Log: quiet()})
	require.ErrorContains(t, err, "--metrics-address")
}

func TestTimersHaveBucketsForMinutesAndForMilliseconds(t *testing.T) {
	tele := start(t, "127.0.0.1:0")
	var options client.Options
	require.NoError(t, tele.Configure(&options))
	options.MetricsHandler.Timer(contract.MetricAttempt).Record(20 * time.Minute)
	options.MetricsHandler.Timer("temporal_request_latency").Record(3 * time.Millisecond)
	options.MetricsHandler.WithTags(map[string]string{"pool": "p"}).Counter(contract.MetricLandings).Inc(2)
	text := read200(t, tele.Address())
	require.Contains(t, text, `mendflow_attempt_seconds_bucket{le="1200"} 1`)
	require.Contains(t, text, `temporal_request_latency_seconds_bucket{le="0.005"} 1`)
	require.Contains(t, text, `mendflow_landings_total{pool="p"} 2`)
	require.Contains(t, text, "go_goroutines")
}

// server is what visibility says.
type server struct {
	pages [][]map[string]string
	err   error
	asked int
}

func (s *server) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	page := len(request.GetNextPageToken())
	var response workflowservice.ListWorkflowExecutionsResponse
	for _, attributes := range s.pages[page] {
		fields := map[string]*commonpb.Payload{}
		for name, value := range attributes {
			fields[name] = &commonpb.Payload{Data: []byte(value)}
		}
		response.Executions = append(response.Executions, &workflowpb.WorkflowExecutionInfo{SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields}})
	}
	if page+1 < len(s.pages) {
		response.NextPageToken = []byte(strings.Repeat("x", page+1))
	}
	return &response, nil
}

func TestOpenRunsAreCountedByStatusAndHold(t *testing.T) {
	paused := map[string]string{contract.AttributeStatus: `"paused"`, contract.AttributeHold: `["operator","quota"]`}
	working := map[string]string{contract.AttributeStatus: `"implementing"`}
	s := &server{pages: [][]map[string]string{{paused, working}, {working, {}}}}
	tele := start(t, "127.0.0.1:0")
	require.NoError(t, tele.WatchRuns(s, "default"))
	text := read200(t, tele.Address())
	require.Contains(t, text, `mendflow_runs{hold="",status="implementing"} 2`)
	require.Contains(t, text, `mendflow_runs{hold="operator",status="paused"} 1`)
	require.Contains(t, text, `mendflow_runs{hold="quota",status="paused"} 1`)
	require.Contains(t, text, `mendflow_runs{hold="",status=""} 1`, "attributes that are not registered")
	asked := s.asked
	read200(t, tele.Address())
	require.Equal(t, asked, s.asked, "it is not asked again at once")
}

func TestCountsOutliveAServerThatDoesNotAnswerAndFallToNothing(t *testing.T) {
	t.Parallel()
	s := &server{pages: [][]map[string]string{{{contract.AttributeStatus: `"paused"`}}}}
	c := &counter{server: s}
	require.Equal(t, map[runKey]int64{{"paused", ""}: 1}, c.count(t.Context()))
	c.at, s.err = time.Time{}, errors.New("away")
	require.Equal(t, map[runKey]int64{{"paused", ""}: 1}, c.count(t.Context()))
	s.err, s.pages = nil, [][]map[string]string{{}}
	require.Equal(t, map[runKey]int64{{"paused", ""}: 0}, c.count(t.Context()))
}
