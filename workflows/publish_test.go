package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"mendflow/internal/contract"
	"mendflow/internal/plan"
	"mendflow/internal/testkit"
)

// closingAction is the outside of a host: what publications are answered, and what was asked.
type closingAction struct {
	answer  func(ctx context.Context, n int, in contract.PublishInput) (contract.PublishEnd, error) // nil: success
	asked   []contract.PublishInput
	at      []time.Time
	amended []contract.AmendInput
	now     func() time.Time
	notices []contract.NotificationInput
	notify  func(ctx context.Context, in contract.NotificationInput) error // nil: taken
}

func (h *host) Publish(ctx context.Context, in contract.PublishInput) (contract.PublishEnd, error) {
	if err := h.begin(ctx, "Publish"); err != nil {
		return contract.PublishEnd{}, err
	}
	h.mu.Lock()
	c := &h.closing
	c.asked = append(c.asked, in)
	if c.now != nil {
		c.at = append(c.at, c.now())
	}
	n, answer := len(c.asked), c.answer
	h.mu.Unlock()
	if answer == nil {
		return contract.PublishEnd{State: contract.PublishSucceeded, Branch: "b", Commit: in.Head, Detail: "done"}, nil
	}
	return answer(ctx, n, in)
}

func (h *host) AmendReport(ctx context.Context, in contract.AmendInput) (contract.ReportEnd, error) {
	if err := h.begin(ctx, "AmendReport"); err != nil {
		return contract.ReportEnd{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing.amended = append(h.closing.amended, in)
	return contract.ReportEnd{Markdown: contract.Artifact{URI: "amended.md"}, JSON: contract.Artifact{URI: "amended.json"}}, nil
}

func (h *host) registerClosing(registry worker.ActivityRegistry) {
	registry.RegisterActivityWithOptions(h.Publish, activity.RegisterOptions{Name: "Publish"})
	registry.RegisterActivityWithOptions(h.AmendReport, activity.RegisterOptions{Name: "AmendReport"})
	registry.RegisterActivityWithOptions(h.Notify, activity.RegisterOptions{Name: "Notify"})
}

func (f *farm) registerClosing(registry worker.ActivityRegistry) {
	registry.RegisterActivityWithOptions(func(ctx context.Context, in contract.PublishInput) (contract.PublishEnd, error) {
		return f.of(in.Run).Publish(ctx, in)
	}, activity.RegisterOptions{Name: "Publish"})
	registry.RegisterActivityWithOptions(func(ctx context.Context, in contract.AmendInput) (contract.ReportEnd, error) {
		return f.of(in.Run).AmendReport(ctx, in)
	}, activity.RegisterOptions{Name: "AmendReport"})
	registry.RegisterActivityWithOptions(func(ctx context.Context, in contract.NotificationInput) error {
		return f.of(in.Notice.Run).Notify(ctx, in)
	}, activity.RegisterOptions{Name: "Notify"})
}

// closingHost has one node and a closing action.
func closingHost(action plan.CloseAction) *host {
	h := newHost(unit("a", 0))
	h.opened.Policy.Close = string(action)
	return h
}

func TestPublishesAfterTheReportAndWritesItAgain(t *testing.T) {
	t.Parallel()
	h := closingHost(plan.ClosePush)
	w := newWorld(t, h)
	var status contract.RunStatus
	h.closing.answer = func(_ context.Context, _ int, in contract.PublishInput) (contract.PublishEnd, error) {
		require.Equal(t, 1, h.count("WriteReport"), "the report comes first")
		require.Equal(t, contract.PublishPending, h.record.View.Publication.State, "and says that it is to be published")
		status = w.status(t).Status
		return contract.PublishEnd{State: contract.PublishSucceeded, Branch: "mendflow/r", Commit: in.Head, URL: "https://x/1", Detail: "pushed"}, nil
	}
	result := w.run(t)
	require.Equal(t, contract.RunCompleted, result.Status, result.Reason)
	require.Equal(t, contract.RunPublishing, status)
	want := contract.PublicationView{
		Action: "push", State: contract.PublishSucceeded, Branch: "mendflow/r", URL: "https://x/1", Commit: result.HeadCommit, Attempts: 1, Detail: "pushed",
	}
	require.Equal(t, &want, result.Publication)
	require.Equal(t, []contract.AmendInput{{Run: testRun, Publication: want}}, h.closing.amended)
	require.Equal(t, "amended.md", result.Report.URI)
	require.Equal(t, &want, w.status(t).Publication)
}

func TestNothingIsPublishedThatIsNotGreenOrEmpty(t *testing.T) {
	t.Parallel()
	red := func(_ context.Context, in contract.GateInput) (contract.GateEnd, error) {
		end := contract.GateEnd{Kind: "executed", Verdict: "green", Commit: "truth"}
		if in.Purpose == gateFinal {
			end.Verdict, end.Failing = gateRed, "go test ./..."
		}
		return end, nil
	}
	bad := func(in contract.NodeInput) attemptScript {
		if in.Node == "b" {
			return attemptScript{end: contract.WorkerEnd{Outcome: contract.OutcomeError, Cause: contract.CauseWork, Reason: "no"}}
		}
		return attemptScript{}
	}
	same := func(in contract.NodeInput) attemptScript {
		end := landed(in)
		end.Commit, end.State = "", contract.NodeNoChange
		end.Items[0].Status = contract.ItemResolvedNoChange
		return attemptScript{land: end}
	}
	for name, c := range map[string]struct {
		change  func(*host)
		partial bool
		status  contract.RunStatus
		state   contract.PublishState
		detail  string
	}{
		"no action":         {func(h *host) { h.opened.Policy.Close = "none" }, false, contract.RunCompleted, "", ""},
		"findings left":     {func(h *host) { h.work = bad }, false, contract.RunBlocked, contract.PublishSkipped, "the run is not green: `starter publish retry r --allow-partial`"},
		"findings left, ok": {func(h *host) { h.work = bad }, true, contract.RunBlocked, contract.PublishSucceeded, "done"},
		"red gate": {func(h *host) {
			h.gate, h.opened.GateOnRed = red, string(plan.OnRedReblock)
		}, false, contract.RunBlocked, contract.PublishSkipped, "the run is not green"},
		"nothing landed": {func(h *host) { h.work, h.units = same, h.units[:1] }, false, contract.RunCompleted, contract.PublishSkipped, "nothing landed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(unit("a", 0), unit("b", 0))
			h.opened.Policy.Close = string(plan.CloseMerge)
			c.change(h)
			w := newWorld(t, h)
			w.in.AllowPartial = c.partial
			result := w.run(t)
			require.Equal(t, c.status, result.Status, result.Reason)
			if c.state == "" {
				require.Nil(t, result.Publication)
			} else {
				require.Equal(t, c.state, result.Publication.State)
				require.Contains(t, result.Publication.Detail, c.detail)
			}
			require.Equal(t, c.state == contract.PublishSucceeded, h.count("Publish") == 1)
			require.Equal(t, h.count("Publish"), h.count("AmendReport"))
			require.Equal(t, result.Publication == nil, h.record.View.Publication == nil, "the first report says it already")
		})
	}
}

func TestTriesAreSpacedAndCounted(t *testing.T) {
	t.Parallel()
	h := closingHost(plan.ClosePullRequest)
	w := newWorld(t, h)
	h.closing.now = w.env.Now
	h.closing.answer = func(_ context.Context, n int, in contract.PublishInput) (contract.PublishEnd, error) {
		switch {
		case in.Look:
			return contract.PublishEnd{State: contract.PublishRetryable, Detail: "there is no pull request"}, nil
		case n == 2: // a lost worker
			return contract.PublishEnd{}, temporal.NewNonRetryableApplicationError("gone", contract.ErrorInternal, nil)
		case n == 3:
			return contract.PublishEnd{State: contract.PublishRetryable, RetryAfter: 1800, Detail: "429"}, nil
		}
		return contract.PublishEnd{State: contract.PublishUncertain, Detail: "502"}, nil
	}
	result := w.run(t)
	require.Equal(t, contract.RunCompleted, result.Status, "the verdict stands")
	require.Equal(t, contract.PublishExhausted, result.Publication.State)
	require.Equal(t, 5, result.Publication.Attempts)
	var waits []time.Duration
	for i := 1; i < len(h.closing.at); i++ {
		waits = append(waits, h.closing.at[i].Sub(h.closing.at[i-1]).Round(time.Second))
	}
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 30 * time.Minute, 16 * time.Second, 32 * time.Second}, waits)
	require.True(t, h.closing.asked[5].Look, "an unclear last answer is looked up")
	require.Equal(t, contract.PublishExhausted, h.closing.amended[0].Publication.State)
}

func TestAnOperatorEndsTheWaitForATry(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(l *lab){
		"update": func(l *lab) {
			answer := l.ordered(contract.CommandPublishRetry, contract.Operator{})
			require.Equal(l.t, []string{"the next try begins now"}, answer.Done)
		},
		"signal": func(l *lab) { l.signal(contract.CommandPublishRetry, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := closingHost(plan.ClosePush)
			h.closing.answer = func(_ context.Context, n int, in contract.PublishInput) (contract.PublishEnd, error) {
				if n == 1 {
					return contract.PublishEnd{State: contract.PublishRetryable, RetryAfter: 3600, Detail: "limit"}, nil
				}
				return contract.PublishEnd{State: contract.PublishSucceeded, Commit: in.Head}, nil
			}
			l := newLab(t, h)
			l.begin()
			v := l.until("a wait for the next try", func(v contract.RunView) bool {
				return v.Publication != nil && v.Publication.Until != nil
			})
			require.Equal(t, contract.RunPublishing, v.Status)
			_, err := l.update(contract.CommandCancel, contract.Operator{})
			require.ErrorContains(t, err, "closing", "publishing is not cancelled")
			order(l)
			require.Equal(t, contract.PublishSucceeded, l.wait().Publication.State)
			require.Equal(t, 2, h.count("Publish"))
		})
	}
}

func TestACancelOfTheWorkflowDoesNotCutAPublication(t *testing.T) {
	t.Parallel()
	h := closingHost(plan.ClosePush)
	l := newLab(t, h)
	entered, release := h.hold("Publish")
	defer release()
	l.begin()
	awaitClosed(t, "Publish", entered)
	require.NoError(t, l.client.CancelWorkflow(t.Context(), l.id, ""))
	release()
	result := l.wait()
	require.Equal(t, contract.RunCompleted, result.Status)
	require.Equal(t, contract.PublishSucceeded, result.Publication.State)
}

func TestPublicationRetriesBesideAClosedRun(t *testing.T) {
	t.Parallel()
	h := closingHost(plan.ClosePush)
	l := newLab(t, h)
	h.closing.answer = func(_ context.Context, n int, in contract.PublishInput) (contract.PublishEnd, error) {
		if n == 1 {
			return contract.PublishEnd{State: contract.PublishRetryable, RetryAfter: 3600, Detail: "limit"}, nil
		}
		return contract.PublishEnd{State: contract.PublishSucceeded, Commit: in.Head}, nil
	}
	id := contract.PublicationID(l.in.Run)
	in := contract.PublicationInput{Action: "push", Publish: contract.PublishInput{Run: l.in.Run, Config: h.opened.Config, Head: "abc"}}
	handle, err := l.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: contract.QueueMain}, contract.WorkflowPublication, in)
	require.NoError(t, err)
	testkit.Eventually(t, "the publication waits", func() bool {
		answer, err := l.client.QueryWorkflow(t.Context(), id, "", contract.QueryStatus)
		var v contract.PublicationResult
		return err == nil && answer.Get(&v) == nil && v.Publication.Until != nil
	})
	require.NoError(t, l.client.SignalWorkflow(patience(t), id, "", contract.CommandPublishRetry, "please"))
	var result contract.PublicationResult
	require.NoError(t, handle.Get(t.Context(), &result))
	require.Equal(t, contract.PublishSucceeded, result.Publication.State)
	require.Equal(t, "abc", h.closing.asked[1].Head)
	require.Equal(t, []contract.AmendInput{{Run: l.in.Run, Publication: result.Publication}}, h.closing.amended)
	require.NoError(t, newReplayer(t).ReplayWorkflowHistory(quietLogger{}, l.history(id, "")))
}

// TestPublicationIsCancelled ends a retry that an operator gives up.
func TestPublicationIsCancelled(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLogger{})
	env := suite.NewTestWorkflowEnvironment()
	h := newHost()
	h.closing.answer = func(context.Context, int, contract.PublishInput) (contract.PublishEnd, error) {
		return contract.PublishEnd{State: contract.PublishRetryable, RetryAfter: 3600}, nil
	}
	h.register(env, false)
	env.RegisterWorkflowWithOptions(Publication, workflow.RegisterOptions{Name: contract.WorkflowPublication})
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(contract.WorkflowPublication, contract.PublicationInput{Action: "push"})
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
	require.Equal(t, 1, h.count("Publish"))
}
