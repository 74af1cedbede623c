package contract

// Metrics of ours, beside the Temporal SDK's own. Names are without the suffix
// that an exporter adds for kind and unit (`_total`, `_seconds`).
const (
	MetricRuns      = "mendflow_runs"       // gauge: open runs, by status and hold
	MetricRunStatus = "mendflow_run_status" // counter: runs that entered a status
	MetricHolds     = "mendflow_holds"      // counter: holds placed, by kind
	MetricHold      = "mendflow_hold"       // timer: how long a hold lasted, by kind
	MetricNodes     = "mendflow_nodes"      // counter: nodes that settled in a state, or were stranded for a cause
	MetricAttempts  = "mendflow_attempts"   // counter: attempts that ended, by pool and outcome
	MetricAttempt   = "mendflow_attempt"    // timer: how long an attempt took, by pool
	MetricLandings  = "mendflow_landings"   // counter: commits landed, by pool
	MetricGate      = "mendflow_gate"       // timer: how long a gate took, by purpose and verdict
)

// Tags of these metrics.
const (
	TagStatus  = "status"
	TagHold    = "hold"
	TagState   = "state"
	TagCause   = "cause"
	TagPool    = "pool"
	TagOutcome = "outcome"
	TagPurpose = "purpose"
	TagVerdict = "verdict"
)
