package provider

import (
	"cmp"
	"math"
	"slices"
	"time"

	"mendflow/internal/contract"
)

// Window makes a fact about a quota window of what a program told: the used
// share (1 is all of it) and the reset in seconds since 1970, 0 when it is not
// known. ok is false for what is no share.
func Window(name string, used float64, resetsAt int64) (w contract.Window, ok bool) {
	if name == "" || math.IsNaN(used) || used < 0 || used > 10 {
		return w, false
	}
	w = contract.Window{Name: name, UsedPermill: int(math.Round(min(used, 1) * 1000))}
	if resetsAt > 0 {
		at := time.Unix(resetsAt, 0).UTC()
		w.ResetAt = &at
	}
	return w, true
}

// KeepWindow replaces the fact about a window by a newer one; facts stay ordered by name.
func KeepWindow(windows []contract.Window, w contract.Window) []contract.Window {
	at, found := slices.BinarySearchFunc(windows, w.Name, func(have contract.Window, name string) int { return cmp.Compare(have.Name, name) })
	if found {
		windows[at] = w
		return windows
	}
	return slices.Insert(windows, at, w)
}
