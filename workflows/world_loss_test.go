package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
)

// busyBroker makes a drive of another run hold the only slot, and never give it back.
func (w *world) busyBroker(ctx workflow.Context) error {
	taken := contract.Tickets{Holder: otherDrive, Run: "other", Seq: 1, Reserve: []contract.Reservation{{Ticket: "other/a1", Pool: "main", Cap: 1}}}
	return workflow.SignalExternalWorkflow(ctx, contract.BrokerID("main"), "", contract.SignalTickets, taken).Get(ctx, nil)
}

// A broker that is terminated takes the line of waiting tickets with it and tells
// nobody. Somebody starts a new one, which does not know who waits: the drive that
// has heard nothing for long asks, and is told.
func TestDriveAsksAgainWhenTheBrokerIsANewOne(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	w := newWorld(t, h, testPool("main", 1))
	w.before = w.busyBroker
	w.at(10*time.Minute, func() {
		w.env.CancelWorkflowByID(contract.BrokerID("main"), "")
		w.at(time.Second, func() { w.ensure(t, "main") })
	})

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Less(t, w.env.Now().Sub(w.began), 2*time.Hour)
	require.Equal(t, 1, h.count("EnsureBrokers"), "it was there already")
}

// A drive that is terminated tells nobody: its nodes come back, under attempt
// numbers that it cannot have used.
func TestNodesOfALostDriveComeBack(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 1, "a"))
	w := newWorld(t, h)
	w.level = func(ctx workflow.Context, in contract.LevelInput) error {
		if in.Drive > 1 {
			return Level(ctx, in)
		}
		if !in.Sealed { // it would be told so: it takes that and is gone
			workflow.GetSignalChannel(ctx, contract.SignalOrder).Receive(ctx, nil)
		}
		h.closed = append(h.closed, contract.LevelID(in.Run, in.Drive))
		return nil
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, 1+lostDriveAttempts, h.tried("a")[0].Attempt)
	require.Less(t, w.env.Now().Sub(w.began), 20*time.Minute)
}

// Reports that come twice, late, or about nothing change nothing; a drained
// drive that leaves nodes out has lost them, and they come back.
func TestDriveThatDrainsWithoutAWordAboutANode(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	w := newWorld(t, h)
	w.level = func(ctx workflow.Context, in contract.LevelInput) error {
		if in.Drive > 1 {
			return Level(ctx, in)
		}
		send := func(r contract.DriveReport) error {
			return workflow.SignalExternalWorkflow(ctx, contract.RemediationID(in.Run), "", contract.SignalReport, r).Get(ctx, nil)
		}
		var order contract.DriveOrder
		for !in.Sealed && !order.Seal {
			workflow.GetSignalChannel(ctx, contract.SignalOrder).Receive(ctx, &order)
		}
		for _, r := range []contract.DriveReport{
			{Drive: 99, Seq: 1, Drained: true},
			{Drive: 1, Seq: 2, Stranded: []contract.Stranding{{Node: "no-such-node", Opening: 1}}},
			{Drive: 1, Seq: 1, Drained: true, Orders: order.Seq},                                                    // late
			{Drive: 1, Seq: 2, Drained: true, Orders: order.Seq},                                                    // again
			{Drive: 1, Seq: 3, Settled: []contract.Settlement{{Node: "a", Opening: 7, State: contract.NodeLanded}}}, // of another opening
			{Drive: 1, Seq: 4, Drained: true, Orders: order.Seq},
		} {
			if err := send(r); err != nil {
				return err
			}
		}
		return nil
	}

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, contract.NodeLanded, h.rows()["a"].State)
	require.Len(t, h.tried("a"), 1)
}
