package testkit

import "syscall"

// attributes give a program a session of its own (a Ctrl-C reaches the test,
// which ends what it started) and end it when the test binary is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
