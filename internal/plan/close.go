package plan

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"mendflow/internal/strictyaml"
)

// Values lists the forges.
func (Forge) Values() []string { return texts(ForgeGitHub, ForgeGitLab) }

var (
	projectPattern  = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$`)
	passwordPattern = regexp.MustCompile(`^[a-z+]+://[^/@]*:[^/@]*@`)
)

// CheckBranch says what is wrong with the name of a branch (git-check-ref-format, and no option).
func CheckBranch(name string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`~^:?*[\`, r)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(strings.ToLower(part), ".lock") {
			return fmt.Errorf("%q is no branch", strictyaml.Shorten(name, 60))
		}
	}
	if strings.HasPrefix(name, "-") || name == "@" || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%q is no branch", strictyaml.Shorten(name, 60))
	}
	return nil
}

// checkClose checks the closing action by itself; whether the remote is there is found out when the run opens.
func checkClose(c Close, r *FaultReport) {
	for _, branch := range []struct{ key, name string }{{"into", c.Into}, {"branch", c.Branch}} {
		if branch.name == "" {
			continue
		}
		if err := CheckBranch(branch.name); err != nil {
			r.Add("close."+branch.key, err.Error(), "write its name, without refs/heads/")
		}
	}
	if c.Branch != "" && c.Branch == c.Into {
		r.Add("close.branch", "it is the branch that the pull request is for", "leave it out for mendflow/<run>")
	}
	switch {
	case strings.HasPrefix(c.Remote, "-"), strings.ContainsFunc(c.Remote, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		r.Add("close.remote", fmt.Sprintf("%q is no remote", strictyaml.Shorten(c.Remote, 60)), "write a remote's name, a URL or a path")
	case passwordPattern.MatchString(c.Remote):
		r.Add("close.remote", "the URL holds a password", "use ssh, git.credential_helper or token_env")
	}
	if c.Project != "" && !projectPattern.MatchString(c.Project) {
		r.Add("close.project", fmt.Sprintf("%q is no project", strictyaml.Shorten(c.Project, 60)), "write owner/name")
	}
	if c.API != "" && !hookPattern.MatchString(c.API) {
		r.Add("close.api", "it is no http or https address", "")
	}
	if c.TokenEnv != "" {
		if err := CheckEnvName(c.TokenEnv); err != nil {
			r.Add("close.token_env", err.Error(), "name the variable that holds the token")
		}
	}
	checkCloseKeys(c, r)
}

// checkCloseKeys refuses what the action would ignore.
func checkCloseKeys(c Close, r *FaultReport) {
	merge, request := c.Action == CloseMerge, c.Action == ClosePullRequest
	push := c.Action == ClosePush || request
	for _, k := range []struct {
		key       string
		set, used bool
		needs     string
	}{
		{"into", c.Into != "", merge || request, "merge or pull-request"},
		{"remote", c.Remote != "", push, "push or pull-request"},
		{"branch", c.Branch != "", push, "push or pull-request"},
		{"token_env", c.TokenEnv != "", push, "push or pull-request"},
		{"forge", c.Forge != "", request, "pull-request"},
		{"project", c.Project != "", request, "pull-request"},
		{"api", c.API != "", request, "pull-request"},
		{"title", c.Title != "", request, "pull-request"},
		{"draft", c.Draft, request, "pull-request"},
	} {
		if k.set && !k.used {
			r.Add("close."+k.key, fmt.Sprintf("the action %s does not use it", c.Action), "write action: "+k.needs+", or leave it out")
		}
	}
}
