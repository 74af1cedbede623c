// Command bench measures what Mendflow costs beside the work itself: the
// figures of docs/performance.md, each with its floor and its goal.
//
// Every figure runs the built programs (devserver, worker, starter) with shell
// commands as workers, on a memory file system, and ratios to the yardstick are
// measured interleaved with it, so that a busy machine slows both. The
// yardstick is the same work by a plain shell loop on generated repositories
// (yardstick.go, repository.go); a test compares both with the frozen originals
// where those exist. Only the figure of the landing steps is measured inside
// this program, since no program runs them alone.
//
// It measures and judges; it sets no limits for tests.
package main
