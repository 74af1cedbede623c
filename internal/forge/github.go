package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"
)

type gitHub struct {
	client      *github.Client
	owner, name string
}

func newGitHub(s Settings) (Forge, error) {
	owner, name, ok := strings.Cut(s.Project, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("open forge: %q is no project on GitHub: want owner/name", s.Project)
	}
	options := []github.ClientOptionsFunc{
		github.WithHTTPClient(s.Client), github.WithUserAgent(agent),
		// The limits are the caller's to wait for, with a durable timer.
		github.WithDisableRateLimitCheck(),
	}
	if s.Token != "" {
		options = append(options, github.WithAuthToken(s.Token))
	}
	if s.API != "" {
		base := strings.TrimSuffix(s.API, "/") + "/"
		options = append(options, github.WithURLs(&base, &base))
	}
	client, err := github.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("open forge: %w", err)
	}
	return &gitHub{client: client, owner: owner, name: name}, nil
}

// pageSize is the most that a branch's requests are listed by: nobody opens more of one branch.
const pageSize = 100

func (g *gitHub) Find(ctx context.Context, head string) ([]PullRequest, error) {
	found, _, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "all", Head: g.owner + ":" + head, ListOptions: github.ListOptions{PerPage: pageSize},
	})
	if err != nil {
		return nil, gitHubError(err, false)
	}
	var all []PullRequest
	for _, pr := range found {
		// A server that does not know the filter lists everything.
		if pr.GetHead().GetRef() == head {
			all = append(all, gitHubRequest(pr))
		}
	}
	return all, nil
}

func gitHubRequest(pr *github.PullRequest) PullRequest {
	return PullRequest{
		Name: fmt.Sprintf("#%d", pr.GetNumber()), URL: pr.GetHTMLURL(), Body: pr.GetBody(),
		Open: pr.GetState() == "open", Merged: pr.GetMerged() || pr.MergedAt != nil,
	}
}

func (g *gitHub) Open(ctx context.Context, p Proposal) (PullRequest, error) {
	pr, _, err := g.client.PullRequests.Create(ctx, g.owner, g.name, github.CreatePullRequest{
		Title: &p.Title, Head: p.Head, Base: p.Into, Body: &p.Body, Draft: &p.Draft,
	})
	if err != nil {
		return PullRequest{}, gitHubError(err, true)
	}
	return gitHubRequest(pr), nil
}

func gitHubError(err error, write bool) error {
	now := time.Now()
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var response *github.ErrorResponse
	var moved *github.RedirectionError
	switch {
	case errors.As(err, &moved):
		return &Error{Effect: Refused, Err: err}
	case errors.As(err, &primary):
		return &Error{Effect: Nothing, RetryAfter: retryAfter(headerOf(primary.Response), now), Err: err}
	case errors.As(err, &secondary):
		return &Error{Effect: Nothing, RetryAfter: retryAfter(headerOf(secondary.Response), now), Err: err}
	case errors.As(err, &response) && response.Response != nil:
		e := answered(response.Response.StatusCode, response.Response.Header, write, now, err)
		if response.Response.StatusCode == http.StatusUnprocessableEntity && slices.ContainsFunc(response.Errors, func(e github.Error) bool {
			return strings.Contains(e.Message, "pull request already exists")
		}) {
			e.Effect = Exists
		}
		return e
	}
	return unanswered(err)
}

func headerOf(r *http.Response) http.Header {
	if r == nil {
		return nil
	}
	return r.Header
}
