package provider

import "mendflow/internal/quota"

// Verdict asks the classifier how a launch ended, by what the adapter read: what
// was said first and names a cause decides. The given launch says when and where
// it was observed; its provider, channel and text are filled in here.
func (r Report) Verdict(about About, at quota.Launch) quota.Verdict {
	at.Provider, at.HasResult = about.Speaks, r.Done
	if r.Done {
		at.Channel = quota.Stdout
		return quota.Classify(at)
	}
	var best *quota.Verdict
	for _, s := range r.Said {
		launch := at
		launch.Channel, launch.Text, launch.HTTPStatus, launch.Headers = s.Channel, s.Text, s.Status, s.Headers
		if s.Channel == quota.HTTP {
			launch.ExitCode = nil
		}
		v := quota.Classify(launch)
		if Explains(v) && (best == nil || !named(*best) && named(v)) {
			best = &v
		}
	}
	if best != nil {
		return *best
	}
	at.Channel = quota.Stderr
	return quota.Classify(at)
}

// Explains reports whether a verdict names a cause, or at least an error.
func Explains(v quota.Verdict) bool {
	return (v.Outcome != quota.Timeout || v.Rule != ruleDeadline) && (v.Outcome != quota.Error || v.Evidence != "")
}

// ruleDeadline is the classifier's rule for an end that nobody explained.
const ruleDeadline = "deadline"

// named reports whether a verdict is more than an error of some kind.
func named(v quota.Verdict) bool { return v.Outcome != quota.Error }
