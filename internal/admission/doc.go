// Package admission holds the rules of a deployment's scheduler: its modes and
// their guards, which run is admitted under which name, who waits for a slot and
// in which order, what a deployment's budget leases to whom, and what is
// remembered of the runs that closed.
//
// It is pure: a Scheduler is a value that changes by commands and tells by
// Actions what is to be done about it. Starting runs, sending messages and
// looking whether runs still exist is done by the workflow around it. What holds
// a run from the inside is package run, what happens inside a run package
// dispatch.
package admission
