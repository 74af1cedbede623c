// Package run holds the rules of a run that can be stated without side effects:
// which status follows which, what holds a run and what lifts that, what the end
// of a worker means for its node and findings, which changed paths may land, what
// follows a red gate and which landed node turned it red, and the book of
// friction.
//
// It is pure: everything here is a value or a function of its arguments. Where
// nodes stand and what may start is package dispatch; what an exit and a text
// mean for a provider's quota is package quota; git, processes and gate commands
// are done by the activities, which ask this package what to do next.
package run
