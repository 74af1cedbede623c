package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"mendflow/internal/strictyaml"
)

var (
	envPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	authorPattern = regexp.MustCompile(`^[^<>\s][^<>\n]* <[^<>\s]+>$`)
	hookPattern   = regexp.MustCompile(`^https?://[^/\s?#]+\S*$`)
)

// CheckEnvName says what is wrong with the name of an environment variable that
// is passed through: TEMPORAL_* and GIT_* would hand the service's own access, or
// another repository, to a program that runs untrusted code.
func CheckEnvName(name string) error {
	switch {
	case !envPattern.MatchString(name):
		return fmt.Errorf("%q is no name of an environment variable", strictyaml.Shorten(name, 40))
	case strings.HasPrefix(strings.ToUpper(name), "TEMPORAL_"), strings.HasPrefix(strings.ToUpper(name), "GIT_"):
		return fmt.Errorf("%s is never passed through", name)
	case strings.HasPrefix(strings.ToUpper(name), "MENDFLOW_"):
		return errors.New(name + " is set by Mendflow itself")
	}
	return nil
}

// checkSettings checks everything but findings, nodes and intent.
func checkSettings(p *Plan, r *FaultReport) {
	checkBase(p.Base, r)
	checkCommands(p.Setup, "setup", r)
	checkCommands(p.Gate.Commands, "gate.commands", r)
	for i, name := range p.Env {
		if err := CheckEnvName(name); err != nil {
			r.Add(strictyaml.Index("env", i), err.Error(), "name variables only, not values")
		}
	}
	if !authorPattern.MatchString(p.Git.Author) {
		r.Add("git.author", fmt.Sprintf("%q is no author", p.Git.Author), "write Name <address>")
	}
	if strings.ContainsFunc(p.Git.CredentialHelper, unicode.IsControl) {
		r.Add("git.credential_helper", "it contains control characters", "")
	}
	checkFolders(p.Link, "link", r)
	checkGlobs(p.Keep, "keep", r)
	checkPolicy(p.Policy, r)
	if p.Budget.Tokens < 0 {
		r.Add("budget.tokens", "the budget is negative", "write 0 for no cap")
	}
	checkClose(p.Close, r)
	for i := range p.Notify {
		checkNotification(&p.Notify[i], strictyaml.Index("notify", i), r)
	}
}

// checkBase keeps revisions from becoming options or several arguments of git.
func checkBase(base string, r *FaultReport) {
	if strings.HasPrefix(base, "-") || strings.ContainsFunc(base, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		r.Add("base", fmt.Sprintf("%q is no revision", strictyaml.Shorten(base, 60)), "write a branch, a tag or a commit")
	}
}

func checkFolders(folders []string, path string, r *FaultReport) {
	for i, folder := range folders {
		clean, err := CanonicalPath(folder)
		if err != nil {
			r.Add(strictyaml.Index(path, i), fmt.Sprintf("folder %q is not usable: %v", folder, err), "")
			continue
		}
		folders[i] = clean
	}
}

func checkPolicy(p Policy, r *FaultReport) {
	const week = 7 * 24 * 60
	for _, limit := range []struct {
		key     string
		minutes int
	}{
		{"attempt_minutes", p.AttemptMinutes},
		{"idle_minutes", p.IdleMinutes},
		{"setup_minutes", p.SetupMinutes},
		{"verify_minutes", p.VerifyMinutes},
		{"gate_minutes", p.GateMinutes},
	} {
		if limit.minutes < 1 || limit.minutes > week {
			r.Add("policy."+limit.key, fmt.Sprintf("%d minutes is out of range", limit.minutes), fmt.Sprintf("write 1 to %d", week))
		}
	}
	if p.AttemptTokens < 0 {
		r.Add("policy.attempt_tokens", "the cap is negative", "write 0 for no cap")
	}
	for _, wait := range []struct {
		key string
		d   Duration
	}{{"resume_margin", p.ResumeMargin}, {"resume_jitter", p.ResumeJitter}} {
		if wait.d.Std() > 24*time.Hour {
			r.Add("policy."+wait.key, fmt.Sprintf("%s is more than a day", wait.d.Std()), "")
		}
	}
}

func checkNotification(n *Notification, path string, r *FaultReport) {
	if len(n.On) == 0 {
		r.Add(path+".on", "it names no state change", "write some of "+strings.Join(NotifyOn("").Values(), ", "))
	}
	switch {
	case n.Command == nil && n.Webhook == "":
		r.Add(path, "it has neither command nor webhook", "write one of the two")
	case n.Command != nil && n.Webhook != "":
		r.Add(path, "it has both command and webhook", "write one entry for each")
	case n.Command != nil:
		checkCommand(*n.Command, path+".command", r)
	case !hookPattern.MatchString(n.Webhook):
		r.Add(path+".webhook", "it is no http or https address", "")
	}
	if n.SecretEnv == "" {
		return
	}
	if err := CheckEnvName(n.SecretEnv); err != nil {
		r.Add(path+".secret_env", err.Error(), "name the variable that holds the secret")
	} else if n.Webhook == "" {
		r.Add(path+".secret_env", "only webhooks are signed", "leave it out")
	}
}
