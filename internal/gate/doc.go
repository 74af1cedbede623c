// Package gate finds and runs the commands that must pass on a repository as a
// whole: the baseline on the base commit, the gate at each phase boundary and
// the final gate.
//
// Discover reads the files of a base commit and says which commands its
// ecosystems offer (Go, Node, Rust, Python, Maven, Gradle, Make; monorepos with
// several), in which folder and in which layer. Run executes commands layer by
// layer through a Runner, keeps their logs and tails, reads failure ids out of
// what they print or write, runs the first red once more, and judges each
// command against a baseline. Everything that judges (Judge, Findings, the
// readers of `go test -json` and of JUnit files, BaselineKey) is a pure function
// of its arguments.
//
// # Failure ids
//
// With `baseline: accept` a gate is red only by failures that the base did not
// have. They are compared by id, and ids must survive edits above them:
//
//   - a test: "<package>: <test>", from `go test -json` (added to a plain
//     `go test` argv) or from JUnit files ("<class>: <name>");
//   - a Go package that fails outside any test: "<package>: failed";
//   - a finding of `go build` or `go vet`: "<file>: <message>" with every
//     line and column removed, the file as seen from the repository's root, and
//     " #2", " #3", … for repetitions, so that a second finding of the same text
//     in the same file is new. A line without a position is an id of its own;
//   - anything else has no ids: the command as a whole is compared, and when it
//     was red at the base and is red now it is runtime_residual: the gate says that it
//     does not cover it.
//
// # What it does not do
//
// It starts no process itself (activities hand in a Runner made of
// internal/process), knows no git (a Tree and a folder are handed in), has no
// clock, and does not attribute a red gate to a node: that is a bisect over Run
// in the activities, decided by internal/run.
package gate
