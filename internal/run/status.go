package run

import (
	"fmt"
	"slices"

	"mendflow/internal/contract"
)

// moves are the legal moves between run statuses (interface.md, control.md). A
// closed status has none.
var moves = map[contract.RunStatus][]contract.RunStatus{
	contract.RunQueued:   {contract.RunStarting, contract.RunPreparing, contract.RunImplementing, contract.RunGating, contract.RunPaused, contract.RunRecovery, contract.RunClosing, contract.RunCancelled, contract.RunFailed},
	contract.RunStarting: {contract.RunPreparing, contract.RunPausing, contract.RunPaused, contract.RunRecovery, contract.RunClosing, contract.RunCancelled, contract.RunFailed},
	contract.RunPreparing: {
		contract.RunImplementing, contract.RunGating, contract.RunPausing, contract.RunPaused, contract.RunRecovery,
		contract.RunClosing, contract.RunCancelled, contract.RunFailed,
	},
	contract.RunImplementing: {
		contract.RunGating, contract.RunPausing, contract.RunPaused, contract.RunRecovery,
		contract.RunClosing, contract.RunCancelled, contract.RunFailed,
	},
	contract.RunGating: {
		contract.RunImplementing, contract.RunPausing, contract.RunPaused, contract.RunRecovery,
		contract.RunClosing, contract.RunCancelled, contract.RunFailed,
	},
	// A run that is stopping first proves that nothing of it is alive, whatever was lifted meanwhile.
	contract.RunPausing: {contract.RunPaused, contract.RunRecovery, contract.RunClosing, contract.RunCancelled, contract.RunFailed},
	contract.RunPaused: {
		contract.RunQueued, contract.RunStarting, contract.RunPreparing, contract.RunImplementing, contract.RunGating,
		contract.RunRecovery, contract.RunClosing, contract.RunCancelled, contract.RunFailed,
	},
	contract.RunRecovery: {
		contract.RunQueued, contract.RunStarting, contract.RunPreparing, contract.RunImplementing, contract.RunGating, contract.RunPausing,
		contract.RunPaused, contract.RunClosing, contract.RunCancelled, contract.RunFailed,
	},
	contract.RunClosing:    {contract.RunPublishing, contract.RunCompleted, contract.RunBlocked, contract.RunFailed, contract.RunCancelled, contract.RunRecovery},
	contract.RunPublishing: {contract.RunClosing, contract.RunCompleted, contract.RunBlocked, contract.RunFailed},
}

// CanMove reports whether a run may go from one status to another. Staying is no
// move and always allowed.
func CanMove(from, to contract.RunStatus) bool {
	return from == to || slices.Contains(moves[from], to)
}

// CheckMove is CanMove with an error that names both statuses.
func CheckMove(from, to contract.RunStatus) error {
	if CanMove(from, to) {
		return nil
	}
	return fmt.Errorf("move run: %s does not follow %s", to, from)
}

// CanCancel reports whether a run may still be cancelled: once it closes, it ends by itself.
func CanCancel(s contract.RunStatus) bool {
	return !s.Closed() && s != contract.RunClosing && s != contract.RunPublishing
}

// Interruptible reports whether a pause stops what a run in this status does;
// closing and publishing finish, bounded.
func Interruptible(s contract.RunStatus) bool { return CanCancel(s) }
