//go:build !linux

package testkit

import "syscall"

// attributes give a program a session of its own: a Ctrl-C reaches the test,
// which ends what it started.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
