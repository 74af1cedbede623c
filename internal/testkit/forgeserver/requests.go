package forgeserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// proposal is what both services are sent, in the words of this package.
type proposal struct {
	head, into, title, body string
	draft                   bool
}

// open adds a request. Both services refuse a second open one of a branch, and one
// whose branches are not there.
func (s *Server) open(p proposal) (*Request, string) {
	head, err := s.tryGit(s.Repo, "rev-parse", "--verify", "-q", "refs/heads/"+p.head)
	if err != nil {
		return nil, "head is no branch"
	}
	if _, err := s.tryGit(s.Repo, "rev-parse", "--verify", "-q", "refs/heads/"+p.into); err != nil {
		return nil, "base is no branch"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Head == p.head && r.State == "open" {
			return nil, "exists"
		}
	}
	r := &Request{
		Number: len(s.requests) + 1, Head: p.head, Into: p.into, Title: p.title, Body: p.body, Draft: p.draft,
		State: "open", HeadSHA: strings.TrimSpace(head),
	}
	s.requests = append(s.requests, r)
	return r, ""
}

// mergeLast merges the newest request as a maintainer does, and deletes its branch.
func (s *Server) mergeLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return
	}
	r := s.requests[len(s.requests)-1]
	for _, args := range [][]string{
		{"update-ref", "refs/heads/" + r.Into, r.HeadSHA},
		{"update-ref", "-d", "refs/heads/" + r.Head},
	} {
		if _, err := s.tryGit(s.Repo, args...); err != nil {
			s.t.Error(err)
		}
	}
	r.State, r.SourceBranchGone = "merged", true
}

// branch lists the requests of a branch, newest first.
func (s *Server) branch(head string) []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Request
	for i := len(s.requests) - 1; i >= 0; i-- {
		if r := *s.requests[i]; head == "" || r.Head == head {
			all = append(all, &r)
		}
	}
	return all
}

var opened = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (s *Server) gitHub(r *Request) map[string]any {
	state, merged := "open", any(nil)
	if r.State != "open" {
		state = "closed"
	}
	if r.State == "merged" {
		merged = opened
	}
	return map[string]any{
		"number": r.Number, "state": state, "title": r.Title, "body": r.Body, "draft": r.Draft, "merged_at": merged,
		"html_url": fmt.Sprintf("%s/%s/pull/%d", s.URL, Project, r.Number), "created_at": opened,
		"head": map[string]any{"ref": r.Head, "sha": r.HeadSHA}, "base": map[string]any{"ref": r.Into},
	}
}

func (s *Server) findGitHub(w http.ResponseWriter, r *http.Request) {
	owner, head, _ := strings.Cut(r.URL.Query().Get("head"), ":")
	list := []any{}
	if owner == "acme" && r.URL.Query().Get("state") == "all" {
		for _, pr := range s.branch(head) {
			list = append(list, s.gitHub(pr))
		}
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) openGitHub(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"})
		return
	}
	pr, why := s.open(proposal{in.Head, in.Base, in.Title, in.Body, in.Draft})
	switch why {
	case "":
		answer(w, http.StatusCreated, s.gitHub(pr))
	case "exists":
		answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []map[string]any{
			{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:" + in.Head + "."},
		}})
	default:
		answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed: " + why})
	}
}

func (s *Server) gitLab(r *Request) map[string]any {
	state := map[string]string{"open": "opened", "merged": "merged", "closed": "closed"}[r.State]
	return map[string]any{
		"id": 100 + r.Number, "iid": r.Number, "state": state, "title": r.Title, "description": r.Body,
		"source_branch": r.Head, "target_branch": r.Into, "sha": r.HeadSHA,
		"web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", s.URL, Project, r.Number),
	}
}

func (s *Server) findGitLab(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("project") != Project {
		answer(w, http.StatusNotFound, map[string]any{"message": "404 Project Not Found"})
		return
	}
	list := []any{}
	for _, mr := range s.branch(r.URL.Query().Get("source_branch")) {
		list = append(list, s.gitLab(mr))
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) openGitLab(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Source      string `json:"source_branch"`
		Target      string `json:"target_branch"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.PathValue("project") != Project {
		answer(w, http.StatusBadRequest, map[string]any{"message": "bad request"})
		return
	}
	title, draft := strings.CutPrefix(in.Title, "Draft: ")
	mr, why := s.open(proposal{in.Source, in.Target, title, in.Description, draft})
	switch why {
	case "":
		answer(w, http.StatusCreated, s.gitLab(mr))
	case "exists":
		answer(w, http.StatusConflict, map[string]any{"message": []string{"Another open merge request already exists for this source branch: !1"}})
	default:
		answer(w, http.StatusBadRequest, map[string]any{"message": why})
	}
}
