package workflows

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sys/unix"

	"mendflow/internal/contract"
	"mendflow/internal/dispatch"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

const largePlan = 2000

// largeUnits is a plan of the largest size, wide and deep, with names as long as people make them.
func largeUnits() []plan.Unit {
	units := make([]plan.Unit, largePlan)
	for i := range units {
		u := unit(fmt.Sprintf("repair-%04d-in-a-service-with-a-long-name", i), i/400)
		for f := range 3 {
			u.Findings = append(u.Findings, fmt.Sprintf("%s-finding-%d", u.ID, f))
		}
		u.Write = []string{fmt.Sprintf("services/%04d/internal/**", i), fmt.Sprintf("services/%04d/api/*.go", i)}
		u.Files = []string{fmt.Sprintf("services/%04d/internal", i), fmt.Sprintf("services/%04d/api", i)}
		if u.Depth > 0 {
			u.DependsOn = []string{units[i-400].ID, units[i-399].ID}
		}
		units[i] = u
	}
	return units
}

// weighing measures the payloads that pass through it.
type weighing struct {
	converter.DataConverter
	most *atomic.Int64
}

func (w weighing) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := w.DataConverter.ToPayload(value)
	w.weigh(p)
	return p, err
}

func (w weighing) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	all, err := w.DataConverter.ToPayloads(values...)
	for _, p := range all.GetPayloads() {
		w.weigh(p)
	}
	return all, err
}

func (w weighing) weigh(p *commonpb.Payload) {
	for size := int64(len(p.GetData())); ; {
		most := w.most.Load()
		if size <= most || w.most.CompareAndSwap(most, size) {
			return
		}
	}
}

// Every node of the largest plan fails once with a long tail full of characters
// that JSON makes six of: no payload grows beyond the limit.
func TestLargestPlanStaysWithinPayloads(t *testing.T) {
	if os.Getenv("MENDFLOW_SOAK") == "" {
		t.Skip("takes minutes of processor time: runs with MENDFLOW_SOAK set (make soak)")
	}
	t.Parallel()
	h := newHost(largeUnits()...)
	w := newWorld(t, h, testPool("main", 64))
	most := &atomic.Int64{}
	w.env.SetDataConverter(weighing{converter.GetDefaultDataConverter(), most})
	tail := strings.Repeat("\x1b[31m", 400)
	w.level = func(ctx workflow.Context, in contract.LevelInput) error { return largeLevel(ctx, in, tail) }

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, h.record.Nodes, largePlan)
	require.LessOrEqual(t, most.Load(), int64(payloadLimit))
}

// largeLevel returns every node once, with the tail of its failure, and settles it the second time.
func largeLevel(ctx workflow.Context, in contract.LevelInput, tail string) error {
	orders, seq := 0, 0
	again := func() *time.Time { at := workflow.Now(ctx).Add(time.Minute); return &at }
	take := func(nodes []contract.Admission, drained bool) error {
		report := contract.DriveReport{Drive: in.Drive, Orders: orders, Drained: drained}
		for len(nodes) > 0 || report.Drained {
			report.Settled, report.Stranded = nil, nil
			for len(nodes) > 0 && fits(report) {
				a := nodes[0]
				nodes = nodes[1:]
				if a.Tail == "" {
					report.Stranded = append(report.Stranded, contract.Stranding{
						Node: a.Node, Opening: a.Opening, NextAttempt: a.NextAttempt + 1, Cause: contract.StrandQuotaPaused, NotBefore: again(), Tail: tail,
					})
					continue
				}
				report.Settled = append(report.Settled, contract.Settlement{
					Node: a.Node, Opening: a.Opening, NextAttempt: a.NextAttempt + 1, State: contract.NodeLanded,
					Attempts: []contract.AttemptResult{{Node: a.Node, Opening: a.Opening, Attempt: a.NextAttempt, Outcome: contract.OutcomeSuccess, Commit: "c"}},
				})
			}
			seq++
			report.Seq, report.Drained = seq, drained && len(nodes) == 0
			if err := workflow.SignalExternalWorkflow(ctx, contract.RemediationID(in.Run), "", contract.SignalReport, report).Get(ctx, nil); err != nil {
				return err
			}
			if report.Drained {
				return nil
			}
		}
		return nil
	}
	if err := take(in.Nodes, in.Sealed); err != nil || in.Sealed {
		return err
	}
	for {
		var order contract.DriveOrder
		workflow.GetSignalChannel(ctx, contract.SignalOrder).Receive(ctx, &order)
		orders = order.Seq
		if err := take(order.Nodes, order.Seal || order.Stop != ""); err != nil || order.Seal || order.Stop != "" {
			return err
		}
	}
}

// One workflow task of the largest run: everything that a turn does, in processor
// time, far below the second that the SDK takes for a deadlock.
func TestTurnsOfTheLargestPlanAreShort(t *testing.T) {
	now := time.Now()
	units := largeUnits()
	r := &remediation{in: testInput(testPool("main", 64)), units: units, stage: stageImplement, opened: newHost().opened}
	r.pools = newPoolBook(r.in.Pools)
	r.holds, r.friction = &run.Holds{}, &run.FrictionBook{}

	for _, step := range []struct {
		name string
		do   func()
	}{
		{"begin", func() { r.front = dispatch.NewFrontier(units, dispatch.FrontierOptions{}) }},
		{"dead ends", func() { r.front.DeadEnds() }},
		{"admissions", func() { r.front.Admissions(now, 66) }},
		{"waiting", func() { r.front.Waiting() }},
		{"details", func() { r.details() }},
		{"record", func() { r.record() }},
		{"carry", func() { _, _ = r.front.MarshalJSON() }},
	} {
		best := time.Hour
		for range 5 {
			best = min(best, processorTime(step.do))
		}
		t.Logf("%s: %v", step.name, best)
		require.Less(t, best, 200*time.Millisecond, step.name)
	}
}

// processorTime is what this thread worked, whatever else the machine does.
func processorTime(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
			panic(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	began := used()
	do()
	return used() - began
}
