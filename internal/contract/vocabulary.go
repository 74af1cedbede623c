package contract

// RunStatus is where a run stands (interface.md); the zero value is not a status.
type RunStatus string

// Run statuses.
const (
	RunQueued       RunStatus = "queued"
	RunStarting     RunStatus = "starting"
	RunPreparing    RunStatus = "preparing"
	RunImplementing RunStatus = "implementing"
	RunPausing      RunStatus = "pausing"
	RunPaused       RunStatus = "paused"
	RunGating       RunStatus = "gating"
	RunClosing      RunStatus = "closing"
	RunPublishing   RunStatus = "publishing"
	RunCompleted    RunStatus = "completed" // green
	RunBlocked      RunStatus = "blocked"   // findings left
	RunFailed       RunStatus = "failed"    // Mendflow could not go on
	RunCancelled    RunStatus = "cancelled"
	RunRecovery     RunStatus = "recovery"
)

// Closed reports whether nothing follows this status.
func (s RunStatus) Closed() bool {
	return s == RunCompleted || s == RunBlocked || s == RunFailed || s == RunCancelled
}

// ItemStatus is where a finding stands inside a run (gate-and-close.md, Items).
type ItemStatus string

// Item statuses.
const (
	ItemPending             ItemStatus = "pending"
	ItemResolved            ItemStatus = "resolved"
	ItemResolvedNoChange    ItemStatus = "resolved_no_change"
	ItemBlocked             ItemStatus = "blocked"
	ItemNeedsClarification  ItemStatus = "needs_clarification"
	ItemIgnored             ItemStatus = "ignored"
	ItemDeemedInappropriate ItemStatus = "deemed_inappropriate"
	ItemAbandoned           ItemStatus = "abandoned"
)

// VerifiedComplete reports whether the item satisfies an edge.
func (s ItemStatus) VerifiedComplete() bool {
	return s == ItemResolved || s == ItemResolvedNoChange
}

// Skip reports whether somebody decided that the item is not to be repaired.
func (s ItemStatus) Skip() bool { return s == ItemIgnored || s == ItemDeemedInappropriate }

// Terminal reports whether a worker's answer can no longer change the item.
func (s ItemStatus) Terminal() bool {
	return s.VerifiedComplete() || s.Skip() || s == ItemAbandoned
}

// NodeState is where a node stands (interface.md, `starter nodes`).
type NodeState string

// Node states.
const (
	NodePending  NodeState = "pending"
	NodeRunning  NodeState = "running" // admitted to a level and not yet settled or stranded
	NodeLanded   NodeState = "landed"
	NodePartial  NodeState = "partial"
	NodeNoChange NodeState = "no_change"
	NodeBlocked  NodeState = "blocked"
	NodeStranded NodeState = "stranded"
	NodeSkipped  NodeState = "skipped"
)

// Outcome is how an attempt ended: a closed list (dispatch.md).
type Outcome string

// Outcomes.
const (
	OutcomeSuccess           Outcome = "success"
	OutcomeError             Outcome = "error"
	OutcomeTimeout           Outcome = "timeout"
	OutcomeRateLimited       Outcome = "rate_limited"
	OutcomeOverloaded        Outcome = "overloaded"
	OutcomeCreditExhausted   Outcome = "credit_exhausted"
	OutcomeAuthFailed        Outcome = "auth_failed"
	OutcomeModelUnavailable  Outcome = "model_unavailable"
	OutcomePacketTooLarge    Outcome = "packet_too_large"
	OutcomeQuotaUnclassified Outcome = "quota_unclassified"
	OutcomeInterrupted       Outcome = "interrupted"
)

// Limit reports whether the pool, not the node, was the reason: such an attempt is never charged.
func (o Outcome) Limit() bool {
	switch o {
	case OutcomeRateLimited, OutcomeOverloaded, OutcomeCreditExhausted, OutcomeAuthFailed,
		OutcomeModelUnavailable, OutcomePacketTooLarge, OutcomeQuotaUnclassified:
		return true
	default:
		return false
	}
}

// Cause says what an error outcome is charged to; each has its own bound (landing.md).
type Cause string

// Causes of an error.
const (
	CauseWork     Cause = "work"
	CauseConflict Cause = "conflict"
	CauseProvider Cause = "provider"
	CauseHost     Cause = "host"
)

// StrandCause says why no pool can take a node now (dispatch.md, Stranding).
type StrandCause string

// Causes of stranding.
const (
	StrandQuotaPaused     StrandCause = "quota_paused"
	StrandBudgetExhausted StrandCause = "budget_exhausted"
	StrandNoCapablePool   StrandCause = "no_capable_pool"
	StrandEmptyPool       StrandCause = "empty_pool"
	StrandEscalated       StrandCause = "escalated"
	StrandHeld            StrandCause = "held"
	StrandUnserved        StrandCause = "unserved" // no host polls a queue that it needs
)

// HoldKind is a reason why a run may not proceed (control.md).
type HoldKind string

// Holds.
const (
	HoldOperator  HoldKind = "operator"
	HoldScheduler HoldKind = "scheduler"
	HoldQuota     HoldKind = "quota"
	HoldBudget    HoldKind = "budget"
	HoldService   HoldKind = "service"
	HoldQuestion  HoldKind = "question"
	HoldGate      HoldKind = "gate"
	HoldRecovery  HoldKind = "recovery"
)

// FrictionType names a recorded surprise (gate-and-close.md, Friction).
type FrictionType string

// Friction types.
const (
	FrictionQuotaEscalation    FrictionType = "quota_escalation"
	FrictionPoolDown           FrictionType = "pool_down"
	FrictionPoolSettled        FrictionType = "pool_settled"
	FrictionCreditExhausted    FrictionType = "credit_exhausted"
	FrictionAuthFailed         FrictionType = "auth_failed"
	FrictionQuotaUnclassified  FrictionType = "quota_unclassified"
	FrictionQuotaBlind         FrictionType = "quota_blind"
	FrictionModelUnavailable   FrictionType = "model_unavailable"
	FrictionPacketTooLarge     FrictionType = "packet_too_large"
	FrictionDeclaredCostDrift  FrictionType = "declared_cost_drift"
	FrictionOverAllowance      FrictionType = "over_allowance"
	FrictionUsageUncertain     FrictionType = "usage_uncertain"
	FrictionTierRelaxed        FrictionType = "tier_relaxed"
	FrictionCompositionChanged FrictionType = "composition_changed"
	FrictionScopeWidened       FrictionType = "scope_widened"
	FrictionEscaped            FrictionType = "escaped"
	FrictionNodeSalvaged       FrictionType = "node_salvaged"
	FrictionNoChangeRefused    FrictionType = "no_change_refused"
	FrictionNoChangeUnverified FrictionType = "no_change_unverified"
	FrictionUnknownFinding     FrictionType = "unknown_finding"
	FrictionBaselineRed        FrictionType = "baseline_red"
	FrictionFlakyGate          FrictionType = "flaky_gate"
	FrictionWorktreeMismatch   FrictionType = "worktree_mismatch"
	FrictionBadMessage         FrictionType = "bad_message"
)

// Friction is a recorded surprise, kept once per (type, run, discriminator).
type Friction struct {
	Type          FrictionType `json:"type"`
	Discriminator string       `json:"discriminator,omitempty"`
	Severity      string       `json:"severity,omitempty"` // info | warning
	Note          string       `json:"note,omitempty"`     // at most 2000 characters
}
