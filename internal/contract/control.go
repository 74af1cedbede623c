package contract

// Ways to recover a run.
const (
	RecoverContinue = "continue" // the facts are right again
	RecoverClean    = "clean"    // the run puts right what it can, and nodes start clean
	RecoverAbandon  = "abandon"  // the run ends
)
