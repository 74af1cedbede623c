//go:build !linux

package testkit

import (
	"syscall"
)

func identify(pid int) Identity { return Identity{PID: pid, Start: "unknown"} }

func alive(id Identity) bool { return syscall.Kill(id.PID, 0) == nil }

// Mentioning knows nothing where there is no /proc.
func Mentioning(string) []string { return nil }

// Marked finds nothing: without /proc nobody can be asked for a mark.
func Marked(string, ...string) []string { return nil }

// Supervisors finds nothing either.
func Supervisors(string) []int { return nil }

// KillPID kills a process that may have ended already.
func KillPID(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// MarkedIdentities finds nothing either.
func MarkedIdentities(string) []Identity { return nil }

// Living finds nothing either.
func Living([]Identity) []string { return nil }

// Supervised finds nothing either.
func Supervised(string) []int { return nil }
