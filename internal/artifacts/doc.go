// Package artifacts keeps what is too large for a workflow's history: prompts,
// transcripts, logs, diffs, reports. Histories hold a [Ref] instead.
//
// A [Store] is a folder (file:///...) that starter and workers see alike, or
// memory (mem://) for tests. Each artifact is one file and nothing beside it,
// complete or absent: it is written under another name and renamed. Two
// processes that write the same key do no harm; one of the two whole contents
// stays.
//
// What programs print goes through a [Writer], which masks secrets before they
// reach the store. [Store.Put] is for text that is Mendflow's own or masked
// already; it masks nothing.
//
// The package does not know what artifacts mean, and it does not expire them:
// keys and retention are the callers' matter.
package artifacts
