package startercmd

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child into a group of its own and ends it when starter is killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
