package workflows

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
)

// Races of control.md, by number.

// 2: the pause comes with the end of the last node. Whichever is first, the node
// is landed and the run waits for the operator before its gate.
func TestPauseWithTheLastNodesCompletion(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	entered, release := h.hold("ReleaseWorktree")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "ReleaseWorktree", entered)

	release()
	l.ordered(contract.CommandPause, contract.Operator{})
	v := l.untilStatus(contract.RunPaused)
	require.Equal(t, 1, v.Nodes[string(contract.NodeLanded)])
	require.Equal(t, 1, h.count("RunGate"), "only the baseline")
	l.ordered(contract.CommandResume, contract.Operator{})

	require.Equal(t, contract.RunCompleted, l.wait().Status)
	require.Len(t, h.attempts, 1)
}

// 3: a cancel and a resume at once: the cancel wins, whatever the order.
func TestCancelAgainstResume(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{contract.CommandCancel, contract.CommandResume}, {contract.CommandResume, contract.CommandCancel}} {
		t.Run(order[0]+"-first", func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 1, "a"))
			entered, release := h.hold("RunWorker")
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, "RunWorker", entered)
			l.ordered(contract.CommandPause, contract.Operator{})
			l.untilStatus(contract.RunPaused)

			for _, command := range order {
				l.signal(command, nil)
			}

			require.Equal(t, contract.RunCancelled, l.wait().Status)
		})
	}
}

// 8: the reset comes while an operator holds the run: the quota hold ends by
// itself, the operator's does not, and resuming does not end in the wall.
func TestResetDuringAnOperatorsPause(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	w := newWorld(t, h)
	reset := w.began.Add(5 * time.Hour)
	h.work = walledUntil(w, reset)
	var held, reopened contract.RunView
	w.at(time.Hour, func() { w.signal(t, contract.CommandPause, "maintenance") })
	w.at(2*time.Hour, func() { held = w.status(t) })
	w.at(6*time.Hour, func() { reopened = w.status(t) })
	w.at(10*time.Hour, func() { w.signal(t, contract.CommandResume, nil) })

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, held.Holds, 2)
	require.Len(t, reopened.Holds, 1)
	require.Equal(t, contract.HoldOperator, reopened.Holds[0].Kind)
	require.Equal(t, contract.RunPaused, reopened.Status)
	require.Len(t, h.tried("a"), 2)
	require.GreaterOrEqual(t, w.env.Now().Sub(w.began), 10*time.Hour)
}

// A resume during the night of a wall lifts the operator's hold only.
func TestResumeDoesNotEndAQuotaHoldThatAnOperatorCovered(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	w := newWorld(t, h)
	h.work = walledUntil(w, w.began.Add(5*time.Hour))
	var after contract.RunView
	w.at(time.Hour, func() { w.signal(t, contract.CommandPause, nil) })
	w.at(2*time.Hour, func() { w.signal(t, contract.CommandResume, nil) })
	w.at(3*time.Hour, func() { after = w.status(t) })

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Len(t, after.Holds, 1)
	require.Equal(t, contract.HoldQuota, after.Holds[0].Kind)
	require.Len(t, h.tried("a"), 2, "no attempt ran into the wall meanwhile")
}

// 6: a node settles partially and comes back in the same moment in which its
// drive is told that none will follow: it goes to a new drive.
func TestNodeThatReopensAfterItsDriveWasSealed(t *testing.T) {
	t.Parallel()
	u := unit("a", 0)
	u.Findings = []string{"f-a", "f-b"}
	h := newHost(u)
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Opening > 1 {
			end := landed(in)
			end.Items = []contract.ItemResult{{Finding: "f-b", Status: contract.ItemResolved}}
			return attemptScript{land: end}
		}
		end := landed(in)
		end.State, end.Items = contract.NodePartial, append(end.Items, contract.ItemResult{Finding: "f-b", Status: contract.ItemPending, Omitted: true})
		return attemptScript{land: end}
	}
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	tries := h.tried("a")
	require.Len(t, tries, 2)
	require.Equal(t, []string{"f-b"}, tries[1].Findings)
	require.Equal(t, 2, tries[1].Opening)
	require.Equal(t, 2, tries[1].Attempt)
}

// The broker's word that an account is open again overtakes a drive that still
// takes it for closed: the node that this drive sends back is tried once more,
// and only once, instead of waiting for the reset that was called off.
func TestReopeningOvertakesADrive(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0), unit("b", 0))
	reset := time.Now().Add(time.Hour).UTC()
	working, busy := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.work = func(in contract.NodeInput) attemptScript { // b works from before the wall until the end
		if in.Node != "a" {
			once.Do(func() { close(working) }) // asked again when it lands
			<-busy
			return attemptScript{}
		}
		<-working
		return attemptScript{end: contract.WorkerEnd{
			Outcome: contract.OutcomeRateLimited, Limit: &contract.Limit{ResetAt: &reset, ReopensAt: &reset, Scope: "account"},
		}}
	}
	l := newLab(t, h).begin()
	waits := func(v contract.RunView) (n int) {
		for _, e := range v.Events {
			if strings.HasPrefix(e.Text, "a waits (quota_paused)") {
				n++
			}
		}
		return n
	}
	l.until("the wall", func(v contract.RunView) bool { return waits(v) == 1 })
	l.signal(contract.SignalPoolState, contract.Grants{Account: l.in.Pools[0].Account, States: []contract.AccountState{{State: "live"}}})
	l.until("a second try", func(v contract.RunView) bool { return waits(v) >= 3 })
	close(busy)
	v := l.until("the quota hold", func(v contract.RunView) bool { return v.Status == contract.RunPaused && len(v.Holds) == 1 })
	require.Equal(t, 3, waits(v), "once for the word of the broker")
	require.Len(t, h.tried("a"), 1)
	l.ordered(contract.CommandCancel, contract.Operator{})
	require.Equal(t, contract.RunCancelled, l.wait().Status)
}
