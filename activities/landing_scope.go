package activities

import (
	"mendflow/internal/gitrepo"
	"mendflow/internal/plan"
	"mendflow/internal/run"
)

// rules are what decides which changed paths may land.
func (l *lander) rules(state gitrepo.RunState) run.ScopeRules {
	config := &l.opened.config
	rules := run.ScopeRules{
		Scope: l.scope, Protected: config.GateSources, AllowProtected: config.Plan.AllowProtected, Policy: config.Plan.Policy.Scope,
	}
	if globs := config.Plan.Intent.MustNotTouch; len(globs) > 0 {
		rules.MustNotTouch = plan.CompileScope(globs, config.FoldCase)
	}
	landed := map[string]bool{}
	for _, landing := range state.Landings {
		if landing.RevertedBy == "" {
			landed[landing.Node] = true
		}
	}
	for _, u := range config.Units {
		// Exclusive nodes own every path and would make every change a seam; they never run beside another.
		if u.ID != l.in.Node && !landed[u.ID] && len(u.Write) > 0 {
			rules.Others = append(rules.Others, run.Owner{Node: u.ID, Scope: plan.CompileScope(u.Write, config.FoldCase)})
		}
	}
	return rules
}

// sharedAppend reports whether this node and another that may have landed both declared the path for appending.
func (l *lander) sharedAppend(path string) bool {
	if !l.unit.SharedAppend || !l.scope.Match(path) {
		return false
	}
	for _, u := range l.opened.config.Units {
		if u.ID != l.in.Node && u.SharedAppend && plan.InScope(u.Write, path, l.opened.config.FoldCase) {
			return true
		}
	}
	return false
}
