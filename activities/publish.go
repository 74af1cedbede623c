package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"mendflow/internal/artifacts"
	"mendflow/internal/contract"
	"mendflow/internal/forge"
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/report"
	"mendflow/internal/run"
)

// publishTarget is where a closing action goes, with every default filled in.
type publishTarget struct {
	into    string // merge, pull-request
	branch  string // push, pull-request
	remote  gitrepo.Remote
	forge   plan.Forge
	project string
	api     string
	tokens  []string // variables that may hold the token, first set wins
}

// resolveTarget finds where a run's closing action goes. An error wraps errInvalidPlan
// when the plan has to say more.
func resolveTarget(ctx context.Context, mirror *gitrepo.Mirror, config *contract.RunConfig) (publishTarget, error) {
	c := config.Plan.Close
	t := publishTarget{into: cmp.Or(c.Into, config.BaseBranch), branch: cmp.Or(c.Branch, contract.RunBranch(config.Run)), project: c.Project, api: c.API}
	if t.into == "" && (c.Action == plan.CloseMerge || c.Action == plan.ClosePullRequest) {
		return t, fmt.Errorf("find branch for %s: the base is no branch: name one in close.into: %w", c.Action, errInvalidPlan)
	}
	if c.Action != plan.ClosePush && c.Action != plan.ClosePullRequest {
		return t, nil
	}
	var err error
	if t.remote, err = mirror.Remote(ctx, c.Remote); err != nil {
		return t, fmt.Errorf("find remote for %s: %w: name one in close.remote: %w", c.Action, err, errInvalidPlan)
	}
	t.forge = cmp.Or(c.Forge, forgeOf(t.remote.Host()))
	t.tokens = tokenNames(c.TokenEnv, t.forge)
	if c.Action == plan.ClosePush {
		return t, nil
	}
	switch t.project = cmp.Or(t.project, t.remote.Project()); {
	case t.forge == "":
		return t, fmt.Errorf("find forge of %s: write github or gitlab in close.forge: %w", t.remote.URL, errInvalidPlan)
	case t.project == "":
		return t, fmt.Errorf("find project of %s: write owner/name in close.project: %w", t.remote.URL, errInvalidPlan)
	case t.api == "" && t.remote.Host() == "":
		return t, fmt.Errorf("find API for %s: write its address in close.api: %w", t.remote.URL, errInvalidPlan)
	case t.api == "":
		t.api = apiOf(t.forge, t.remote.Host())
	}
	return t, nil
}

// forgeOf tells the forge by the usual names of hosts.
func forgeOf(host string) plan.Forge {
	switch {
	case host == "github.com", strings.HasPrefix(host, "github."):
		return plan.ForgeGitHub
	case host == "gitlab.com", strings.HasPrefix(host, "gitlab."):
		return plan.ForgeGitLab
	}
	return ""
}

// apiOf is the usual place of a server's API; the public services have their own, which the clients know.
func apiOf(kind plan.Forge, host string) string {
	switch {
	case host == "github.com", host == "gitlab.com":
		return ""
	case kind == plan.ForgeGitLab:
		return "https://" + host + "/api/v4"
	}
	return "https://" + host + "/api/v3"
}

// tokenNames are the variables that may hold the token: the plan's, else those of the forges' own tools.
func tokenNames(named string, kind plan.Forge) []string {
	switch {
	case named != "":
		return []string{named}
	case kind == plan.ForgeGitHub:
		return []string{"GITHUB_TOKEN", "GH_TOKEN"}
	case kind == plan.ForgeGitLab:
		return []string{"GITLAB_TOKEN"}
	}
	return nil
}

// token reads the token of a target from the worker's environment; empty: it is not set.
func (h *Host) token(names []string) string {
	for _, name := range names {
		if values := h.values([]string{name}); len(values) > 0 {
			return values[len(values)-1]
		}
	}
	return ""
}

// tokenUser is the user name under which a forge takes a token for git.
func tokenUser(kind plan.Forge) string {
	if kind == plan.ForgeGitLab {
		return "oauth2"
	}
	return "x-access-token"
}

// Publish tries a run's closing action once, and looks first whether it is done.
// Whatever the outside says is a value; an error is our own fault or loss, after
// which the caller has to take the try for uncertain.
func (a *Publication) Publish(ctx context.Context, in contract.PublishInput) (contract.PublishEnd, error) {
	heart := startHeart(ctx, a.Host.ID, "publish")
	defer heart.end()
	end, err := a.publish(ctx, in, heart)
	if ctx.Err() != nil && err == nil && !end.State.Over() {
		err = ctx.Err() // what was cut short says nothing
	}
	end.Detail = oneLine(end.Detail)
	return end, translate(ctx, err)
}

// publisher is one try.
type publisher struct {
	*Publication
	in     contract.PublishInput
	opened *openRun
	target publishTarget
	token  string
	heart  *heart
}

func (a *Publication) publish(ctx context.Context, in contract.PublishInput, heart *heart) (contract.PublishEnd, error) {
	opened, err := a.Host.run(ctx, in.Config)
	if err != nil {
		return contract.PublishEnd{}, err
	}
	p := &publisher{Publication: a, in: in, opened: opened, heart: heart}
	if p.target, err = resolveTarget(ctx, opened.mirror, &opened.config); err != nil {
		if errors.Is(err, errInvalidPlan) {
			return failed("", err.Error()), nil
		}
		return contract.PublishEnd{}, err
	}
	p.token = a.Host.token(p.target.tokens)
	p.target.remote = p.target.remote.WithToken(tokenUser(p.target.forge), p.token)
	switch opened.config.Plan.Close.Action {
	case plan.CloseMerge:
		return p.merge(ctx), nil
	case plan.ClosePush:
		return p.push(ctx), nil
	case plan.ClosePullRequest:
		return p.pullRequest(ctx)
	case plan.CloseNone:
	}
	return failed("", "the plan has no closing action"), nil
}

func failed(branch, detail string) contract.PublishEnd {
	return contract.PublishEnd{State: contract.PublishFailed, Branch: branch, Detail: detail}
}

func (p *publisher) merge(ctx context.Context) contract.PublishEnd {
	p.heart.step("merge into " + p.target.into)
	res, err := p.opened.mirror.MergeInto(ctx, gitrepo.MergeIntoRequest{
		Run: p.in.Run, Branch: p.target.into, Head: p.in.Head, Look: p.in.Look, When: p.Now(),
		Message: fmt.Sprintf("Merge run %s\n\n%s", p.in.Run, p.opened.config.Plan.Goal),
	})
	end := contract.PublishEnd{Branch: p.target.into}
	switch {
	case err != nil: // the mark in the repository tells a repetition whether it happened
		end.State, end.Detail = contract.PublishUncertain, err.Error()
	case res.Refused != "":
		end.State, end.Detail = contract.PublishFailed, res.Refused
	case !res.Merged:
		end.State, end.Detail = contract.PublishRetryable, "it is not merged"
	default:
		end.State, end.Commit, end.Detail = contract.PublishSucceeded, res.Commit, strings.TrimSuffix("merged into "+p.target.into+"; "+res.Note, "; ")
	}
	return end
}

func (p *publisher) push(ctx context.Context) contract.PublishEnd {
	p.heart.step("push " + p.target.branch)
	status, err := p.opened.mirror.PushBranch(ctx, p.target.remote, p.target.branch, p.in.Head, p.in.Look)
	end := contract.PublishEnd{Branch: p.target.branch}
	switch {
	case errors.Is(err, gitrepo.ErrPushRefused), errors.Is(err, gitrepo.ErrNotRepository), noAccess(err):
		end.State, end.Detail = contract.PublishFailed, err.Error()
	case err != nil:
		end.State, end.Detail = contract.PublishUncertain, err.Error()
	case status == gitrepo.PushDiverged:
		end.State = contract.PublishFailed
		end.Detail = fmt.Sprintf("%s has a branch %s with other commits: remove it, or give close.branch another name", p.target.remote.URL, p.target.branch)
	case status == "":
		end.State, end.Detail = contract.PublishRetryable, "it is not pushed"
	default:
		end.State, end.Commit, end.Detail = contract.PublishSucceeded, p.in.Head, "pushed to "+p.target.remote.URL
	}
	return end
}

// noAccess reports whether git was not let in: nobody will answer its question for a password.
func noAccess(err error) bool {
	if err == nil {
		return false
	}
	for _, text := range []string{"Authentication failed", "could not read Username", "could not read Password", "Permission denied (", "returned error: 401", "returned error: 403"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// pullRequest looks for the request first, then for the branch, and opens what is
// missing: a request that was merged at once has taken its branch along.
func (p *publisher) pullRequest(ctx context.Context) (contract.PublishEnd, error) {
	branch := p.target.branch
	if p.token == "" {
		return failed(branch, fmt.Sprintf("there is no token: set %s in the environment of the workers", strings.Join(p.target.tokens, " or "))), nil
	}
	f, err := forge.New(forge.Settings{Kind: p.target.forge, API: p.target.api, Project: p.target.project, Token: p.token, Client: p.HTTP})
	if err != nil {
		return failed(branch, err.Error()), nil
	}
	if end, done := p.find(ctx, f); done {
		return end, nil
	}
	if p.in.Look {
		return contract.PublishEnd{State: contract.PublishRetryable, Branch: branch, Detail: "there is no pull request"}, nil
	}
	if end := p.push(ctx); end.State != contract.PublishSucceeded {
		return end, nil
	}
	proposal, err := p.proposal(ctx)
	if err != nil {
		return contract.PublishEnd{}, err
	}
	p.heart.step("open a pull request")
	p.Host.reach(PointOpening)
	opened, err := f.Open(ctx, proposal)
	p.Host.reach(PointOpened)
	if err == nil {
		return contract.PublishEnd{State: contract.PublishSucceeded, Branch: branch, URL: opened.URL, Commit: p.in.Head, Detail: opened.Name + " is open"}, nil
	}
	return p.unclear(ctx, f, err), nil
}

// Kill points of a publication that lie in activities.
const (
	PointOpening = "before-publish-open"
	PointOpened  = "after-publish-open"
)

// find looks for the run's request; done says that nothing is to be opened now.
func (p *publisher) find(ctx context.Context, f forge.Forge) (end contract.PublishEnd, done bool) {
	p.heart.step("look for a pull request")
	found, err := f.Find(ctx, p.target.branch)
	if err != nil { // nothing was changed, whatever the fault
		end = outside(err)
		if end.State == contract.PublishUncertain {
			end.State = contract.PublishRetryable
		}
		end.Branch, end.Detail = p.target.branch, "look for pull requests: "+end.Detail
		return end, true
	}
	requests := make([]run.Request, len(found))
	for i, r := range found {
		requests[i] = run.Request(r)
	}
	end, done = run.JudgeRequests(p.in.Run, p.in.Head, requests)
	end.Branch = p.target.branch
	return end, done
}

// unclear reconciles a request whose opening failed: it may be there all the same.
func (p *publisher) unclear(ctx context.Context, f forge.Forge, err error) contract.PublishEnd {
	end := outside(err)
	end.Branch, end.Detail = p.target.branch, "open pull request: "+end.Detail
	if end.State != contract.PublishUncertain {
		return end
	}
	if found, done := p.find(ctx, f); done && found.State.Over() {
		return found
	}
	return end
}

// outside is what an error of a forge means for the try.
func outside(err error) contract.PublishEnd {
	effect, after := forge.EffectOf(err)
	end := contract.PublishEnd{State: contract.PublishUncertain, Detail: err.Error(), RetryAfter: int(after.Seconds())}
	switch effect {
	case forge.Nothing:
		end.State = contract.PublishRetryable
	case forge.Refused:
		end.State = contract.PublishFailed
	default:
	}
	return end
}

// proposal is the request to open: the report's summary under our mark.
func (p *publisher) proposal(ctx context.Context) (forge.Proposal, error) {
	c := &p.opened.config
	const titleLimit = 200
	proposal := forge.Proposal{
		Head: p.target.branch, Into: p.target.into, Draft: c.Plan.Close.Draft,
		Title: clip(foldSpace(cmp.Or(c.Plan.Close.Title, c.Plan.Goal, "Repair "+c.Plan.ID)), titleLimit),
	}
	model, err := storedModel(ctx, p.Host.Artifacts, p.in.Run)
	if err != nil {
		return proposal, err
	}
	proposal.Body = report.Request(model) + "\n" + run.PublishMark(p.in.Run, p.in.Head) + "\n"
	return proposal, nil
}

// storedModel reads a run's stored report.
func storedModel(ctx context.Context, store *artifacts.Store, run string) (report.Model, error) {
	data, err := store.Get(ctx, contract.ReportKey(run, contract.ReportJSON))
	if err != nil {
		return report.Model{}, fmt.Errorf("read report: %w", err)
	}
	return report.Parse(data)
}

// AmendReport writes the result of a publication into a run's report, also long after the run has closed.
func (a *Publication) AmendReport(ctx context.Context, in contract.AmendInput) (contract.ReportEnd, error) {
	end, err := a.amend(ctx, in)
	return end, translate(ctx, err)
}

func (a *Publication) amend(ctx context.Context, in contract.AmendInput) (contract.ReportEnd, error) {
	model, err := storedModel(ctx, a.Host.Artifacts, in.Run)
	if err != nil {
		return contract.ReportEnd{}, err
	}
	refs := []string(nil)
	if in.Publication.Action == string(plan.CloseMerge) && in.Publication.State == contract.PublishSucceeded {
		refs = append(refs, gitrepo.MergedRef(in.Run))
	}
	return a.store(ctx, in.Run, model.Published(published(in.Publication), refs...))
}

// published is a publication as reports have it.
func published(v contract.PublicationView) *report.Publication {
	return &report.Publication{
		Action: plan.CloseAction(v.Action), State: string(v.State), Branch: v.Branch, URL: v.URL, Commit: v.Commit, Attempts: v.Attempts, Detail: v.Detail,
	}
}

// resolveClose finds at the start what the closing action will need at the end:
// nobody wants to hear after hours of work that there is no such remote.
func resolveClose(ctx context.Context, mirror *gitrepo.Mirror, config *contract.RunConfig, revision string) error {
	if config.Plan.Close.Action == plan.CloseNone {
		return nil
	}
	var err error
	if config.BaseBranch, err = mirror.BranchNamed(ctx, revision); err != nil {
		return fmt.Errorf("find branch of the base: %w", err)
	}
	target, err := resolveTarget(ctx, mirror, config)
	if err != nil || config.Plan.Close.Action != plan.CloseMerge {
		return err
	}
	if there, err := mirror.BranchNamed(ctx, target.into); err != nil || there == "" {
		return fmt.Errorf("find branch to merge into: the repository has no branch %s: %w", target.into, errors.Join(errInvalidPlan, err))
	}
	return nil
}
