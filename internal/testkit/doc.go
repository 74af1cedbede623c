// Package testkit runs the real thing for tests: the embedded server and host
// workers as processes of their own, git repositories, plans, and a worker
// program that does per node and attempt what a test's script says. It knows
// how to kill and restart all of them, and it checks the invariants that must
// hold whatever was killed.
//
// A [Lab] is a server with one host and its folders; most tests need nothing
// else. Everything that a lab starts ends with the test that started it, and
// with the test binary if that is killed. Tests wait for conditions, through
// the product's own queries or through files; every wait has a guard of
// minutes that only a hang reaches.
//
// The package holds no rules of the product. It reads the truth from git with
// its own few lines on purpose: a checker that asked the product would agree
// with the product's mistakes.
package testkit

import "time"

// Guard is how long a test waits for anything before it takes it for hung.
const Guard = 4 * time.Minute

// poll is the pause between two looks at a condition.
const poll = 50 * time.Millisecond
