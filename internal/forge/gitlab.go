package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

type gitLab struct {
	client  *gitlab.Client
	project string
}

// noWait lets every request go at once: each try sends two or three.
type noWait struct{}

// Wait implements gitlab.RateLimiter.
func (noWait) Wait(context.Context) error { return nil }

func newGitLab(s Settings) (Forge, error) {
	if s.Project == "" {
		return nil, errors.New("open forge: no project on GitLab: want group/name")
	}
	options := []gitlab.ClientOptionFunc{
		gitlab.WithHTTPClient(s.Client), gitlab.WithUserAgent(agent), gitlab.WithCustomLimiter(noWait{}),
		// The library repeats on its own what got no answer; the caller looks first.
		gitlab.WithoutRetries(),
	}
	if s.API != "" {
		options = append(options, gitlab.WithBaseURL(s.API))
	}
	client, err := gitlab.NewClient(s.Token, options...)
	if err != nil {
		return nil, fmt.Errorf("open forge: %w", err)
	}
	return &gitLab{client: client, project: s.Project}, nil
}

func (g *gitLab) Find(ctx context.Context, head string) ([]PullRequest, error) {
	found, _, err := g.client.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: gitlab.ListOptions{PerPage: pageSize}, State: gitlab.Ptr("all"), SourceBranch: &head,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, gitLabError(err, false)
	}
	var all []PullRequest
	for _, mr := range found {
		if mr.SourceBranch == head {
			all = append(all, gitLabRequest(mr))
		}
	}
	return all, nil
}

func gitLabRequest(mr *gitlab.BasicMergeRequest) PullRequest {
	return PullRequest{
		Name: fmt.Sprintf("!%d", mr.IID), URL: mr.WebURL, Body: mr.Description,
		Open: mr.State == "opened" || mr.State == "locked", Merged: mr.State == "merged",
	}
}

func (g *gitLab) Open(ctx context.Context, p Proposal) (PullRequest, error) {
	title := p.Title
	if p.Draft {
		title = "Draft: " + title // GitLab's own mark of a draft
	}
	mr, _, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
		Title: &title, Description: &p.Body, SourceBranch: &p.Head, TargetBranch: &p.Into,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return PullRequest{}, gitLabError(err, true)
	}
	return gitLabRequest(&mr.BasicMergeRequest), nil
}

func gitLabError(err error, write bool) error {
	if errors.Is(err, gitlab.ErrNotFound) { // the library's word for a 404
		return &Error{Effect: Refused, Err: err}
	}
	var response *gitlab.ErrorResponse
	if !errors.As(err, &response) || response.Response == nil {
		return unanswered(err)
	}
	code := response.Response.StatusCode
	e := answered(code, response.Response.Header, write, time.Now(), err)
	if code == http.StatusConflict && write {
		e.Effect = Exists
	}
	return e
}
