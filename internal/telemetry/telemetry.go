// Package telemetry exports what the programs measure: Prometheus metrics at an
// address, and traces and metrics by OTLP where the standard OTEL_* environment
// variables ask for it. It defines no metrics; their names are in contract, and
// what counts where is decided by who counts.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// Settings say what is exported. The zero value exports what the environment asks for.
type Settings struct {
	Service        string // service.name, unless OTEL_SERVICE_NAME says otherwise
	MetricsAddress string // host:port that serves /metrics; empty: none
	Log            *slog.Logger
}

// Telemetry is what is exported while a program runs.
type Telemetry struct {
	log     *slog.Logger
	metrics *metric.MeterProvider // nil: nobody wants metrics
	traces  *trace.TracerProvider // nil: nobody wants traces
	server  *http.Server
	address string
}

// Start begins to export. The caller closes it.
func Start(ctx context.Context, s Settings) (*Telemetry, error) {
	t := &Telemetry{log: s.Log}
	described, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", s.Service)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe telemetry: %w", err)
	}
	if err := errors.Join(t.startMetrics(ctx, s, described), t.startTraces(ctx, described)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// asked reports whether the environment asks for a signal: METRICS or TRACES.
func asked(signal string) bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return false
	}
	if exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

func (t *Telemetry) startMetrics(ctx context.Context, s Settings, described *resource.Resource) error {
	var options []metric.Option
	if s.MetricsAddress != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		reader, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
		if err != nil {
			return fmt.Errorf("export metrics: %w", err)
		}
		options = append(options, metric.WithReader(reader))
		if err := t.serve(s.MetricsAddress, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: printer{t.log}})); err != nil {
			return err
		}
	}
	if asked("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("export metrics as the environment says (OTEL_METRICS_EXPORTER=%s): %w", os.Getenv("OTEL_METRICS_EXPORTER"), err)
		}
		options = append(options, metric.WithReader(reader))
	}
	if len(options) > 0 {
		options = append(options, metric.WithResource(described), buckets("mendflow_*", ours), buckets("temporal_*", theirs))
		t.metrics = metric.NewMeterProvider(options...)
	}
	return nil
}

// Bounds of histograms, in seconds: attempts, gates and holds last for minutes to
// days, calls of the server for milliseconds.
var (
	ours   = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400}
	theirs = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600}
)

func buckets(names string, bounds []float64) metric.Option {
	return metric.WithView(metric.NewView(metric.Instrument{Name: names, Kind: metric.InstrumentKindHistogram},
		metric.Stream{Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: bounds}}))
}

func (t *Telemetry) startTraces(ctx context.Context, described *resource.Resource) error {
	if !asked("TRACES") {
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("export traces as the environment says (OTEL_TRACES_EXPORTER=%s): %w", os.Getenv("OTEL_TRACES_EXPORTER"), err)
	}
	t.traces = trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(described))
	return nil
}

// serve listens at once, so that an address in use is an error of the start.
func (t *Telemetry) serve(address string, metrics http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w: give another --metrics-address", err)
	}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", metrics)
	t.server = &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	t.address = listener.Addr().String()
	go func() {
		if err := t.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.log.Error("serve metrics", "error", err)
		}
	}()
	return nil
}

// Address is where metrics are served; empty: nowhere.
func (t *Telemetry) Address() string { return t.address }

// Configure makes a client, and the workers made of it, tell what they do.
func (t *Telemetry) Configure(options *client.Options) error {
	if t.metrics != nil {
		options.MetricsHandler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
			Meter:                t.metrics.Meter("mendflow"),
			UseMonotonicCounters: true,
			OnError:              func(err error) { t.log.Warn("measure", "error", err) },
		})
	}
	if t.traces != nil {
		tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: t.traces.Tracer("mendflow")})
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		options.Interceptors = append(options.Interceptors, interceptor.ClientInterceptor(tracing))
	}
	return nil
}

// flushTime bounds how long what was measured last may take to be exported.
const flushTime = 5 * time.Second

// Close exports what is left and ends.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	if t.metrics != nil {
		errs = append(errs, t.metrics.Shutdown(ctx))
	}
	if t.server != nil {
		errs = append(errs, t.server.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end telemetry: %w", err)
	}
	return nil
}

// printer lets promhttp log through slog.
type printer struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (p printer) Println(v ...any) { p.log.Warn("serve metrics", "error", fmt.Sprint(v...)) }
