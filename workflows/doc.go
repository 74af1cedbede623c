// Package workflows is the deterministic orchestration of Mendflow: Remediation
// (a run), Level (one drive of a dependency level), Node (one attempt) and
// Broker (the slots of one provider account).
//
// It decides nothing that could be decided without Temporal: the rules are
// values of internal/dispatch and internal/run, which these workflows feed with
// events and whose decisions they carry out. One listener per workflow writes
// state, one function waits. It reads no clock but workflow.Now, ranges over no
// map, and reaches the outside only through activities.
package workflows
