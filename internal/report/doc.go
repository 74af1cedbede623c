// Package report is the report of a run: one model, and its renderings as
// Markdown, JSON, SARIF 2.1.0, JUnit XML and a short text for terminals.
//
// Build makes a Model of the facts of a run: plan, items, nodes with their
// attempts, gates, friction. Everything that a reader needs and that follows from these is derived
// there and nowhere else: the verdict's sentence, counts, usage per
// node and pool, salvage refs, what was landed unverified, what to do next. The JSON
// rendering is the stored form: Parse reads it back, so every other rendering can
// be made again after the server has forgotten the run.
//
// Texts in a model come from plans, workers and programs. They may contain
// anything; each rendering escapes for its own format, bounds long lists and says
// how many it left out (JSON leaves out nothing).
//
// The package is pure. It does not store reports, decide a run's status, or know
// how facts are collected: activities do.
package report
