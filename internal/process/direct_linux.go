package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func directAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}

// observeExit returns when the child pid has ended, and leaves it unreaped.
func observeExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// groupAlive says whether the group has a member that has not ended.
func groupAlive(group int) bool {
	for _, p := range processes() {
		if p.group == group && !p.ended() {
			return true
		}
	}
	return false
}
