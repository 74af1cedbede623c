package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"mendflow/internal/contract"
	"mendflow/internal/testkit"
)

// spanCollector takes traces as an OTLP collector does.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	names map[string]bool
	who   map[string]bool
}

func newSpanCollector(t *testing.T) *spanCollector {
	c := &spanCollector{names: map[string]bool{}, who: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *spanCollector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.who[a.GetValue().GetStringValue()] = true
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.names[span.GetName()] = true
			}
		}
	}
}

func (c *spanCollector) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[name]
}

// metricWord is a metric of ours or of Temporal's in a query.
var metricWord = regexp.MustCompile(`\b(?:mendflow|temporal)_[a-z_]+`)

// dashboardMetrics are the metrics that the queries of the dashboard name.
func dashboardMetrics(t *testing.T) []string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, filepath.Join(testkit.Root(), "docs", "grafana-dashboard.json"))), &board))
	var names []string
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			found := metricWord.FindAllString(target.Expr, -1)
			require.NotEmpty(t, found, p.Title)
			names = append(names, found...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// scrape reads the worker's metrics: each exported series without its value.
func scrape(t *testing.T, lab *testkit.Lab) []string {
	t.Helper()
	found := regexp.MustCompile(`worker metrics: (\S+)`).FindStringSubmatch(lab.Host.Output())
	require.NotNil(t, found, lab.Host.Output())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found[1], nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var series []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			series = append(series, strings.TrimSpace(line))
		}
	}
	return series
}

// value returns the sum over the series of a metric whose labels contain all of the texts.
func value(t *testing.T, series []string, metric string, labels ...string) float64 {
	t.Helper()
	sum := 0.0
	for _, line := range series {
		name, rest, _ := strings.Cut(line, "{")
		in, number, ok := strings.Cut(rest, "} ")
		if !ok || name != metric || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(in, l) }) {
			continue
		}
		var v float64
		require.NoError(t, json.Unmarshal([]byte(number), &v))
		sum += v
	}
	return sum
}

// TestMetricsAndTracesOfARun looks at what was measured of a run that was paused
// once: every metric that the dashboard asks for is exported, everything counts
// once, and the spans arrive where the environment says.
func TestMetricsAndTracesOfARun(t *testing.T) {
	t.Parallel()
	spans := newSpanCollector(t)
	lab := testkit.NewLab(t, testkit.LabOptions{
		Args: []string{"--metrics-address", "127.0.0.1:0"},
		Env: []string{
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + spans.URL + "/v1/traces", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
			"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_SERVICE_NAME=mendflow-test",
		},
	})
	c := testkit.NewCase(t, testkit.RunID(t), testkit.Plan{Nodes: []testkit.Node{{ID: "alpha"}, {ID: "beta", After: []string{"alpha"}}}})
	lab.Control.Script(t, c.Run, "alpha.a1", "mark alpha/work.txt", "tell working", "hang")
	lab.Start(t, c)
	lab.Control.Await(t, c.Run, "working")
	lab.Client.OK(t, "pause", c.Run)
	lab.Client.AwaitStatus(t, c.Run, contract.RunPaused)
	testkit.Eventually(t, "the paused run in the gauge", func() bool {
		return value(t, scrape(t, lab), "mendflow_runs", `status="paused"`, `hold="operator"`) == 1
	})
	lab.Client.OK(t, "resume", c.Run)
	v := lab.Client.AwaitClosed(t, c.Run)
	require.Equal(t, contract.RunCompleted, v.Status, v.Reason)

	series := scrape(t, lab)
	var exported []string
	for _, line := range series {
		name, _, _ := strings.Cut(line, "{")
		exported = append(exported, name)
	}
	for _, name := range dashboardMetrics(t) {
		require.Contains(t, exported, name, "the dashboard asks for it")
	}
	require.InDelta(t, 1, value(t, series, "mendflow_attempts_total", `outcome="interrupted"`), 0)
	require.InDelta(t, 2, value(t, series, "mendflow_attempts_total", `outcome="success"`, `pool="scripted"`), 0)
	require.InDelta(t, 2, value(t, series, "mendflow_landings_total"), 0)
	require.InDelta(t, 2, value(t, series, "mendflow_nodes_total", `state="landed"`), 0)
	require.InDelta(t, 1, value(t, series, "mendflow_run_status_total", `status="completed"`), 0)
	require.InDelta(t, 1, value(t, series, "mendflow_hold_seconds_count", `hold="operator"`), 0)
	require.InDelta(t, 1, value(t, series, "mendflow_gate_seconds_count", `purpose="final"`, `verdict="green"`), 0)
	for _, name := range []string{"RunWorkflow:Remediation", "RunWorkflow:Level", "RunWorkflow:Node", "RunActivity:RunWorker", "RunActivity:LandWork"} {
		testkit.Eventually(t, "span "+name, func() bool { return spans.has(name) })
	}
	spans.mu.Lock()
	defer spans.mu.Unlock()
	require.True(t, spans.who["mendflow-test"])
}
