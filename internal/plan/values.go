package plan

// Lenses of an audit (interface.md).
const (
	LensCorrectness      Lens = "correctness"
	LensArchitecture     Lens = "architecture"
	LensMaintainability  Lens = "maintainability"
	LensSecurity         Lens = "security"
	LensReliability      Lens = "reliability"
	LensPerformance      Lens = "performance"
	LensDataIntegrity    Lens = "data_integrity"
	LensTests            Lens = "tests"
	LensOperability      Lens = "operability"
	LensConfigDeployment Lens = "config_deployment"
	LensObservability    Lens = "observability"
)

// Values lists the severities, worst first.
func (Severity) Values() []string {
	return texts(SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow, SeverityInfo)
}

// Rank orders severities: critical is 0, info 4; anything else ranks last.
func (s Severity) Rank() int {
	switch s {
	case SeverityCritical:
		return 0
	case SeverityHigh:
		return 1
	case SeverityMedium:
		return 2
	case SeverityLow:
		return 3
	case SeverityInfo:
		return 4
	}
	return 5
}

// Values lists the confidences, surest first.
func (Confidence) Values() []string { return texts(ConfidenceHigh, ConfidenceMedium, ConfidenceLow) }

// Values lists the lenses.
func (Lens) Values() []string {
	return texts(LensCorrectness, LensArchitecture, LensMaintainability, LensSecurity, LensReliability, LensPerformance,
		LensDataIntegrity, LensTests, LensOperability, LensConfigDeployment, LensObservability)
}

// Values lists the tiers, lowest first.
func (Tier) Values() []string { return texts(TierSmall, TierStandard, TierDeep) }

// Values lists the baseline policies.
func (Baseline) Values() []string { return texts(BaselineRequire, BaselineAccept) }

// Values lists the answers to a red gate.
func (OnRed) Values() []string { return texts(OnRedAttribute, OnRedReblock, OnRedPause) }

// Values lists the landing policies.
func (Landing) Values() []string { return texts(LandingOptimistic, LandingStrict) }

// Values lists the scope policies.
func (ScopePolicy) Values() []string { return texts(ScopeStrict, ScopeWiden) }

// Values lists the spill policies.
func (Spill) Values() []string { return texts(SpillSameTier, SpillAllowPaid, SpillNever) }

// Values lists the closing actions.
func (CloseAction) Values() []string {
	return texts(CloseNone, CloseMerge, ClosePush, ClosePullRequest)
}

// Values lists the state changes that can be notified.
func (NotifyOn) Values() []string {
	return texts(NotifyStarted, NotifyPaused, NotifyQuestion, NotifyClosed)
}

func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
