package workflows

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"mendflow/internal/contract"
)

// attended is a host whose run waits for people: "asks" asks a question until it
// is answered, "fails" fails, "on" depends on it, "fine" lands.
func attended() *host {
	h := newHost(unit("asks", 0), unit("fails", 0), unit("on", 1, "fails"), unit("fine", 0))
	h.opened.Policy.Unattended = false
	h.work = func(in contract.NodeInput) attemptScript {
		switch {
		case in.Node == "asks" && len(in.Clarified) == 0:
			return attemptScript{land: contract.LandEnd{Outcome: contract.OutcomeSuccess, State: contract.NodeBlocked,
				Items: []contract.ItemResult{{Finding: "f-asks", Status: contract.ItemNeedsClarification, Question: "Which one?"}}}}
		case in.Node == "fails" && in.Opening == 1:
			return attemptScript{land: contract.LandEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "verify is red", Tail: "FAIL"}}
		}
		return attemptScript{}
	}
	return h
}

func (l *lab) items(asked bool) map[string]contract.ItemRow {
	l.t.Helper()
	answer, err := l.client.QueryWorkflow(l.t.Context(), l.id, "", contract.QueryItems, contract.ItemsQuery{Asked: asked})
	require.NoError(l.t, err)
	var list []contract.ItemRow
	require.NoError(l.t, answer.Get(&list))
	rows := map[string]contract.ItemRow{}
	for _, row := range list {
		rows[row.Finding] = row
	}
	return rows
}

func TestRunWaitsForAnswersAndGoesOnWithEach(t *testing.T) {
	t.Parallel()
	h := attended()
	l := newLab(t, h).begin()

	v := l.untilStatus(contract.RunPaused)
	require.Equal(t, contract.HoldQuestion, v.Holds[0].Kind)
	require.Contains(t, v.Holds[0].Reason, "2 blocked findings and 1 question of a worker")
	require.Equal(t, "starter triage "+l.in.Run, v.Holds[0].Lift)
	require.Equal(t, 1, v.Nodes[string(contract.NodeLanded)], "everything else went on")
	require.Zero(t, h.count("RunGate")-1, "the gate waits for what is still open")
	asked := l.items(true)
	require.Len(t, asked, 3)
	require.Equal(t, "Which one?", asked["f-asks"].Question)
	require.Equal(t, "2 failed attempts (work): verify is red", asked["f-fails"].Reason)
	require.Len(t, l.items(false), 4)

	// A partial answer runs what it opened; the rest stays open and is asked again.
	l.ordered(contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerClarified, Text: "the second"})
	l.until("the rest is asked", func(v contract.RunView) bool {
		return v.Status == contract.RunPaused && v.Nodes[string(contract.NodeLanded)] == 2
	})
	tried := h.tried("asks")
	require.Len(t, tried, 2)
	require.Equal(t, []contract.Clarification{{Finding: "f-asks", Question: "Which one?", Answer: "the second"}}, tried[1].Clarified)
	require.Equal(t, 2, tried[1].Opening)
	require.Len(t, l.items(true), 2)

	// A retry frees what depends on it; the last answer lifts the hold.
	l.signal(contract.CommandTriage, contract.Operator{Item: "f-fails", Action: contract.TriageRetry})
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	for id, row := range h.rows() {
		require.Equal(t, contract.NodeLanded, row.State, id)
	}
	require.Equal(t, 2, h.count("Reverify"), "once for each truth on which it waited")
}

func TestAnswersAreValidated(t *testing.T) {
	t.Parallel()
	h := attended()
	l := newLab(t, h).begin()
	l.untilStatus(contract.RunPaused)
	for name, c := range map[string]struct {
		command string
		order   contract.Operator
		want    string
	}{
		"no such finding":      {contract.CommandTriage, contract.Operator{Item: "f-none", Action: contract.TriageRetry}, "no such finding"},
		"not blocked":          {contract.CommandTriage, contract.Operator{Item: "f-fine", Action: contract.TriageRetry}, "is resolved, not blocked"},
		"no such answer":       {contract.CommandTriage, contract.Operator{Item: "f-fails", Action: "perhaps"}, "want retry, ignore or halt"},
		"nobody asked":         {contract.CommandAnswer, contract.Operator{Item: "f-fails", Action: contract.AnswerReject}, "nobody asked"},
		"no text":              {contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerClarified}, "the text is empty"},
		"of another run":       {contract.CommandAnswer, contract.Operator{Run: "other", Item: "f-asks", Action: contract.AnswerReject}, "is for run other"},
		"of another attempt":   {contract.CommandAnswer, contract.Operator{Asked: 7, Item: "f-asks", Action: contract.AnswerReject}, "attempt 1 said something since"},
		"node without blocked": {contract.CommandTriage, contract.Operator{Item: "fine", Action: contract.TriageRetry}, "no such finding"},
	} {
		_, err := l.update(c.command, c.order)
		var refused *temporal.ApplicationError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, contract.ErrorAnswerRefused, refused.Type(), name)
		require.ErrorContains(t, err, c.want, name)
	}
	l.signal(contract.CommandTriage, contract.Operator{Item: "f-none", Action: contract.TriageRetry})
	l.until("the signal is told", func(v contract.RunView) bool {
		return slices.ContainsFunc(v.Friction, func(f contract.Friction) bool { return f.Type == contract.FrictionBadMessage })
	})
	require.Len(t, l.items(true), 3, "nothing was changed")
	require.Equal(t, contract.RunPaused, l.view().Status)

	l.ordered(contract.CommandTriage, contract.Operator{Item: contract.EveryItem, Action: contract.TriageIgnore})
	l.ordered(contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerReject, Text: "works as designed", Asked: 1, Run: l.in.Run})
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status, "skips are a decision: %s", result.Reason)
	for _, item := range h.record.Items {
		switch item.Finding {
		case "f-asks":
			require.Equal(t, contract.ItemDeemedInappropriate, item.Status)
			require.Equal(t, "works as designed", item.Reason)
		case "f-fine":
			require.Equal(t, contract.ItemResolved, item.Status)
		default:
			require.Equal(t, contract.ItemIgnored, item.Status)
		}
	}
}

// What an operator puts off is not asked again: the run closes with it.
func TestDeferredQuestionClosesTheRunAsBlocked(t *testing.T) {
	t.Parallel()
	h := attended()
	h.units = h.units[:1]
	l := newLab(t, h).begin()
	l.untilStatus(contract.RunPaused)

	l.ordered(contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerDefer, Text: "next year"})
	result := l.wait()

	require.Equal(t, contract.RunBlocked, result.Status)
	require.Equal(t, contract.ItemAbandoned, h.record.Items[0].Status)
	require.Equal(t, "next year", h.record.Items[0].Reason)
}

func TestUnattendedRunAsksNobody(t *testing.T) {
	t.Parallel()
	h := attended()
	h.opened.Policy.Unattended = true
	result := newLab(t, h).begin().wait()
	require.Equal(t, contract.RunBlocked, result.Status)
	require.Equal(t, "3 findings are left", result.Reason)
	require.Equal(t, 1, h.count("Reverify"), "what others may have repaired is looked at all the same")
}

// What others repaired meanwhile is found on the truth, before anybody is asked.
func TestBlockedItemThatOthersRepairedIsResolved(t *testing.T) {
	t.Parallel()
	h := attended()
	h.units = h.units[1:]
	h.hub.reverify = func(in contract.ReverifyInput) contract.ReverifyEnd {
		return contract.ReverifyEnd{Truth: "t", Resolved: in.Findings, Reason: "`make test` was red on the base and is green"}
	}
	l := newLab(t, h).begin()

	result := l.wait()

	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, contract.NodeNoChange, h.rows()["fails"].State)
	require.Equal(t, contract.NodeLanded, h.rows()["on"].State, "it was freed")
	for _, item := range h.record.Items {
		if item.Finding == "f-fails" {
			require.Equal(t, contract.ItemResolvedNoChange, item.Status)
			require.Contains(t, item.Reason, "was red on the base")
		}
	}
}

// halt closes at once, whatever is alive, and keeps what there is.
func TestHaltClosesAtOnce(t *testing.T) {
	t.Parallel()
	h := attended()
	busy, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	script := h.work
	h.work = func(in contract.NodeInput) attemptScript {
		if in.Node != "fine" {
			return script(in)
		}
		close(busy)
		return attemptScript{until: release}
	}
	l := newLab(t, h).begin()
	awaitClosed(t, "the other node", busy)
	l.until("something is blocked", func(v contract.RunView) bool { return v.Items[string(contract.ItemBlocked)] == 2 })

	answer := l.ordered(contract.CommandTriage, contract.Operator{Item: "f-fails", Action: contract.TriageHalt, Text: "wrong plan"})
	require.Contains(t, answer.Done[0], "halted")
	result := l.wait()

	require.Equal(t, contract.RunBlocked, result.Status)
	require.Equal(t, "halted by an operator: wrong plan", result.Reason)
	require.Equal(t, 1, h.count("RunGate"), "no gate but the baseline")
	require.NotNil(t, result.Report)
	require.Equal(t, contract.OutcomeInterrupted, h.rows()["fine"].Attempts[0].Outcome)
	for _, item := range h.record.Items {
		require.Equal(t, contract.ItemAbandoned, item.Status)
		require.NotEmpty(t, item.Reason)
	}
}

// 11: an answer and a halt meet. Whichever is first, the run closes as halted,
// and nothing starts after the halt was recorded.
func TestAnswerAgainstHalt(t *testing.T) {
	t.Parallel()
	answer := contract.Operator{Item: "f-asks", Action: contract.AnswerClarified, Text: "the second"}
	halt := contract.Operator{Item: contract.EveryItem, Action: contract.TriageHalt}
	for _, first := range []string{contract.CommandAnswer, contract.CommandTriage} {
		t.Run(first+"-first", func(t *testing.T) {
			t.Parallel()
			h := attended()
			// The barrier: the verification before the question is under way when both come,
			// so that they are taken in one task.
			entered, release := h.hold("Reverify")
			defer release()
			l := newLab(t, h).begin()
			awaitClosed(t, "Reverify", entered)
			begun := h.count("RunWorker")

			if first == contract.CommandAnswer {
				l.ordered(contract.CommandAnswer, answer)
				l.ordered(contract.CommandTriage, halt)
			} else {
				l.ordered(contract.CommandTriage, halt)
				_, err := l.update(contract.CommandAnswer, answer)
				require.Error(t, err, "the run is ending")
			}
			release()
			result := l.wait()

			require.Equal(t, contract.RunBlocked, result.Status)
			require.Equal(t, "halted by an operator", result.Reason)
			require.Equal(t, begun, h.count("RunWorker"), "nothing starts any more")
			for _, item := range h.record.Items {
				require.True(t, item.Status.Terminal(), "%+v", item)
			}
		})
	}
	t.Run("signals at once", func(t *testing.T) {
		t.Parallel()
		h := attended()
		l := newLab(t, h).begin()
		l.untilStatus(contract.RunPaused)
		begun := h.count("RunWorker")
		l.signal(contract.CommandAnswer, answer)
		l.signal(contract.CommandTriage, halt)
		require.Equal(t, contract.RunBlocked, l.wait().Status)
		require.LessOrEqual(t, h.count("RunWorker"), begun+1, "the answer may have been first")
	})
}

// An answer that comes while the final gate runs is not lost: the node runs
// before the run closes.
func TestAnswerDuringTheFinalGate(t *testing.T) {
	t.Parallel()
	h := attended()
	h.opened.Policy.Unattended = true
	entered, release := make(chan struct{}), make(chan struct{})
	h.gate = holdGate(gateFinal, entered, release)
	l := newLab(t, h).begin()
	awaitClosed(t, "the final gate", entered)

	l.ordered(contract.CommandAnswer, contract.Operator{Item: "f-asks", Action: contract.AnswerClarified, Text: "the second"})
	close(release)
	result := l.wait()

	require.Equal(t, contract.RunBlocked, result.Status)
	require.Equal(t, contract.NodeLanded, h.rows()["asks"].State)
	require.Equal(t, 3, h.count("RunGate"), "baseline, and the final gate again")
}
