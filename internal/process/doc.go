// Package process is the only package that starts programs.
//
// [Run] starts one program, watches it, captures what it prints within bounds,
// and does not return before nothing of it is alive. On Linux each program has
// a small supervisor: this binary, executed again. The supervisor leads a
// session of its own, adopts every descendant whose parent died, watches a pipe
// to this process as well as the kernel's parent-death signal, and ends its tree
// when either tells that this process is gone. Only the program is sandboxed,
// not the supervisor. A program may fork, call setsid, clear its environment,
// ignore signals and keep its output open: it is found by descent, and by the
// mark in its environment where descent was lost.
//
//	killed alone            what ends the rest
//	the program             its supervisor: group first, then the adopted
//	the supervisor          parent-death signal to the program; this process
//	                        adopts the rest ([BecomeSubreaper]) and ends it
//	this process            the supervisor
//	both at once            [Sweep] at the next start, by mark
//
// The environment of a program is complete as given, nothing is inherited (see
// [Environment]). Output is masked before anybody sees it (package redact).
//
// How a program ended is a value, never an error; errors are faults of the
// host. What an end means is not decided here (package quota), nor is what the
// program changed (package gitrepo).
//
// Executing a binary again means that every program and test that uses this
// package may turn out to be a supervisor: it does so while packages initialise.
package process
