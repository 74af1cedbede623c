package main

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// These benchmarks are what tuning.go was chosen by:
//
//	go test -run - -bench . -benchtime 300x .

const loadQueue = "load"

func emptyActivity(context.Context) error { return nil }

// oneActivity is the least that a workflow does.
func oneActivity(ctx workflow.Context, eager bool) error {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:   time.Minute,
		DisableEagerExecution: !eager,
	}), emptyActivity).Get(ctx, nil)
}

// ask signals the granter and waits for its answer, so many times.
func ask(ctx workflow.Context, granter string, rounds int) (time.Duration, error) {
	grants := workflow.GetSignalChannel(ctx, "grant")
	start := workflow.Now(ctx)
	for range rounds {
		if err := workflow.SignalExternalWorkflow(ctx, granter, "", "ask", workflow.GetInfo(ctx).WorkflowExecution.ID).Get(ctx, nil); err != nil {
			return 0, err
		}
		grants.Receive(ctx, nil)
	}
	return workflow.Now(ctx).Sub(start), nil
}

// grant answers so many asks.
func grant(ctx workflow.Context, rounds int) error {
	asks := workflow.GetSignalChannel(ctx, "ask")
	for range rounds {
		var asker string
		asks.Receive(ctx, &asker)
		if err := workflow.SignalExternalWorkflow(ctx, asker, "", "grant", nil).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// nap sleeps so many times and returns the longest and the mean lateness.
func nap(ctx workflow.Context, times int, length time.Duration) ([2]time.Duration, error) {
	var worst, sum time.Duration
	for range times {
		start := workflow.Now(ctx)
		if err := workflow.Sleep(ctx, length); err != nil {
			return [2]time.Duration{}, err
		}
		late := workflow.Now(ctx).Sub(start) - length
		worst = max(worst, late)
		sum += late
	}
	return [2]time.Duration{worst, sum / time.Duration(times)}, nil
}

func loadServer(b *testing.B, args ...string) (*process, client.Client) {
	b.Helper()
	p := launch(b, append([]string{"--headless"}, args...)...)
	c := p.dial(b)
	w := worker.New(c, loadQueue, worker.Options{})
	for _, wf := range []any{oneActivity, ask, grant, nap} {
		w.RegisterWorkflow(wf)
	}
	w.RegisterActivity(emptyActivity)
	require.NoError(b, w.Start())
	b.Cleanup(w.Stop)
	return p, c
}

func onFile(b *testing.B) []string {
	return []string{"--db", filepath.Join(b.TempDir(), "load.db")}
}

func start(b *testing.B, c client.Client, id string, wf any, args ...any) client.WorkflowRun {
	b.Helper()
	run, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: loadQueue}, wf, args...)
	require.NoError(b, err)
	return run
}

func BenchmarkAskAndGrant(b *testing.B) {
	p, c := loadServer(b, onFile(b)...)
	begin := p.cpu(b)
	granter := start(b, c, "granter", grant, b.N)
	var took time.Duration
	require.NoError(b, start(b, c, "asker", ask, "granter", b.N).Get(b.Context(), &took))
	require.NoError(b, granter.Get(b.Context(), nil))
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "ms/round")
	b.ReportMetric(float64((p.cpu(b)-begin).Microseconds())/1000/float64(b.N), "server-cpu-ms/round")
}

func BenchmarkTimer100ms(b *testing.B) {
	_, c := loadServer(b, onFile(b)...)
	var late [2]time.Duration
	require.NoError(b, start(b, c, "napper", nap, b.N, 100*time.Millisecond).Get(b.Context(), &late))
	b.ReportMetric(float64(late[0].Microseconds())/1000, "worst-late-ms")
	b.ReportMetric(float64(late[1].Microseconds())/1000, "mean-late-ms")
}

func BenchmarkWorkflows(b *testing.B) {
	for _, bench := range []struct {
		name  string
		eager bool
		args  func(*testing.B) []string
	}{
		{"file", false, onFile},
		{"eager", true, onFile},
		{"memory", false, func(*testing.B) []string { return nil }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p, c := loadServer(b, bench.args(b)...)
			require.NoError(b, start(b, c, "warm", oneActivity, bench.eager).Get(b.Context(), nil))
			begin, cpu := time.Now(), p.cpu(b)
			var next atomic.Int64
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := "w" + strconv.FormatInt(next.Add(1), 10)
					run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: id, TaskQueue: loadQueue}, oneActivity, bench.eager)
					if err == nil {
						err = run.Get(context.Background(), nil)
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "activities/s")
			b.ReportMetric(float64((p.cpu(b)-cpu).Microseconds())/1000/float64(b.N), "server-cpu-ms/workflow")
		})
	}
}

// BenchmarkIdle reports what a server costs that nobody uses, as it does while workers sleep over a quota wall.
func BenchmarkIdle(b *testing.B) {
	p, _ := loadServer(b, onFile(b)...)
	begin, cpu := time.Now(), p.cpu(b)
	time.Sleep(min(time.Duration(b.N)*100*time.Millisecond, 20*time.Second))
	b.ReportMetric(100*float64(p.cpu(b)-cpu)/float64(time.Since(begin)), "server-cpu-%")
}
