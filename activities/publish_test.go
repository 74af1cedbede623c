package activities

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"mendflow/internal/contract"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/run"
	"mendflow/internal/testkit/forgeserver"
)

// publishFlow is a flow whose node one has landed and whose report is stored.
type publishFlow struct {
	*flow
	head string
	pub  *Publication
}

// answerLimit is how long these tests wait for a forge that says nothing.
const answerLimit = 3 * time.Second

func newPublishFlow(t *testing.T, closing plan.Close) *publishFlow {
	t.Helper()
	f := &publishFlow{flow: newFlow(t, "echo repaired > one/word")}
	p, faults := plan.Parse("plan.yaml", []byte(flowPlan))
	require.NoError(t, faults.Err())
	p.Close = closing
	f.in.Plan = f.put("plan.json", p)
	f.open()
	in := f.node("one", 1)
	f.work(in)
	f.head = f.land(in).Commit
	require.NotEmpty(t, f.head)
	f.pub = &Publication{Host: f.host, Now: time.Now, HTTP: &http.Client{Timeout: answerLimit}}
	record := contract.RunRecord{
		View:  contract.RunView{Run: "r", Status: contract.RunCompleted, Repository: f.hub, BaseCommit: f.opened.BaseCommit, StartedAt: time.Unix(1_700_000_000, 0)},
		Items: []contract.ItemRow{{Finding: "F-1", Node: "one", Status: contract.ItemResolved, Attempt: 1}},
		Nodes: []contract.NodeRow{{ID: "one", State: contract.NodeLanded, Attempts: []contract.AttemptRow{{K: 1, Opening: 1, Outcome: contract.OutcomeSuccess, Commit: f.head}}}},
	}
	record.View.Publication = &contract.PublicationView{Action: string(closing.Action), State: contract.PublishPending}
	must[contract.ReportEnd](f.flow, f.pub.WriteReport, contract.ReportInput{Run: "r", Config: f.opened.Config, State: []contract.Artifact{f.put("record", record)}})
	return f
}

func (f *publishFlow) try(look bool) contract.PublishEnd {
	f.t.Helper()
	return must[contract.PublishEnd](f.flow, f.pub.Publish, contract.PublishInput{Run: "r", Config: f.opened.Config, Head: f.head, Look: look})
}

// drive publishes as the workflow does, without its waits.
func (f *publishFlow) drive() contract.PublicationView {
	f.t.Helper()
	p := run.NewPublication("any")
	now := time.Unix(1_700_000_000, 0)
	for {
		switch step, until := p.Next(now); step {
		case run.PublishDone:
			return p.View
		case run.PublishWait:
			now = until
		default:
			p.Begin()
			p.Answer(f.try(step == run.PublishLook), now)
		}
	}
}

func TestMergeActionMovesTheBaseBranch(t *testing.T) {
	t.Parallel()
	f := newPublishFlow(t, plan.Close{Action: plan.CloseMerge})
	require.Equal(t, contract.PublishRetryable, f.try(true).State)
	end := f.try(false)
	require.Equal(t, contract.PublishEnd{State: contract.PublishSucceeded, Branch: "main", Commit: f.head, Detail: "merged into main"}, end)
	require.Equal(t, f.head, f.git("rev-parse", "main"))
	require.Empty(t, f.git("status", "--porcelain"))
	require.Equal(t, end, f.try(false))
	require.Equal(t, end, f.try(true))

	amended := must[contract.ReportEnd](f.flow, f.pub.AmendReport, contract.AmendInput{Run: "r", Publication: contract.PublicationView{Action: "merge", State: contract.PublishSucceeded, Commit: f.head, Attempts: 1}})
	require.NotEmpty(t, amended.Markdown.SHA256)
	model, err := storedModel(t.Context(), f.host.Artifacts, "r")
	require.NoError(t, err)
	require.Equal(t, "succeeded", model.Publication.State)
	require.Contains(t, model.Refs, gitrepo.MergedRef("r"))
	text, err := f.host.Artifacts.Get(t.Context(), contract.ReportKey("r", contract.ReportMarkdown))
	require.NoError(t, err)
	require.Contains(t, string(text), "merge: succeeded")
}

func TestMergeActionIsRefusedWhereTheCheckoutIsDirty(t *testing.T) {
	t.Parallel()
	f := newPublishFlow(t, plan.Close{Action: plan.CloseMerge})
	require.NoError(t, os.WriteFile(filepath.Join(f.hub, "two", "word"), []byte("mine\n"), 0o644))
	end := f.try(false)
	require.Equal(t, contract.PublishFailed, end.State)
	require.Contains(t, end.Detail, "which has uncommitted changes")
	require.Equal(t, f.opened.BaseCommit, f.git("rev-parse", "main"))
}

// on is the same run with another closing action: the hub, the landed work and the
// report are shared, since they take long to make and no publication changes them.
func (f *publishFlow) on(t *testing.T, closing plan.Close, environ ...string) *publishFlow {
	t.Helper()
	data, err := f.host.Artifacts.Get(t.Context(), f.opened.Config.URI)
	require.NoError(t, err)
	var config contract.RunConfig
	require.NoError(t, json.Unmarshal(data, &config))
	config.Plan.Close, config.BaseBranch = closing, "main"
	host := &Host{ID: "h", StateDir: f.host.StateDir, Git: f.host.Git, Artifacts: f.host.Artifacts, Log: f.host.Log, Environ: func() []string {
		return append(os.Environ(), environ...)
	}}
	shared := *f.flow
	shared.t, shared.host = t, host
	shared.opened.Config = shared.put(fmt.Sprintf("configs/%d.json", configs.Add(1)), config)
	return &publishFlow{flow: &shared, head: f.head, pub: &Publication{Host: host, Now: time.Now, HTTP: &http.Client{Timeout: answerLimit}}}
}

var configs atomic.Int64

// onForge is the run with requests on a stand-in of its own.
func (f *publishFlow) onForge(t *testing.T, kind plan.Forge) (*publishFlow, *forgeserver.Server) {
	t.Helper()
	s := forgeserver.New(t, f.hub)
	api := s.GitHub()
	if kind == plan.ForgeGitLab {
		api = s.GitLab()
	}
	return f.on(t, plan.Close{
		Action: plan.ClosePullRequest, Remote: s.Remote(), Forge: kind, API: api, TokenEnv: "FORGE_TOKEN", Title: "Repair the words", Draft: true,
	}, "FORGE_TOKEN="+forgeserver.Token), s
}

// landedFlow is a run that has landed.
func landedFlow(t *testing.T) *publishFlow {
	t.Helper()
	f := newPublishFlow(t, plan.Close{Action: plan.CloseNone})
	f.git("branch", "-D", "mendflow/r") // of the forge's copies none has it
	return f
}

func bothForges(t *testing.T, test func(t *testing.T, base *publishFlow, kind plan.Forge)) {
	t.Helper()
	base := landedFlow(t)
	for _, kind := range []plan.Forge{plan.ForgeGitHub, plan.ForgeGitLab} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, base, kind)
		})
	}
}

func TestPullRequestIsOpenedOnceWithOurMark(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, base *publishFlow, kind plan.Forge) {
		f, s := base.onForge(t, kind)
		require.Equal(t, contract.PublishRetryable, f.try(true).State)
		require.Empty(t, s.Requests(), "looking changes nothing")
		end := f.try(false)
		require.Equal(t, contract.PublishSucceeded, end.State, end.Detail)
		require.Equal(t, f.head, end.Commit)
		require.Contains(t, end.URL, s.URL+"/acme/shop/")
		require.Equal(t, f.head, s.Branches(t)["mendflow/r"])
		requests := s.Requests()
		require.Len(t, requests, 1)
		require.Equal(t, "Repair the words", requests[0].Title)
		require.Equal(t, "main", requests[0].Into)
		require.True(t, requests[0].Draft)
		require.Contains(t, requests[0].Body, "one is broken")
		require.Contains(t, requests[0].Body, run.PublishMark("r", f.head))
		require.NotContains(t, requests[0].Body, forgeserver.Token)
		again := f.try(false)
		require.Equal(t, contract.PublishSucceeded, again.State)
		require.Equal(t, end.URL, again.URL)
		require.Len(t, s.Requests(), 1)
	})
}

// TestExactlyOneRequestWhateverHappens lets each call fail in each way.
func TestExactlyOneRequestWhateverHappens(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, base *publishFlow, kind plan.Forge) {
		for op, ways := range map[string][]string{
			forgeserver.OpFind: {forgeserver.Lose, forgeserver.Bad502, forgeserver.Limit429, forgeserver.Secondary, forgeserver.Hang, forgeserver.Garbage},
			forgeserver.OpOpen: {
				forgeserver.Lose, forgeserver.Merge, forgeserver.Drop, forgeserver.Hang, forgeserver.HangAfter, forgeserver.Garbage,
				forgeserver.Bad502, forgeserver.After502, forgeserver.Limit429, forgeserver.Secondary,
			},
			forgeserver.OpPush: {forgeserver.Lose, forgeserver.Drop, forgeserver.Bad502, forgeserver.After502},
			forgeserver.OpRefs: {forgeserver.Drop, forgeserver.Bad502},
		} {
			for _, how := range ways {
				t.Run(op+" "+how, func(t *testing.T) {
					t.Parallel()
					f, s := base.onForge(t, kind)
					s.Fail(forgeserver.Fault{Op: op, How: how})
					v := f.drive()
					require.Equal(t, contract.PublishSucceeded, v.State, v.Detail)
					require.Empty(t, s.Left())
					f.requireOnce(s, how == forgeserver.Merge)
				})
			}
		}
	})
}

// requireOnce checks that the forge has one request of ours, and the branch unless it was merged.
func (f *publishFlow) requireOnce(s *forgeserver.Server, merged bool) {
	f.t.Helper()
	require.Len(f.t, s.Requests(), 1)
	branches := s.Branches(f.t)
	if merged {
		require.Equal(f.t, map[string]string{"main": f.head}, branches)
	} else {
		require.Equal(f.t, f.head, branches["mendflow/r"])
		require.Len(f.t, branches, 2)
	}
}

// TestAnyChainOfFaultsPublishesAtMostOnce draws chains of faults: there is never a
// second request, and success is told exactly when there is one.
func TestAnyChainOfFaultsPublishesAtMostOnce(t *testing.T) {
	t.Parallel()
	base := landedFlow(t)
	ways := []string{
		forgeserver.Lose, forgeserver.Merge, forgeserver.Drop, forgeserver.Garbage, forgeserver.Bad502, forgeserver.After502,
		forgeserver.Limit429, forgeserver.Secondary,
	}
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		if round++; round > 5 { // a repository and a server each
			return
		}
		f, s := base.onForge(t, plan.ForgeGitHub)
		merged := false
		for range rapid.IntRange(1, 9).Draw(r, "faults") {
			op := rapid.SampledFrom([]string{forgeserver.OpFind, forgeserver.OpOpen, forgeserver.OpPush}).Draw(r, "op")
			how := rapid.SampledFrom(ways).Draw(r, "how")
			if how == forgeserver.Merge && op != forgeserver.OpOpen || how == forgeserver.Garbage && op == forgeserver.OpPush {
				continue // git waits for the rest of half an answer until the activity's own limit
			}
			merged = merged || how == forgeserver.Merge
			s.Fail(forgeserver.Fault{Op: op, How: how})
		}
		v := f.drive()
		requests := s.Requests()
		if len(requests) > 1 {
			r.Fatalf("%d requests: %+v", len(requests), requests)
		}
		if (v.State == contract.PublishSucceeded) != (len(requests) == 1) && v.State != contract.PublishExhausted {
			r.Fatalf("%s with %d requests: %s", v.State, len(requests), v.Detail)
		}
		if v.State == contract.PublishExhausted && len(requests) == 1 && v.Attempts < 5 {
			r.Fatalf("gave up early: %+v", v)
		}
	})
}

func TestPermanentRefusalsEndThePublication(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, base *publishFlow, kind plan.Forge) {
		for how, want := range map[string]string{forgeserver.Forbid: "403", forgeserver.Invalid: "422"} {
			f, s := base.onForge(t, kind)
			s.Fail(forgeserver.Fault{Op: forgeserver.OpOpen, How: how})
			v := f.drive()
			require.Equal(t, contract.PublishFailed, v.State, v.Detail)
			require.Contains(t, v.Detail, want)
			require.Equal(t, 1, v.Attempts)
			require.Empty(t, s.Requests())
		}
	})
}

func TestRequestsOfOthersAndClosedOnesAreLeftAlone(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, base *publishFlow, kind plan.Forge) {
		f, s := base.onForge(t, kind)
		s.Add(forgeserver.Request{Head: "mendflow/r", Into: "main", State: "closed", Body: run.PublishMark("r", f.head)})
		v := f.drive()
		require.Equal(t, contract.PublishFailed, v.State)
		require.Contains(t, v.Detail, "was closed without being merged")

		f, s = base.onForge(t, kind)
		s.Add(forgeserver.Request{Head: "mendflow/r", Into: "main", State: "open", Body: "mine"})
		v = f.drive()
		require.Equal(t, contract.PublishFailed, v.State)
		require.Contains(t, v.Detail, "not of this run")
		require.NotContains(t, s.Branches(t), "mendflow/r", "nothing was pushed")
	})
}

func TestABranchOfOthersIsLeftAlone(t *testing.T) {
	t.Parallel()
	base := landedFlow(t)
	f, s := base.onForge(t, plan.ForgeGitHub)
	f.git("checkout", "-q", "--orphan", "other")
	f.git("-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "-m", "Theirs")
	f.git("push", "-q", s.Repo, "other:mendflow/r")
	theirs := s.Branches(t)["mendflow/r"]
	v := f.drive()
	require.Equal(t, contract.PublishFailed, v.State)
	require.Contains(t, v.Detail, "has a branch mendflow/r with other commits")
	require.Equal(t, theirs, s.Branches(t)["mendflow/r"])
	require.Empty(t, s.Requests())
}

func TestTokensAreAskedForAndNeverTold(t *testing.T) {
	t.Parallel()
	base := landedFlow(t)
	s := forgeserver.New(t, base.hub)
	closing := plan.Close{Action: plan.ClosePullRequest, Remote: s.Remote(), Forge: plan.ForgeGitHub, API: s.GitHub()}
	f := base.on(t, closing, "GITHUB_TOKEN=", "GH_TOKEN=")
	end := f.try(false)
	require.Equal(t, contract.PublishFailed, end.State)
	require.Equal(t, "there is no token: set GITHUB_TOKEN or GH_TOKEN in the environment of the workers", end.Detail)

	closing.TokenEnv = "FORGE_TOKEN"
	f = base.on(t, closing, "FORGE_TOKEN=wrong-0123456789")
	end = f.try(false)
	require.Equal(t, contract.PublishFailed, end.State)
	require.Contains(t, end.Detail, "401")
	require.NotContains(t, end.Detail, "wrong-0123456789")

	closing = plan.Close{Action: plan.ClosePush, Remote: s.Remote(), TokenEnv: "FORGE_TOKEN"}
	f = base.on(t, closing, "FORGE_TOKEN=wrong-0123456789")
	end = f.try(false)
	require.Equal(t, contract.PublishFailed, end.State, end.Detail)
	require.NotContains(t, end.Detail, "wrong-0123456789")
	f = base.on(t, closing, "FORGE_TOKEN="+forgeserver.Token)
	require.Equal(t, contract.PublishSucceeded, f.drive().State)
	require.Equal(t, f.head, s.Branches(t)["mendflow/r"])
}

func TestARunIsNotOpenedForAClosingActionThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		closing plan.Close
		base    string
	}{
		"name one in close.remote":              {plan.Close{Action: plan.ClosePush}, ""},
		"close.remote":                          {plan.Close{Action: plan.ClosePush, Remote: "upstream"}, ""},
		"name one in close.into":                {plan.Close{Action: plan.CloseMerge}, "main~0"},
		"the repository has no branch release":  {plan.Close{Action: plan.CloseMerge, Into: "release"}, ""},
		"write github or gitlab in close.forge": {plan.Close{Action: plan.ClosePullRequest, Remote: "https://code.example.com/a/b"}, ""},
		"write owner/name in close.project":     {plan.Close{Action: plan.ClosePullRequest, Remote: "/srv/x.git", Forge: plan.ForgeGitHub}, ""},
		"write its address in close.api":        {plan.Close{Action: plan.ClosePullRequest, Remote: "/srv/x.git", Forge: plan.ForgeGitHub, Project: "a/b"}, ""},
	} {
		f := newFlow(t, "true")
		p, faults := plan.Parse("plan.yaml", []byte(flowPlan))
		require.NoError(t, faults.Err())
		p.Close, f.in.Base = c.closing, c.base
		f.in.Plan = f.put("plan.json", p)
		_, err := call[contract.OpenRunResult](f, f.repository().OpenRun, f.in)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, contract.ErrorInvalidPlan)
	}
}

func TestTargetsAreFoundByTheRemote(t *testing.T) {
	t.Parallel()
	f := newFlow(t, "true").open()
	mirror, err := f.host.mirror(t.Context(), f.hub, &plan.Plan{})
	require.NoError(t, err)
	for remote, want := range map[string][4]string{ // forge, project, api, variables
		"git@github.com:acme/shop.git":       {"github", "acme/shop", "", "GITHUB_TOKEN GH_TOKEN"},
		"https://github.acme.com/a/b":        {"github", "a/b", "https://github.acme.com/api/v3", "GITHUB_TOKEN GH_TOKEN"},
		"https://gitlab.com/g/s/p.git":       {"gitlab", "g/s/p", "", "GITLAB_TOKEN"},
		"ssh://git@gitlab.acme.com:2222/g/p": {"gitlab", "g/p", "https://gitlab.acme.com/api/v4", "GITLAB_TOKEN"},
	} {
		config := &contract.RunConfig{Run: "r", BaseBranch: "main", Plan: plan.Plan{Close: plan.Close{Action: plan.ClosePullRequest, Remote: remote}}}
		got, err := resolveTarget(t.Context(), mirror, config)
		require.NoError(t, err, remote)
		require.Equal(t, want, [4]string{string(got.forge), got.project, got.api, strings.Join(got.tokens, " ")}, remote)
		require.Equal(t, "mendflow/r main", fmt.Sprint(got.branch, " ", got.into))
	}
}
