package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// has reports whether the work of a node in an opening is on the truth.
func has(landed []string, landing string) bool { return slices.Contains(landed, landing) }

// nine are independent nodes, with a dependant of n4.
func nine() []plan.Unit {
	var units []plan.Unit
	for i := range 8 {
		units = append(units, unit(fmt.Sprintf("n%d", i), 0))
	}
	return append(units, unit("on4", 1, "n4"))
}

// A red gate finds its culprit within the bound, takes it and its dependant back
// and opens these two again; everybody else's work stays, and the run ends green.
func TestCulpritIsFoundTakenBackAndOpenedAgain(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	rows := h.rows()
	for id, row := range rows {
		require.Equal(t, contract.NodeLanded, row.State, id)
		again := id == "n4" || id == "on4"
		require.Equal(t, again, row.Opening == 2, "%s is in opening %d", id, row.Opening)
		require.Equal(t, again, len(row.Attempts) == 2, "%s was tried %d times", id, len(row.Attempts))
	}
	require.LessOrEqual(t, len(h.hub.trials), 7, "⌈log2 9⌉+2 for the culprit, one to tell it from an interaction")
	require.Len(t, h.hub.reverts, 1)
	tail := h.tried("n4")[1].Tail
	require.Contains(t, tail, "--- FAIL: TestWhole")
	require.Contains(t, tail, "go test ./...")
	require.Empty(t, h.tried("on4")[1].Tail, "a dependant is not to blame")
	require.Len(t, h.record.Gates, 2)
	told := h.record.Gates[0].Attribution
	require.Equal(t, "culprit", told.Verdict)
	require.Equal(t, "n4", told.Culprit)
	require.Equal(t, []string{"n4", "on4"}, told.Reverted)
	require.Equal(t, []contract.GateAttribution{*told}, h.record.View.Gate.Attributions)
	require.Equal(t, "green", h.record.Gates[1].End.Verdict)
}

// Two that pass alone and fail together: the later one is opened again, both are named.
func TestInteractionNamesBoth(t *testing.T) {
	t.Parallel()
	units := nine()
	for i := range units[:8] { // one after the other, so that the order of landing is known
		units[i].Severity = i
	}
	h := newHost(units...)
	h.hub.red = func(landed []string) bool { return has(landed, "n1/1") && has(landed, "n6/1") }
	w := newWorld(t, h, testPool("main", 1))

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	told := h.record.Gates[0].Attribution
	require.Equal(t, "interaction", told.Verdict)
	require.Equal(t, []string{"n6", "n1"}, []string{told.Culprit, told.Partner})
	require.LessOrEqual(t, told.Runs, 11, "2⌈log2 9⌉+3")
	require.Equal(t, 1, h.rows()["n1"].Opening)
	require.Contains(t, h.tried("n6")[1].Tail, "passes with either alone")
}

// A culprit that insists is blocked with its second try; nothing else is touched.
func TestCulpritThatInsistsIsBlocked(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool {
		return slices.ContainsFunc(landed, func(l string) bool { return nodeOf(l) == "n4" })
	}
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunBlocked, result.Status)
	require.Equal(t, "2 findings are left", result.Reason)
	require.Len(t, h.hub.reverts, 2)
	require.Len(t, h.tried("n4"), 2, "opened again once, no more")
	for id, row := range h.rows() {
		switch id {
		case "n4", "on4":
			require.Equal(t, contract.NodeBlocked, row.State, id)
		default:
			require.Equal(t, contract.NodeLanded, row.State, id)
			require.Len(t, row.Attempts, 1)
		}
	}
	for _, item := range h.record.Items {
		require.True(t, item.Status.Terminal(), "%+v", item)
		require.Equal(t, item.Status == contract.ItemAbandoned, item.Reason != "", "%+v", item)
	}
	require.Equal(t, "green", h.record.Gates[len(h.record.Gates)-1].End.Verdict, "the gate passes without it")
}

// What cannot be attributed opens everything again; the third red ends the run.
func TestGateThatStaysRedEndsAfterTwoReblocks(t *testing.T) {
	t.Parallel()
	for _, onRed := range []plan.OnRed{plan.OnRedAttribute, plan.OnRedReblock} {
		t.Run(string(onRed), func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 1, "a"), unit("asks", 0))
			h.opened.GateOnRed = string(onRed)
			h.hub.red = func([]string) bool { return true } // red without any of them too
			h.work = func(in contract.NodeInput) attemptScript {
				if in.Node == "asks" && in.Opening == 1 {
					return attemptScript{land: contract.LandEnd{Outcome: contract.OutcomeSuccess, State: contract.NodeBlocked,
						Items: []contract.ItemResult{{Finding: "f-asks", Status: contract.ItemBlocked, Reason: "cannot"}}}}
				}
				return attemptScript{}
			}
			w := newWorld(t, h)

			result := w.run(t)

			require.Equal(t, contract.RunBlocked, result.Status)
			require.Contains(t, result.Reason, "after everything was opened again 2 times")
			require.Contains(t, result.Reason, "go test ./...")
			require.Len(t, h.record.Gates, 3)
			for _, id := range []string{"a", "b", "asks"} {
				require.Len(t, h.tried(id), 3, id)
				require.Equal(t, 2+1+1, h.rows()[id].Opening, "%s: rejected in an opening of its own", id)
			}
			require.Contains(t, h.tried("b")[1].Tail, "it is not known by whose change")
			for _, item := range h.record.Items {
				require.Equal(t, contract.ItemAbandoned, item.Status)
				require.Contains(t, item.Reason, "go test ./...")
			}
			if onRed == plan.OnRedReblock {
				require.Empty(t, h.hub.trials)
			}
		})
	}
}

// A culprit that cannot be taken back is named, and everything is opened again.
func TestCulpritThatCannotBeTakenBackIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") && !has(landed, "n4/2") }
	h.hub.refuse = func(string) string { return "taking n4 back conflicts in shared.go" }
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	told := h.record.Gates[0].Attribution
	require.Equal(t, "unattributable", told.Verdict)
	require.Equal(t, "n4", told.Culprit)
	require.Contains(t, told.Detail, "conflicts in shared.go")
	for id, row := range h.rows() {
		require.Equal(t, 2, row.Opening, id)
	}
}

// Phase gates and the final gate share the bounds, and the search begins at the last green gate.
func TestPhaseGateIsAttributedSinceTheLastGreenOne(t *testing.T) {
	t.Parallel()
	units := nine()
	for i := range units {
		units[i].Phase = i / 4
	}
	h := newHost(units...)
	h.hub.red = func(landed []string) bool { return has(landed, "n5/1") }
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for _, tree := range h.hub.trials {
		require.Subset(t, tree, []string{"n0/1", "n1/1", "n2/1", "n3/1"}, "the green phase is below every trial")
	}
	require.Equal(t, "n5", h.record.Gates[1].Attribution.Culprit)
	var purposes []string
	for _, g := range h.record.Gates {
		purposes = append(purposes, g.Purpose+" "+g.End.Verdict)
	}
	require.Equal(t, "phase green, phase red, phase green, final green", strings.Join(purposes, ", "))
}

// A search that was interrupted, or whose run continued as new, goes on where it was.
func TestSearchIsInterruptedAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, activity := range []string{"RunGate", "Suspects", "RunTrial", "RevertCulprit"} {
		t.Run(activity, func(t *testing.T) {
			t.Parallel()
			h := newHost(nine()...)
			h.opened.Baseline = "require"
			h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
			nth := 1
			if activity == "RunGate" { // the first is the baseline
				nth = 2
			}
			entered, release := h.holdNth(activity, nth)
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, activity, entered)

			l.ordered(contract.CommandPause, contract.Operator{Reason: "maintenance"})
			if activity == "RevertCulprit" { // goes to its end: what the run believes and git change together
				l.untilStatus(contract.RunPausing)
				release()
			}
			v := l.untilStatus(contract.RunPaused)
			require.Equal(t, contract.HoldOperator, v.Holds[0].Kind)
			trials := h.trialled()
			release()
			l.ordered(contract.CommandResume, contract.Operator{})
			result := l.wait()

			require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
			require.Len(t, h.hub.reverts, 1)
			require.LessOrEqual(t, h.trialled(), 7)
			require.GreaterOrEqual(t, h.trialled(), trials)
			require.Equal(t, 2, h.rows()["n4"].Opening)
		})
	}
}

func (h *host) trialled() int {
	h.hub.mu.Lock()
	defer h.hub.mu.Unlock()
	return len(h.hub.trials)
}

func TestCancelDuringTheRevertLeavesRunAndTruthAtOne(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
	entered, release := h.hold("RevertCulprit")
	defer release()
	l := newLab(t, h).begin()
	awaitClosed(t, "RevertCulprit", entered)

	l.ordered(contract.CommandCancel, contract.Operator{Reason: "enough"})
	release()
	result := l.wait()

	require.Equal(t, contract.RunCancelled, result.Status)
	for _, e := range l.history(l.id, "").Events {
		require.Nil(t, e.GetActivityTaskCancelRequestedEventAttributes(), "nothing interrupts the revert")
	}
	require.False(t, has(h.hub.now, "n4/1"))
	require.Equal(t, 2, h.rows()["n4"].Opening, "it is reported as taken back")
	for _, item := range h.record.Items {
		require.True(t, item.Status.Terminal(), "%+v", item)
		if item.Status == contract.ItemAbandoned {
			require.Equal(t, "enough", item.Reason)
		}
	}
}

// gate.on_red: pause waits with the evidence; the gate runs again when asked.
func TestRedGateMayHold(t *testing.T) {
	t.Parallel()
	h := newHost(unit("a", 0))
	h.opened.GateOnRed = string(plan.OnRedPause)
	broken := true
	h.hub.red = func([]string) bool { return broken }
	l := newLab(t, h).begin()

	v := l.untilStatus(contract.RunPaused)
	require.Equal(t, contract.HoldGate, v.Holds[0].Kind)
	require.Contains(t, v.Holds[0].Reason, "go test ./...")
	h.hub.mu.Lock()
	broken = false
	h.hub.mu.Unlock()
	l.ordered(contract.CommandGateRetry, contract.Operator{})

	require.Equal(t, contract.RunCompleted, l.wait().Status)
	require.Empty(t, h.hub.trials)
	require.Len(t, h.record.Gates, 2)
}

func TestAttributionsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { // every one of the first eight is a culprit in its first opening
		return slices.ContainsFunc(landed, func(l string) bool { return strings.HasPrefix(l, "n") && strings.HasSuffix(l, "/1") })
	}
	w := newWorld(t, h)

	result := w.run(t)

	require.Equal(t, contract.RunBlocked, result.Status, "what is left of opening 1 stays on the truth")
	require.Len(t, h.hub.reverts, run.MaxAttributions)
	require.Len(t, h.record.Gates, run.MaxAttributions+run.MaxReblocks+1)
}

// The culprit has one try in its next opening; those that went with it are not charged.
func TestCulpritIsChargedAndItsDependantsAreNot(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Opening == 2 && (in.Node == "n4" || in.Node == "on4" && in.Attempt == 2) {
			return attemptScript{land: contract.LandEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verify is red"}}
		}
		return attemptScript{}
	}
	w := newWorld(t, h)

	require.Equal(t, contract.RunBlocked, w.run(t).Status)
	require.Len(t, h.tried("n4"), 2, "its landing counts as the first of two")
	require.Len(t, h.tried("on4"), 1, "it waits for the culprit")
}

func TestDependantOfACulpritHasAllItsTries(t *testing.T) {
	t.Parallel()
	h := newHost(nine()...)
	h.hub.red = func(landed []string) bool { return has(landed, "n4/1") }
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Node == "on4" && in.Attempt == 2 {
			return attemptScript{land: contract.LandEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verify is red"}}
		}
		return attemptScript{}
	}
	w := newWorld(t, h)

	require.Equal(t, contract.RunCompleted, w.run(t).Status)
	require.Len(t, h.tried("on4"), 3)
}
