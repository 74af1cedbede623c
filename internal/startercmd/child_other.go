//go:build !linux

package startercmd

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child into a group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
